"""One extension of many chains at once: which of a shared pool of windows may take a place in each of them.

Cost does not depend on luck. Every chain looks at the same pool; a matrix product a shell finds who lies at the right
distance from the states before and behind the place, a shortlist of those is tested against *everything* the chain
holds already, and one of the survivors is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from astro_rl.stitch.gauge import Gauge

CHOSEN, EMPTY_SHELL, NOTHING_FITS, NO_END = 0, 1, 2, 3
"""What became of an extension. NO_END is the search's own word for a last piece that was not found."""


class Known(NamedTuple):
    """What chains hold so far, seen at probe states. Latents here and in the pool should lie around 0: what cancels
    when distances come from products is small then."""

    latents: Float[Array, "chains known latent"]
    positions: Int[Array, "known"]
    trajectories: Int[Array, "chains pieces"]
    bias_sum: Float[Array, "chains"]


@dataclass(frozen=True)
class Shell:
    """Windows whose first (or last) state lies `gap` steps from one state of each chain, give or take."""

    state: int
    """Which of the states that a chain holds."""
    probe: Literal[0, -1]
    """The window's first state, or its last."""
    gap: float
    tolerance: float


class Pool(NamedTuple):
    """Candidate windows, seen at the same probe states."""

    latents: Float[Array, "pool probes latent"]
    trajectories: Int[Array, "pool"]
    bias_sum: Float[Array, "pool"]
    """Of each window's own pairs of probes."""
    edges: Float[Array, "2 pool latent"]
    """First and last states once more, each in a row of memory: products with them are what an extension costs."""
    edge_squares: Float[Array, "2 pool"]
    """Squared lengths of `edges`."""


def pool_of(
    latents: Float[np.ndarray, "pool probes latent"],
    trajectories: Int[np.ndarray, "pool"],
    bias_sum: Float[np.ndarray, "pool"],
) -> Pool:
    edges = np.ascontiguousarray(np.moveaxis(latents[:, [0, -1]], 1, 0))
    squares = np.square(edges).sum(axis=-1)
    return Pool(*map(jnp.asarray, (latents, trajectories, bias_sum, edges, squares)))


def stretch(pool: Pool, first: int, stop: int) -> Pool:
    part = slice(first, stop)
    return Pool(
        pool.latents[part],
        pool.trajectories[part],
        pool.bias_sum[part],
        pool.edges[:, part],
        pool.edge_squares[:, part],
    )


def extend(
    key: Key[Array, ""],
    known: Known,
    pool: Pool,
    new_positions: Int[Array, "probes"],
    shells: tuple[Shell, ...],
    *,
    gauge: Gauge,
    threshold: float,
    shortlist: int,
    contest: int,
    distinct: bool,
) -> tuple[Int[Array, "chains"], Float[Array, "chains"], Int[Array, "chains"]]:
    """For each chain: the chosen window's place in the pool (or −1), the new bias sum, and what became of it."""
    offset_key, choice_key = jax.random.split(key)
    bounds = [gauge.raw_range(shell.gap - shell.tolerance, shell.gap + shell.tolerance) for shell in shells]
    places = tuple((shell.state, shell.probe) for shell in shells)
    on_shell = _on_shell(known, pool, jnp.asarray(bounds, jnp.float32), places, distinct)
    candidates, is_real = shortlist_of(offset_key, on_shell, shortlist)
    return _choose(
        choice_key,
        known,
        pool,
        new_positions,
        jnp.asarray(candidates),
        jnp.asarray(is_real),
        gauge,
        jnp.float32(threshold),
        contest,
    )


@partial(jax.jit, static_argnums=(3, 4))
def _on_shell(
    known: Known,
    pool: Pool,
    bounds: Float[Array, "shells 2"],
    places: tuple[tuple[int, int], ...],
    distinct: bool,
) -> Bool[Array, "chains pool"]:
    """On all of the shells."""
    on_shell = jnp.ones((len(known.latents), len(pool.latents)), bool)
    for (state, probe), (nearest, farthest) in zip(places, bounds, strict=True):
        states = known.latents[:, state]
        squared = (
            jnp.square(states).sum(axis=-1)[:, None]
            + pool.edge_squares[probe][None, :]
            - 2 * states @ pool.edges[probe].T
        )
        # Negative where the shell is empty; then nothing may be on it, and a square would hide the sign.
        on_shell &= (
            (squared >= jnp.square(nearest)) & (squared <= jnp.square(farthest)) & (farthest >= nearest)
        )
    if distinct:
        on_shell &= ~(known.trajectories[:, :, None] == pool.trajectories[None, None, :]).any(axis=1)
    return on_shell


@partial(jax.jit, static_argnames=("gauge", "contest"))
def _choose(
    key: Key[Array, ""],
    known: Known,
    pool: Pool,
    new_positions: Int[Array, "probes"],
    candidates: Int[Array, "chains shortlist"],
    is_real: Bool[Array, "chains shortlist"],
    gauge: Gauge,
    threshold: Float[Array, ""],
    contest: int,
) -> tuple[Int[Array, "chains"], Float[Array, "chains"], Int[Array, "chains"]]:
    """Test the shortlist against all that the chains hold; of about `contest` drawn among those that fit, the one with
    the least bias."""
    chains, n_known, width = known.latents.shape
    probes, shortlist = pool.latents.shape[1], candidates.shape[1]
    latents = pool.latents[candidates].reshape(chains, shortlist * probes, width)
    measured = gauge.from_distance(jax.vmap(pairwise_distance)(known.latents, latents))
    apart = jnp.abs(jnp.tile(new_positions, shortlist)[None, :] - known.positions[:, None])
    biases = jnp.abs(apart[None] - measured).reshape(chains, n_known, shortlist, probes)
    sums = known.bias_sum[:, None] + biases.sum(axis=(1, 3)) + pool.bias_sum[candidates]
    n_states = n_known + probes
    fits = is_real & (sums / (n_states * (n_states - 1) / 2) <= threshold)

    lots = jnp.where(fits, jax.random.uniform(key, fits.shape), 2.0)
    enters = lots <= jnp.maximum(lots.min(axis=1), (contest - 1) / jnp.maximum(fits.sum(axis=1), 1))[:, None]
    drawn = jnp.argmin(jnp.where(fits & enters, sums, jnp.inf), axis=1)
    found = fits.any(axis=1)
    chosen = jnp.where(found, jnp.take_along_axis(candidates, drawn[:, None], axis=1)[:, 0], -1)
    new_sum = jnp.take_along_axis(sums, drawn[:, None], axis=1)[:, 0]
    outcome = jnp.where(found, CHOSEN, jnp.where(is_real.any(axis=1), NOTHING_FITS, EMPTY_SHELL))
    return chosen, new_sum, outcome


def pairwise_distance(a: Float[Array, "a latent"], b: Float[Array, "b latent"]) -> Float[Array, "a b"]:
    return jnp.sqrt(jnp.maximum(pairwise_squared(a, b), 1e-12))


def pairwise_squared(a: Float[Array, "a latent"], b: Float[Array, "b latent"]) -> Float[Array, "a b"]:
    """All squared distances through one matrix product. Centred first: what cancels then is small. Rounding may leave
    a tiny negative number where both are the same point."""
    centre = b.mean(axis=0)
    a, b = a - centre, b - centre
    return jnp.square(a).sum(-1)[:, None] + jnp.square(b).sum(-1)[None, :] - 2 * a @ b.T


def shortlist_of(
    key: Key[Array, ""], eligible: Bool[Array, "chains pool"], size: int
) -> tuple[Int[np.ndarray, "chains size"], Bool[np.ndarray, "chains size"]]:
    """Up to `size` eligible places of each row, from a random one on and around; the pool's own order is
    random already. The second says which of them are real.

    On the host, where the few eligible places are listed in one pass; running sums over all places, or sorting a random
    score, cost XLA ten times as much.
    """
    mask = np.asarray(eligible)
    places = np.flatnonzero(mask)
    bounds = np.searchsorted(places, np.arange(len(mask) + 1) * mask.shape[1])
    total = np.diff(bounds)[:, None]
    start = (np.asarray(jax.random.uniform(key, (len(mask), 1))) * total).astype(np.int64)
    wanted = bounds[:-1, None] + (start + np.arange(size)) % np.maximum(total, 1)
    listed = places[np.minimum(wanted, max(len(places) - 1, 0))] if len(places) else np.zeros_like(wanted)
    return (listed % mask.shape[1]).astype(np.int32), np.arange(size)[None, :] < total
