"""Rollout Deviation Feedback δ, eq. (11), and the ways in which the planner can be told of it.

    δ(τᵃ) = ‖ τˢ − τ̃ˢ(τˢ_t, s₀, τᵃ, t) ‖²          as a mean over known steps and dimensions, in normalised units

The noise level t of eq. (11) is not the planner's. At a low level the noisy states give the answer away and δ no longer
depends on the actions; `levels` says where t is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from astro_rl.diffusion.schedule import noised
from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT

Kind = Literal["none", "scalar", "steps", "residual"]
FLOOR = 1e-4
"""Added to δ before its logarithm: below, the dynamics model's own error hides everything."""
MOST = 3.0
"""Residuals are cut here, in standard deviations: one lost sequence must not drown the others."""


class Deviation(NamedTuple):
    total: Float[Array, "batch"]
    """δ."""
    residual: Float[Array, "batch horizon obs"]
    """τ̃ˢ − τˢ where τˢ is known, 0 elsewhere."""
    rolled: Float[Array, "batch horizon obs"]
    """τ̃ˢ: where the actions are thought to lead."""


@dataclass(frozen=True)
class Feedback:
    """How δ is measured, and how it is shown: not at all, as one number a sequence (the paper), as one a step, or as
    the residual itself."""

    kind: Kind = "scalar"
    levels: tuple[float, float] = (1.0, 1.0)
    """Where eq. (11)'s t is drawn, as t/T."""
    over: Literal["known", "full"] = "known"
    """In training the states under the MASK exist too. At inference they do not."""
    self_generated: float = 0.5
    """In training, the share of sequences whose noisy states come from the model's own estimate, as at inference."""
    dropped: float = 0.1
    """In training, the share of sequences that are told δ = 0, as the first step of algorithm 2 is."""

    def __post_init__(self) -> None:
        low, high = self.levels
        if not 0 < low <= high <= 1:
            raise ConfigError(
                "Levels of feedback lie in (0, 1], the lower first.", field="levels", found=self.levels
            )

    def step_channels(self, observation_dim: int) -> int:
        """How many numbers a step the planner is told."""
        return {"none": 0, "scalar": 0, "steps": 1, "residual": observation_dim}[self.kind]

    def measure(
        self,
        dynamics: Dynamics,
        network: DiT,
        states: Float[Array, "batch horizon obs"],
        counted: Bool[Array, "batch horizon"],
        actions: Float[Array, "batch horizon act"],
        noisy: Float[Array, "batch horizon obs"],
        level: Float[Array, "batch"],
    ) -> Deviation:
        """Eq. (11) over the steps in `counted`."""
        rolled = dynamics.clean(network, noisy, states[:, 0], actions, level)
        residual = jnp.where(counted[..., None], rolled - states, 0.0)
        # The first state is given, not predicted: it would only dilute the mean.
        share = jnp.maximum(counted[:, 1:].sum(axis=1), 1) * states.shape[-1]
        return Deviation(jnp.square(residual).sum(axis=(1, 2)) / share, residual, rolled)

    def noisy_states(
        self,
        dynamics: Dynamics,
        network: DiT,
        states: Float[Array, "batch horizon obs"],
        actions: Float[Array, "batch horizon act"],
        key: Key[Array, ""],
    ) -> tuple[Float[Array, "batch horizon obs"], Float[Array, "batch"]]:
        """τˢ_t and t for training: real states noised, or the model's own estimate of them."""
        level_key, noise_key, own_key, which_key = jax.random.split(key, 4)
        batch, (low, high) = len(states), self.levels
        noise = jax.random.normal(noise_key, states.shape)
        if low == 1.0:
            return noise, jnp.ones(batch)
        level = jax.random.uniform(level_key, (batch,), minval=low, maxval=high)
        own = dynamics.clean(
            network, jax.random.normal(own_key, states.shape), states[:, 0], actions, jnp.ones(batch)
        )
        use_own = jax.random.uniform(which_key, (batch, 1, 1)) < self.self_generated
        return noised(dynamics.schedule, jnp.where(use_own, own, states), level, noise), level

    def level_at(self, planner_level: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """At inference δ's level falls with the planner's, within its own range."""
        low, high = self.levels
        return low + (high - low) * planner_level

    def shown(
        self, deviation: Deviation, present: Float[Array, "batch"]
    ) -> tuple[Float[Array, "batch 2"], Float[Array, "batch horizon channels"]]:
        """What the planner is told: numbers for the whole sequence and numbers a step. `present` 0 says "no δ yet"."""
        told = present if self.kind != "none" else jnp.zeros_like(present)
        size = (jnp.log(deviation.total + FLOOR) - jnp.log(FLOOR)) / -jnp.log(FLOOR)
        whole = jnp.stack([told * size, told], axis=-1)
        steps = deviation.residual * told[:, None, None]
        if self.kind == "residual":
            return whole, jnp.clip(steps, -MOST, MOST)
        if self.kind == "steps":
            each = jnp.square(steps).mean(axis=-1, keepdims=True)
            return whole, (jnp.log(each + FLOOR) - jnp.log(FLOOR)) / -jnp.log(FLOOR)
        return whole, steps[..., :0]
