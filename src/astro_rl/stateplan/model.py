"""The state planner: denoise a state sequence given some of its states, and no actions at all.

    L = E ‖ τˢ − τ̃ˢ(τˢ_t, τˢ_m, m, t) ‖²  over states that are not known                                   (1)

Known states τˢ_m are conditioned on twice: they stand, clean, in the noisy sequence's place (inpainting), and beside
it as channels, with a flag m. The answer has them exactly as given, whatever the network says there.

Sequences are seen from their first state, each dimension in units of how far it gets (`spread`, as the dynamics
model's); the network answers with the velocity v there, so that where little noise is left little can go wrong:

    x = (τˢ − origin) / s,   x̃ = √ᾱ x_t + √(1−ᾱ) v                                                        (2)

As in the dynamics model, the change from one state to the next is regressed too (`step_weight`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from astro_rl.diffusion.sampling import Sampler, sample
from astro_rl.diffusion.schedule import Schedule, noised
from astro_rl.dynamics.sequences import SequenceData, draw_sequences
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT, DiTConfig
from astro_rl.stateplan.masks import Masks
from astro_rl.training.optimise import adamw, copied, descend, init_optimiser, settled

Info = dict[str, Float[Array, ""]]


class StatePlanState(NamedTuple):
    network: DiT
    average: DiT
    """Exponential moving average of the weights: what is used after training."""
    optimiser: optax.OptState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class StatePlanner:
    """Hyperparameters of the state planner, and what can be done with its weights."""

    horizon: int
    observation_dim: int
    masks: Masks
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    step_weight: float = 0.1
    batch_size: int = 64
    learning_rate: float = 3e-4
    warmup: int = 500
    cooldown: tuple[int, int] | None = None
    """Updates between which the rate falls to nothing."""
    average_rate: float = 0.002
    spread: tuple[float, ...] = ()
    """`dynamics.sequences.spread_of`: dimensions that stay near their first value are seen from there. Empty: none."""

    def __post_init__(self) -> None:
        if self.spread and len(self.spread) != self.observation_dim:
            raise ConfigError(
                "A spread belongs to each dimension.",
                field="spread",
                found=f"{len(self.spread)} numbers",
                expected=f"{self.observation_dim} numbers, or none",
            )
        if self.horizon % self.net.patch:
            raise ConfigError(
                "The patch must divide the horizon.",
                field="patch",
                found=f"{self.horizon} steps in patches of {self.net.patch}",
            )

    def init(self, key: Key[Array, ""]) -> StatePlanState:
        network = DiT.init(key, self.net, 3 * self.observation_dim + 1, self.observation_dim)
        return StatePlanState(
            network, copied(network), init_optimiser(self._optimiser(), network), jnp.int32(0)
        )

    def update(
        self, state: StatePlanState, data: SequenceData, key: Key[Array, ""]
    ) -> tuple[StatePlanState, Info]:
        draw_key, mask_key, level_key, noise_key = jax.random.split(key, 4)
        states, _ = draw_sequences(draw_key, data, self.batch_size, self.horizon)
        known = self.masks.draw(mask_key, self.batch_size, self.horizon)
        level = jax.random.uniform(level_key, (self.batch_size,))
        noise = jax.random.normal(noise_key, states.shape)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, states, known, level, noise, data.step_scale
        )
        network, optimiser = descend(self._optimiser(), state.network, state.optimiser, gradients)
        average = settled(state.average, network, self.average_rate, state.updates)
        return StatePlanState(network, average, optimiser, state.updates + 1), info

    def loss(
        self,
        network: DiT,
        states: Float[Array, "batch horizon obs"],
        known: Bool[Array, "batch horizon"],
        level: Float[Array, "batch"],
        noise: Float[Array, "batch horizon obs"],
        step_scale: Float[Array, "obs"],
    ) -> tuple[Float[Array, ""], Info]:
        """(1), a mean over unknown states and dimensions in the units of (2), plus the steps' own error over pairs that
        are not both known."""
        spread, origin = self.measure(states[:, 0])
        truth = (states - origin) / spread
        clean = self.clean(network, noised(self.schedule, truth, level, noise), states, known, level)
        missed = clean - truth
        steps = jnp.diff(missed, axis=1) * spread / jnp.maximum(step_scale, 1e-3)
        sequence = _mean_where(jnp.square(missed), ~known)
        step = _mean_where(jnp.square(steps), ~(known[:, 1:] & known[:, :-1]))
        return sequence + self.step_weight * step, {"sequence_mse": sequence, "step_mse": step}

    def clean(
        self,
        network: DiT,
        noisy: Float[Array, "batch horizon obs"],
        states: Float[Array, "batch horizon obs"],
        known: Bool[Array, "batch horizon"],
        level: Float[Array, "batch"],
    ) -> Float[Array, "batch horizon obs"]:
        """x̃ of (2) from x_t. What `states` (normalised) holds where nothing is known is not looked at."""
        spread, origin = self.measure(states[:, 0])
        told = known[..., None]
        given = jnp.where(told, (states - origin) / spread, 0.0)
        seen = jnp.where(told, given, noisy)
        first = jnp.broadcast_to(states[:, :1], states.shape)
        features = jnp.concatenate([seen, given, first, told.astype(states.dtype)], axis=-1)
        velocity = network(features, level, jnp.zeros((len(level), 1)))
        signal = self.schedule.alpha_bar(level)[:, None, None]
        return jnp.where(told, given, jnp.sqrt(signal) * seen + jnp.sqrt(1 - signal) * velocity)

    def measure(
        self, first: Float[Array, "batch obs"]
    ) -> tuple[Float[Array, "obs"], Float[Array, "batch 1 obs"]]:
        """(s, origin). The first state is the origin where s < 1."""
        spread = jnp.asarray(self.spread or (1.0,) * self.observation_dim, first.dtype)
        near = spread < 1
        return jnp.where(near, spread, 1.0), jnp.where(near, first, 0.0)[:, None, :]

    def fill(
        self,
        network: DiT,
        states: Float[Array, "batch horizon obs"],
        known: Bool[Array, "batch horizon"],
        key: Key[Array, ""],
        *,
        steps: int,
        sampler: Sampler = "ddim",
    ) -> Float[Array, "batch horizon obs"]:
        """Known states as they are, to the bit, and what the planner puts between them: `steps` denoisings."""
        noise_key, walk_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, states.shape)

        def predict(noisy: Array, level: Array) -> Array:
            return self.clean(network, noisy, states, known, level)

        filled = sample(self.schedule, predict, noise, walk_key, steps=steps, sampler=sampler)
        spread, origin = self.measure(states[:, 0])
        return jnp.where(known[..., None], states, filled * spread + origin)

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, warmup=self.warmup, cooldown=self.cooldown, decay=1e-4, clip=1.0)


def _mean_where(
    values: Float[Array, "batch steps obs"], counted: Bool[Array, "batch steps"]
) -> Float[Array, ""]:
    """The mean over what counts; 0 where nothing does."""
    total = jnp.where(counted[..., None], values, 0.0).sum()
    return total / (jnp.maximum(counted.sum(), 1) * values.shape[-1])
