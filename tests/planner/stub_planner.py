"""A planner in the world on a line (`sums_of_actions`) whose own answer is a known function of what it is told."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from astro_rl.diffusion.schedule import Schedule
from astro_rl.dynamics.model import Dynamics
from astro_rl.planner.feedback import FLOOR, Deviation, Feedback
from astro_rl.planner.model import Noise, Planner
from astro_rl.stitch.geometry import ChainShape

HALF = Schedule(final_signal=1e-9)
"""ᾱ(½) = ½."""
TENTH = math.sqrt(0.01 - FLOOR)
"""A miss whose square is δ = 0.0099, which the planner is told as size ½: (log 0.01 − log 0.0001) / −log 0.0001."""


def planner_of(horizon: int, **changes: Any) -> Planner:
    """One observation, one action, a dynamics model that answers with the clean sequence."""
    dynamics = changes.pop("dynamics", None) or Dynamics(horizon, 1, 1, predicts="clean")
    shape = changes.pop("shape", ChainShape(1, 2, 1))
    return Planner(horizon, 1, 1, dynamics=dynamics, shape=shape, **{"schedule": HALF, **changes})


def rows(*values: float) -> jax.Array:
    """One sequence of numbers."""
    return jnp.asarray(values, jnp.float32)[None, :, None]


def flags(*values: int) -> jax.Array:
    return jnp.asarray(values, bool)[None]


def one(value: float) -> jax.Array:
    return jnp.asarray([value], jnp.float32)


def noise_of(
    horizon: int, level: float, *, z: float = 0.0, again: float = 0.0, present: float = 1.0
) -> Noise:
    """What an update draws, the same number everywhere."""
    whole = jnp.ones((1, horizon, 1))
    return Noise(one(level), z * whole, again * whole, one(present), 0 * whole, one(1.0))


def nothing(horizon: int) -> Deviation:
    return Deviation(jnp.zeros(1), jnp.zeros((1, horizon, 1)), jnp.zeros((1, horizon, 1)))


def size_of(deviation: float) -> float:
    """How δ is shown: 0 for none, 1 for δ = 1."""
    return (math.log(deviation + FLOOR) - math.log(FLOOR)) / -math.log(FLOOR)


NO_FEEDBACK = Feedback(kind="none")
