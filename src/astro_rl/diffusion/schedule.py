"""How much signal is left at noise level t: ᾱ, as a function of t/T, so that T can be chosen anew when sampling.

Levels are numbers u = t/T in [0, 1]. ᾱ(0) = 1 exactly: at u = 0 a sample is clean (the planner's second self-correction
term calls it there, eq. (14)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from astro_rl.errors import ConfigError


@dataclass(frozen=True)
class Schedule:
    """`cosine` (Nichol and Dhariwal, without its offset) or `linear` (β grows linearly from 0, so log ᾱ falls with u²),
    both ending near, not at, pure noise."""

    kind: Literal["cosine", "linear"] = "cosine"
    final_signal: float = 1e-4
    """ᾱ(1). Above 0, so that a predicted ε can be turned into a clean sample at every level (eq. 4)."""

    def __post_init__(self) -> None:
        if not 0 < self.final_signal < 1:
            raise ConfigError(
                "ᾱ at the last level must lie in (0, 1).", field="final_signal", found=self.final_signal
            )

    def alpha_bar(self, level: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """ᾱ(u)."""
        if self.kind == "cosine":
            return 1 - (1 - self.final_signal) * jnp.square(jnp.sin(0.5 * jnp.pi * level))
        return jnp.exp(jnp.log(self.final_signal) * jnp.square(level))

    def levels(self, steps: int) -> Float[Array, "steps_plus_1"]:
        """u_0 = 0 < … < u_T = 1 for a sampler of T = `steps`."""
        return jnp.linspace(0.0, 1.0, steps + 1)


def noised(
    schedule: Schedule,
    clean: Float[Array, "batch *shape"],
    level: Float[Array, "batch"],
    noise: Float[Array, "batch *shape"],
) -> Float[Array, "batch *shape"]:
    """x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) z: the forward process, and with a predicted x̃ in x_0's place the
    re-noising of eq. (5)."""
    signal = _like(schedule.alpha_bar(level), clean)
    return jnp.sqrt(signal) * clean + jnp.sqrt(1 - signal) * noise


def clean_from_noise(
    schedule: Schedule,
    sample: Float[Array, "batch *shape"],
    level: Float[Array, "batch"],
    predicted_noise: Float[Array, "batch *shape"],
) -> Float[Array, "batch *shape"]:
    """x̃_t = (x_t − √(1 − ᾱ_t) ε) / √ᾱ_t, eq. (4) and the second line of eq. (13)."""
    signal = _like(schedule.alpha_bar(level), sample)
    return (sample - jnp.sqrt(1 - signal) * predicted_noise) / jnp.sqrt(signal)


def deterministic_step(
    schedule: Schedule,
    sample: Float[Array, "batch *shape"],
    clean: Float[Array, "batch *shape"],
    level: Float[Array, "batch"],
    next_level: Float[Array, "batch"],
) -> Float[Array, "batch *shape"]:
    """DDIM: keep the noise that the clean estimate implies, at the lower level."""
    signal = _like(schedule.alpha_bar(level), sample)
    implied = (sample - jnp.sqrt(signal) * clean) / jnp.sqrt(jnp.maximum(1 - signal, 1e-12))
    return noised(schedule, clean, next_level, implied)


def _like(values: Float[Array, "batch"], sample: Float[Array, "batch *shape"]) -> Float[Array, "batch *ones"]:
    return values.reshape(values.shape + (1,) * (sample.ndim - 1))
