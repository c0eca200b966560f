"""From the distance that the loss learns to environment steps, and back.

The fixed point of the loss is not the number of steps n but its discounted sum (1 − γⁿ)/(1 − γ), which saturates at
1/(1 − γ): with γ = 0.99, 130 steps read 72.9 and 450 read 98.9. Undoing it amplifies errors towards
saturation; what lies past `SATURATED` of the ceiling is clamped, and callers count it.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

SATURATED = 0.99
"""Share of the ceiling past which a distance says only "far": at γ = 0.99, from 459 steps on."""


def steps_from_distance(distance: Float[Array, "*batch"], discount: float) -> Float[Array, "*batch"]:
    """n with (1 − γⁿ)/(1 − γ) = d; clamped where d is saturated."""
    kept = jnp.minimum((1 - discount) * distance, SATURATED)
    return jnp.log1p(-kept) / jnp.log(discount)


def distance_from_steps(steps: Float[Array, "*batch"], discount: float) -> Float[Array, "*batch"]:
    """(1 − γⁿ)/(1 − γ): the distance of two states n steps apart."""
    return -jnp.expm1(steps * jnp.log(discount)) / (1 - discount)


def is_saturated(distance: Float[Array, "*batch"], discount: float) -> Bool[Array, "*batch"]:
    return (1 - discount) * distance >= SATURATED
