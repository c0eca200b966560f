"""Which states of a sequence the planner is shown: the pattern of chains, at any phase."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key

from astro_rl.stitch.geometry import ChainShape


def pattern(shape: ChainShape, horizon: int, phase: Int[Array, "*batch"]) -> Bool[Array, "*batch horizon"]:
    """l known states, M masked ones and so on, entered `phase` steps late; the first state is always known.

    Phase 0 is a chain (τˢ_m of the paper). Phase l − 1 starts at the last state of a piece: one gap, the next
    piece, and what follows.
    """
    place = (jnp.arange(horizon) + phase[..., None]) % shape.period
    return (place < shape.segment).at[..., 0].set(True)


def draw_patterns(
    key: Key[Array, ""], shape: ChainShape, horizon: int, batch: int, *, phase: int, moved_share: float
) -> Bool[Array, "batch horizon"]:
    """The pattern at `phase`, and for a share of the batch at a random one, so that the planner is not tied to it."""
    which, where = jax.random.split(key)
    moved = jax.random.uniform(which, (batch,)) < moved_share
    anywhere = jax.random.randint(where, (batch,), 0, shape.period)
    return pattern(shape, horizon, jnp.where(moved, anywhere, phase))
