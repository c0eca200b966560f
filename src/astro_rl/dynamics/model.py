"""θ_dyn, eqs. (10) and (13): denoise a whole state sequence, given its first state and all actions.

    L_diff = E ‖ τˢ − τ̃ˢ(τˢ_t, s₀, τᵃ, t) ‖²                                                          eq. (13)

The paper lets the network answer with ε and converts, τ̃ = (τ_t − √(1−ᾱ) ε)/√ᾱ; that is `predicts="noise"`,
whose errors are amplified without bound where little signal is left. `clean` answers with the sequence itself;
`velocity` with what is missing from the noisy one, τ̃ = √ᾱ τ_t + √(1−ᾱ) v, so that where little noise is left little can
go wrong.

A sequence of seconds covers little of a large place, and a network that answers with places is as inexact as the place
is large. So where a dimension stays near its first value (`spread` below 1, its root mean square distance from there),
velocities are of the distance from the first state, in units of that spread; with x' = τ − s₀ and noise unchanged,

    x̃' = √ᾱ s² / n² · x'_t + s √(1−ᾱ) / n · v,   n² = ᾱ s² + 1 − ᾱ,   which at s = 1 is the velocity above.

Our addition (`step_weight`): the change from one state to the next is regressed too, each dimension in units
of its own typical step. Downstream learners see transitions, not sequences: an error that is small against a
maze can be large against a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.diffusion.sampling import Sampler, sample
from astro_rl.diffusion.schedule import Schedule, clean_from_noise, noised
from astro_rl.dynamics.sequences import SequenceData, draw_sequences
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT, DiTConfig
from astro_rl.training.optimise import adamw, copied, descend, init_optimiser, settled

Info = dict[str, Float[Array, ""]]


class DynamicsState(NamedTuple):
    network: DiT
    average: DiT
    """Exponential moving average of the weights: what is used after training."""
    optimiser: optax.OptState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class Dynamics:
    """Hyperparameters of the dynamics model, and what can be done with its weights."""

    horizon: int
    observation_dim: int
    action_dim: int
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    predicts: Literal["clean", "noise", "velocity"] = "velocity"
    step_weight: float = 0.1
    batch_size: int = 64
    learning_rate: float = 3e-4
    warmup: int = 500
    cooldown: tuple[int, int] | None = None
    """Updates between which the rate falls to nothing."""
    average_rate: float = 0.002
    spread: tuple[float, ...] = ()
    """How far each dimension gets from its first value within the horizon; from 1 on it is taken as it is. Empty: all
    are."""

    def __post_init__(self) -> None:
        if self.spread and (len(self.spread) != self.observation_dim or self.predicts != "velocity"):
            raise ConfigError(
                "A spread belongs to each dimension of a model that answers with velocities.",
                field="spread",
                found=f"{len(self.spread)} numbers, predicts={self.predicts}",
                expected=f"{self.observation_dim} numbers, or none",
            )

    def init(self, key: Key[Array, ""]) -> DynamicsState:
        features = 2 * self.observation_dim + self.action_dim
        network = DiT.init(key, self.net, features, self.observation_dim)
        return DynamicsState(
            network, copied(network), init_optimiser(self._optimiser(), network), jnp.int32(0)
        )

    def update(
        self, state: DynamicsState, data: SequenceData, key: Key[Array, ""]
    ) -> tuple[DynamicsState, Info]:
        draw_key, level_key, noise_key = jax.random.split(key, 3)
        states, actions = draw_sequences(draw_key, data, self.batch_size, self.horizon)
        level = jax.random.uniform(level_key, (self.batch_size,))
        noise = jax.random.normal(noise_key, states.shape)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, states, actions, level, noise, data.step_scale
        )
        network, optimiser = descend(self._optimiser(), state.network, state.optimiser, gradients)
        average = settled(state.average, network, self.average_rate, state.updates)
        return DynamicsState(network, average, optimiser, state.updates + 1), info

    def loss(
        self,
        network: DiT,
        states: Float[Array, "batch horizon obs"],
        actions: Float[Array, "batch horizon act"],
        level: Float[Array, "batch"],
        noise: Float[Array, "batch horizon obs"],
        step_scale: Float[Array, "obs"],
    ) -> tuple[Float[Array, ""], Info]:
        """Eq. (13), first line, as a mean over steps and dimensions, plus the steps' own error."""
        noisy = noised(self.schedule, states, level, noise)
        clean = self.clean(network, noisy, states[:, 0], actions, level)
        sequence = jnp.square(clean - states).mean()
        miss = jnp.diff(clean, axis=1) - jnp.diff(states, axis=1)
        steps = jnp.square(miss / jnp.maximum(step_scale, 1e-3)).mean()
        return sequence + self.step_weight * steps, {"sequence_mse": sequence, "step_mse": steps}

    def clean(
        self,
        network: DiT,
        noisy: Float[Array, "batch horizon obs"],
        first: Float[Array, "batch obs"],
        actions: Float[Array, "batch horizon act"],
        level: Float[Array, "batch"],
    ) -> Float[Array, "batch horizon obs"]:
        """τ̃ˢ, the clean sequence; its first state is the given one, not a prediction."""
        beside = jnp.broadcast_to(first[:, None, :], noisy.shape)

        def answered(seen: Float[Array, "batch horizon obs"]) -> Float[Array, "batch horizon obs"]:
            return network(
                jnp.concatenate([seen, beside, actions], axis=-1), level, jnp.zeros((len(level), 1))
            )

        if self.predicts == "velocity":
            signal = self.schedule.alpha_bar(level)[:, None, None]
            spread, origin = self.measure(first)
            size = jnp.sqrt(signal * jnp.square(spread) + 1 - signal)
            moved = (noisy - jnp.sqrt(signal) * origin).at[:, 0].set(first - origin[:, 0])
            answer = spread * jnp.sqrt(1 - signal) / size * answered(moved / size)
            return (
                (origin + jnp.sqrt(signal) * jnp.square(spread / size) * moved + answer).at[:, 0].set(first)
            )
        given = noisy.at[:, 0].set(first)
        answer = answered(given)
        if self.predicts == "noise":
            answer = clean_from_noise(self.schedule, given, level, answer)
        return answer.at[:, 0].set(first)

    def measure(
        self, first: Float[Array, "batch obs"]
    ) -> tuple[Float[Array, "obs"], Float[Array, "batch 1 obs"]]:
        """(s, origin): states are seen as (τ − origin) / s. The first state is the origin where s < 1."""
        spread = jnp.asarray(self.spread or (1.0,) * self.observation_dim, first.dtype)
        near = spread < 1
        return jnp.where(near, spread, 1.0), jnp.where(near, first, 0.0)[:, None, :]

    def rollout(
        self,
        network: DiT,
        first: Float[Array, "batch obs"],
        actions: Float[Array, "batch horizon act"],
        key: Key[Array, ""],
        *,
        steps: int = 20,
        sampler: Sampler = "renoise",
    ) -> Float[Array, "batch horizon obs"]:
        """τˢ_aug ~ p(τˢ | s₀, τᵃ), eq. (10): T = `steps` denoisings from pure noise."""
        noise_key, walk_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, (len(first), self.horizon, self.observation_dim))

        def predict(noisy: Array, level: Array) -> Array:
            return self.clean(network, noisy, first, actions, level)

        return sample(self.schedule, predict, noise, walk_key, steps=steps, sampler=sampler)

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, warmup=self.warmup, cooldown=self.cooldown, decay=1e-4, clip=1.0)
