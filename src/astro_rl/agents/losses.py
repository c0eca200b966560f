"""Losses that more than one learner has, as functions of numbers: networks' outputs and what the batch holds.

None of them calls a network. Which of their arguments carry a gradient is decided, and visible, where they
are called. Each returns `(loss, info)`; `info`'s names are part of the interface.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from astro_rl.agents.base import Info

Scalar = Float[Array, ""]
Vector = Float[Array, "batch"]
Coefficient = float | Float[Array, ""]
"""A hyperparameter inside a loss: a number, or a traced one where a program maps over it."""


def td_target(rewards: Vector, masks: Vector, next_values: Vector, discount: float) -> Vector:
    """y = r + γ · mask · V(s')."""
    return rewards + discount * masks * next_values


def td_loss(q: Float[Array, "members batch"], targets: Vector) -> tuple[Scalar, Info]:
    """Σ over members, mean over the batch, of (Qᵢ(s, a) − y)²."""
    loss = jnp.square(q - targets).sum(axis=0).mean()
    return loss, {
        "critic/loss": loss,
        "critic/q_mean": q.mean(),
        "critic/q_max": q.max(),
        "critic/q_min": q.min(),
        "critic/target_mean": targets.mean(),
    }


def gaussian_log_prob(means: Float[Array, "batch act"], actions: Float[Array, "batch act"]) -> Vector:
    """log N(a; μ, I), summed over action dimensions."""
    return -0.5 * (jnp.square(actions - means) + math.log(2 * math.pi)).sum(axis=-1)


def squared_distance(left: Float[Array, "batch act"], right: Float[Array, "batch act"]) -> Vector:
    """‖left − right‖², summed over action dimensions."""
    return jnp.square(left - right).sum(axis=-1)


def reciprocal_scale(q: Vector) -> Scalar:
    """1 / mean |Q|: makes a policy's loss blind to the reward's scale. Pass it through `stop_gradient`."""
    return 1.0 / jnp.maximum(jnp.abs(q).mean(), 1e-6)


def smoothed(
    actions: Float[Array, "batch act"], key: Key[Array, ""], noise: float, clip: float
) -> Float[Array, "batch act"]:
    """Target policy smoothing (TD3): a + clip(ε, −c, c), ε ~ N(0, σ²), kept within [−1, 1]."""
    offsets = jnp.clip(noise * jax.random.normal(key, actions.shape), -clip, clip)
    return jnp.clip(actions + offsets, -1.0, 1.0)
