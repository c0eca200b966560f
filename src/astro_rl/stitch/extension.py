"""One extension of many chains at once: which of a shared pool of windows may follow each of them.

Cost does not depend on luck. Every chain looks at the same pool; one matrix product finds who lies on the
shell at the right distance, a shortlist of those is tested against *everything* the chain holds already, and
one of the survivors is drawn.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from astro_rl.stitch.gauge import Gauge

CHOSEN, EMPTY_SHELL, NOTHING_FITS = 0, 1, 2
"""What became of an extension."""


class Known(NamedTuple):
    """What chains hold so far, seen at probe states."""

    latents: Float[Array, "chains known latent"]
    positions: Int[Array, "known"]
    ends: Float[Array, "chains latent"]
    """The last state of the last piece."""
    trajectories: Int[Array, "chains pieces"]
    bias_sum: Float[Array, "chains"]


class Pool(NamedTuple):
    """Candidate windows, seen at the same probe states."""

    latents: Float[Array, "pool probes latent"]
    trajectories: Int[Array, "pool"]
    bias_sum: Float[Array, "pool"]
    """Of each window's own pairs of probes."""


@partial(jax.jit, static_argnames=("gauge", "gap", "tolerance", "threshold", "shortlist", "distinct"))
def extend(
    key: Key[Array, ""],
    known: Known,
    pool: Pool,
    new_positions: Int[Array, "probes"],
    *,
    gauge: Gauge,
    gap: float,
    tolerance: float,
    threshold: float,
    shortlist: int,
    distinct: bool,
) -> tuple[Int[Array, "chains"], Float[Array, "chains"], Int[Array, "chains"]]:
    """For each chain: the chosen window's place in the pool (or −1), the new bias sum, and what became of it."""
    offset_key, choice_key = jax.random.split(key)
    first = gauge.from_distance(pairwise_distance(known.ends, pool.latents[:, 0]))
    on_shell = jnp.abs(first - gap) <= tolerance
    if distinct:
        used = (known.trajectories[:, :, None] == pool.trajectories[None, None, :]).any(axis=1)
        on_shell &= ~used
    candidates, is_real = shortlist_of(offset_key, on_shell, shortlist)

    chains, n_known, width = known.latents.shape
    probes = pool.latents.shape[1]
    latents = pool.latents[candidates].reshape(chains, shortlist * probes, width)
    measured = gauge.from_distance(jax.vmap(pairwise_distance)(known.latents, latents))
    apart = jnp.abs(jnp.tile(new_positions, shortlist)[None, :] - known.positions[:, None])
    biases = jnp.abs(apart[None] - measured).reshape(chains, n_known, shortlist, probes)
    sums = known.bias_sum[:, None] + biases.sum(axis=(1, 3)) + pool.bias_sum[candidates]
    n_states = n_known + probes
    fits = is_real & (sums / (n_states * (n_states - 1) / 2) <= threshold)

    drawn = jnp.argmax(jnp.where(fits, jax.random.uniform(choice_key, fits.shape), -1.0), axis=1)
    found = fits.any(axis=1)
    chosen = jnp.where(found, jnp.take_along_axis(candidates, drawn[:, None], axis=1)[:, 0], -1)
    new_sum = jnp.take_along_axis(sums, drawn[:, None], axis=1)[:, 0]
    outcome = jnp.where(found, CHOSEN, jnp.where(is_real.any(axis=1), NOTHING_FITS, EMPTY_SHELL))
    return chosen, new_sum, outcome


def pairwise_distance(a: Float[Array, "a latent"], b: Float[Array, "b latent"]) -> Float[Array, "a b"]:
    """All distances through one matrix product. Centred first: what cancels then is small."""
    centre = b.mean(axis=0)
    a, b = a - centre, b - centre
    squared = jnp.square(a).sum(-1)[:, None] + jnp.square(b).sum(-1)[None, :] - 2 * a @ b.T
    return jnp.sqrt(jnp.maximum(squared, 1e-12))


def shortlist_of(key: Key[Array, ""], eligible: Array, size: int) -> tuple[Int[Array, "chains size"], Array]:
    """Up to `size` eligible places of each row, from a random one on and around; the pool's own order is
    random already.

    Sorting a random score would do the same at ten times the cost.
    """
    rank = jnp.cumsum(eligible, axis=1, dtype=jnp.int32)
    total = rank[:, -1:]
    offset = (jax.random.uniform(key, (len(eligible), 1)) * total).astype(jnp.int32)
    wanted = 1 + (offset + jnp.arange(size, dtype=jnp.int32)) % jnp.maximum(total, 1)
    places = jax.vmap(jnp.searchsorted)(rank, wanted)
    return jnp.minimum(places, eligible.shape[1] - 1), jnp.arange(size)[None, :] < total
