"""The filter on finished chains, eq. (8): E[Δ_d] over all pairs of known states or k sampled ones, and Δ_thresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from astro_rl.stitch.extension import pairwise_distance
from astro_rl.stitch.gauge import Gauge, sampled_bias
from astro_rl.stitch.geometry import ChainShape

FILTERED = "the finished chain fails the filter"


@dataclass(frozen=True)
class Chains:
    """Accepted chains and the account of all proposals: kept + rejected = proposed."""

    starts: Int[np.ndarray, "chains pieces"]
    """The first row of each piece."""
    statistic: Float[np.ndarray, "chains"]
    """The filter's E[Δ_d]."""
    proposed: int
    rejected: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, eq=False)
class ChainFilter:
    """E[Δ_d] of chains over one table of latents, which may be a memory map."""

    latents: Float[np.ndarray, "rows latent"]
    gauge: Gauge
    shape: ChainShape
    batch: int
    """Chains that are proposed at once."""
    threshold: float | None
    """Δ_thresh; None lets every chain pass, and only says what its statistic is."""
    pairs: int | None = None
    """k of algorithm 4. None: all pairs."""

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]:
        """E[Δ_d], eq. (8)."""
        rows = (starts[:, :, None] + np.arange(self.shape.segment)).reshape(len(starts), -1)
        # Few shapes whatever number of chains is left, and so few compilations.
        space = max(room(len(starts), self.batch), len(starts))
        latents = jnp.asarray(padded(self.latents[rows], space - len(starts)))
        positions = jnp.asarray(self.shape.positions())
        if self.pairs is None:
            return np.asarray(_chain_bias(self.gauge, latents, positions))[: len(starts)]
        drawn = [generator.choice(len(positions), 2, replace=False) for _ in range(self.pairs)]
        found = sampled_bias(self.gauge, latents, positions, jnp.asarray(np.array(drawn)))
        return np.asarray(found)[: len(starts)]

    def passed(
        self,
        starts: Int[np.ndarray, "chains pieces"],
        generator: np.random.Generator,
        rejected: Mapping[str, int] | None = None,
    ) -> Chains:
        """Those that pass, of a batch of which others were rejected before."""
        statistic = self.statistic(starts, generator) if len(starts) else np.zeros(0)
        kept = np.ones(len(starts), bool) if self.threshold is None else statistic <= self.threshold
        reasons = Counter(rejected or {})
        reasons[FILTERED] += int((~kept).sum())
        return Chains(
            starts[kept],
            statistic[kept],
            proposed=self.batch,
            rejected={reason: count for reason, count in sorted(reasons.items()) if count},
        )


@partial(jax.jit, static_argnums=0)
def _chain_bias(
    gauge: Gauge, latents: Float[Array, "chains states latent"], positions: Int[Array, "states"]
) -> Float[Array, "chains"]:
    """`gauge.mean_bias` with the distances of each chain from one matrix product: thousands of pairs a chain."""
    measured = gauge.from_distance(jax.vmap(pairwise_distance)(latents, latents))
    apart = jnp.abs(positions[:, None] - positions[None, :])
    pairs = jnp.triu(jnp.ones(apart.shape, bool), 1)
    return jnp.where(pairs, jnp.abs(apart - measured), 0.0).sum(axis=(-2, -1)) / pairs.sum()


def room(chains: int, batch: int) -> int:
    """The least of batch, batch/2, batch/4 … that holds the chains, but at least a sixteenth of it."""
    size = batch
    while size // 2 >= max(chains, batch // 16, 1):
        size //= 2
    return size


def padded(rows: np.ndarray, pad: int) -> np.ndarray:
    return np.concatenate([rows, np.repeat(rows[:1], pad, axis=0)]) if pad else rows
