"""θ_π, eqs. (9), (14) to (16), algorithm 1: denoise actions, shown masked states and how far the last attempt missed.

    L_sc  = E ‖ τᵃ − τ̃ᵃ(τᵃ_t, τˢ_m, t, sg δ(τᵃ)) ‖² + ‖ τᵃ − τ̃ᵃ(sg τ̂ᵃ_{t−1}, τˢ_m, t−1, sg δ(τ̃ᵃ_t)) ‖²      eq. (14)
    L_reg = E ( δ(τ̃ᵃ_t) − δ(τᵃ) )₊                                                                    eq. (15)
    L     = L_sc + α L_reg                                                                            eq. (16)

The dynamics model is frozen; the gradient of L_reg flows through it into the actions. At t = 1 the second term
calls the planner at level 0, where ᾱ = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from astro_rl.diffusion.schedule import Schedule, noised
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import SequenceData, draw_sequences
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT, DiTConfig
from astro_rl.planner.feedback import Deviation, Feedback
from astro_rl.planner.masks import draw_patterns
from astro_rl.stitch.geometry import ChainShape
from astro_rl.training.optimise import adamw, copied, descend, init_optimiser, settled

Info = dict[str, Float[Array, ""]]


class PlannerData(NamedTuple):
    """What an update draws from: real sequences, and the weights of the dynamics model."""

    sequences: SequenceData
    dynamics_network: DiT


class PlannerState(NamedTuple):
    network: DiT
    average: DiT
    """Exponential moving average of the weights: what is used after training."""
    optimiser: optax.OptState
    updates: Int[Array, ""]


class Noise(NamedTuple):
    """What one update draws besides its sequences, so that the loss is a function of its arguments."""

    level: Float[Array, "batch"]
    """t/T of the first term."""
    actions: Float[Array, "batch horizon act"]
    again: Float[Array, "batch horizon act"]
    """z of eq. (5), for the second term."""
    present: Float[Array, "batch"]
    """0 where the first term is told nothing of δ, as the first step of algorithm 2 is."""
    states: Float[Array, "batch horizon obs"]
    """τˢ_t of eq. (11)."""
    state_level: Float[Array, "batch"]


@dataclass(frozen=True)
class Planner:
    """Hyperparameters of the stitch planner, and what can be done with its weights."""

    horizon: int
    observation_dim: int
    action_dim: int
    dynamics: Dynamics
    shape: ChainShape
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    feedback: Feedback = field(default_factory=Feedback)
    regularisation: float = 1.0
    """α of eq. (16)."""
    correction: bool = True
    """Whether L_sc has its second term."""
    phase: int = 0
    """Where in the chain's pattern sequences begin: 0 for whole chains, l − 1 for one gap at a time."""
    moved_share: float = 0.5
    """Share of training sequences whose pattern begins anywhere."""
    steps: int = 10
    """T: the second term looks one step of this size further down."""
    batch_size: int = 64
    learning_rate: float = 3e-4
    warmup: int = 500
    cooldown: tuple[int, int] | None = None
    """Updates between which the rate falls to nothing."""
    average_rate: float = 0.002

    def __post_init__(self) -> None:
        if self.dynamics.horizon != self.horizon:
            raise ConfigError(
                "Planner and dynamics model work on sequences of one length.",
                field="horizon",
                found=f"{self.horizon} and {self.dynamics.horizon}",
            )
        if self.regularisation < 0:
            raise ConfigError(
                "α must not be negative.", field="regularisation", found=self.regularisation, expected=">= 0"
            )

    def init(self, key: Key[Array, ""]) -> PlannerState:
        features = self.action_dim + self.observation_dim * (2 if self.dynamics.spread else 1) + 1
        features += self.feedback.step_channels(self.observation_dim)
        network = DiT.init(key, self.net, features, self.action_dim, extras=2)
        return PlannerState(
            network, copied(network), init_optimiser(self._optimiser(), network), jnp.int32(0)
        )

    def update(
        self, state: PlannerState, data: PlannerData, key: Key[Array, ""]
    ) -> tuple[PlannerState, Info]:
        draw_key, mask_key, noise_key = jax.random.split(key, 3)
        states, actions = draw_sequences(draw_key, data.sequences, self.batch_size, self.horizon)
        known = draw_patterns(
            mask_key,
            self.shape,
            self.horizon,
            self.batch_size,
            phase=self.phase,
            moved_share=self.moved_share,
        )
        noise = self.draw_noise(noise_key, data.dynamics_network, states, actions)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, data.dynamics_network, states, known, actions, noise
        )
        network, optimiser = descend(self._optimiser(), state.network, state.optimiser, gradients)
        average = settled(state.average, network, self.average_rate, state.updates)
        return PlannerState(network, average, optimiser, state.updates + 1), info

    def draw_noise(
        self,
        key: Key[Array, ""],
        dynamics_network: DiT,
        states: Float[Array, "batch horizon obs"],
        actions: Float[Array, "batch horizon act"],
    ) -> Noise:
        keys = jax.random.split(key, 5)
        batch = len(states)
        noisy, state_level = self.feedback.noisy_states(
            self.dynamics, dynamics_network, states, actions, keys[0]
        )
        return Noise(
            level=jax.random.uniform(keys[1], (batch,), minval=1e-3),
            actions=jax.random.normal(keys[2], actions.shape),
            again=jax.random.normal(keys[3], actions.shape),
            present=(jax.random.uniform(keys[4], (batch,)) >= self.feedback.dropped).astype(jnp.float32),
            states=jax.lax.stop_gradient(noisy),
            state_level=state_level,
        )

    def loss(
        self,
        network: DiT,
        dynamics_network: DiT,
        states: Float[Array, "batch horizon obs"],
        known: Bool[Array, "batch horizon"],
        actions: Float[Array, "batch horizon act"],
        noise: Noise,
    ) -> tuple[Float[Array, ""], Info]:
        """Eq. (16), as means over steps and dimensions."""
        counted = known if self.feedback.over == "known" else jnp.ones_like(known)

        def deviation(tried: Float[Array, "batch horizon act"]) -> Deviation:
            return self.feedback.measure(
                self.dynamics, dynamics_network, states, counted, tried, noise.states, noise.state_level
            )

        needs_truth = self.feedback.kind != "none" or self.regularisation > 0
        of_data = jax.lax.stop_gradient(deviation(actions)) if needs_truth else _nothing(states)
        noisy = noised(self.schedule, actions, noise.level, noise.actions)
        first = self.clean(network, noisy, states, known, noise.level, of_data, noise.present)
        total = first_error = jnp.square(actions - first).mean()
        info = {"action_mse": first_error, "delta/data": of_data.total.mean()}

        if self.regularisation > 0 or (self.correction and self.feedback.kind != "none"):
            of_plan = deviation(first)
        else:
            of_plan = _nothing(states)
        if self.correction:
            below = jnp.maximum(noise.level - 1.0 / self.steps, 0.0)
            tried = jax.lax.stop_gradient(noised(self.schedule, first, below, noise.again))
            second = self.clean(
                network, tried, states, known, below, jax.lax.stop_gradient(of_plan), jnp.ones_like(below)
            )
            second_error = jnp.square(actions - second).mean()
            total, info = total + second_error, {**info, "corrected_mse": second_error}
        if self.regularisation > 0:
            excess = jax.nn.relu(of_plan.total - of_data.total).mean()
            total = total + self.regularisation * excess
            info |= {"regularisation": excess, "delta/plan": of_plan.total.mean()}
        return total, {"loss": total, **info}

    def clean(
        self,
        network: DiT,
        noisy: Float[Array, "batch horizon act"],
        states: Float[Array, "batch horizon obs"],
        known: Bool[Array, "batch horizon"],
        level: Float[Array, "batch"],
        deviation: Deviation,
        present: Float[Array, "batch"],
    ) -> Float[Array, "batch horizon act"]:
        """τ̃ᵃ. What `states` holds where nothing is known is not looked at."""
        whole, each = self.feedback.shown(deviation, present)
        flag = known[..., None].astype(states.dtype)
        if not self.dynamics.spread:
            masked = jnp.where(known[..., None], states, 0.0)
            return network(jnp.concatenate([noisy, masked, flag, each], axis=-1), level, whole)
        # Actions follow from differences between states: seen from the first one, in units of what is covered here.
        spread, origin = self.dynamics.measure(states[:, 0])
        masked = jnp.where(known[..., None], (states - origin) / spread, 0.0)
        beside = jnp.broadcast_to(states[:, :1], states.shape)
        return network(jnp.concatenate([noisy, masked, flag, each, beside], axis=-1), level, whole)

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, warmup=self.warmup, cooldown=self.cooldown, decay=1e-4, clip=1.0)


def _nothing(states: Float[Array, "batch horizon obs"]) -> Deviation:
    """δ = 0: nothing has been tried yet."""
    return Deviation(jnp.zeros(len(states)), jnp.zeros_like(states), jnp.zeros_like(states))
