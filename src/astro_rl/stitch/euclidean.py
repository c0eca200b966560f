"""“Behavioral pre-generation + Euclidean”, table 2's “Pre+Euc”: imitate on from the source's end, take what is nearest.

    ŝ = where a behaviour-cloned policy is after M + 1 steps from the source's last state, in the dynamics model
    s_target = argmin over windows of ‖ (s − ŝ) / σ ‖₂,    s the window's first state

The paper says no more than the name. We take every dimension of the observation, each in units of its spread σ over the
data, as DiffStitch compares states; and the state M + 1 steps on, because that is where the target stands behind a
MASK of M states. The candidates are up to `pool` windows drawn anew for each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from astro_rl.data.normaliser import Normaliser
from astro_rl.stitch.filtering import ChainFilter, Chains
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.selection import drawn_from_others, require_room
from astro_rl.stitch.targets import nearest_targets
from astro_rl.stitch.windows import Windows

NOWHERE = "the imitated continuation gives no numbers"
NOBODY_ELSE = "the candidates are all of the chain's own trajectories"
PLAIN = Gauge(0.99, literal=True)
"""Distances as they are. No discount is undone, so its value has no effect."""

Continue = Callable[[Key[Array, ""], Float[np.ndarray, "chains obs"]], Float[np.ndarray, "chains obs"]]
"""Normalised states to those M + 1 imitated steps later."""


@dataclass(frozen=True, eq=False)
class NearestContinuation:
    """Chains built forwards, each target the window whose first state is nearest to the imitated continuation."""

    observations: Float[np.ndarray, "rows obs"]
    normaliser: Normaliser
    windows: Windows
    filter: ChainFilter
    continued: Continue
    pool: int
    distinct: bool = True

    def __post_init__(self) -> None:
        require_room(self.windows, self.filter.shape.pieces, self.distinct)

    def batch(self, seed: int, number: int) -> Chains:
        generator = np.random.default_rng([seed, number])
        key = jax.random.fold_in(jax.random.key(seed), number)
        shape, size = self.filter.shape, self.filter.batch
        nobody = np.zeros((size, 0), np.int64)
        source = drawn_from_others(generator, self.windows, nobody)
        starts, owners = self.windows.starts[source][:, None], self.windows.trajectories[source][:, None]
        pool = self._drawn(generator)
        # One table of the pool's first states: the whole dataset may be too large to hold.
        first_states = self._seen(pool.starts)
        within = Windows(np.arange(len(pool.starts)), pool.trajectories, pool.total)
        astray, alone = np.zeros((2, size), bool)
        for piece in range(1, shape.pieces):
            ends = self._seen(starts[:, -1] + shape.segment - 1)
            reached = self.continued(jax.random.fold_in(key, piece), ends)
            astray |= ~np.isfinite(reached).all(axis=1)
            nearest = nearest_targets(
                first_states, within, np.nan_to_num(reached), owners, PLAIN, 0.0, self.distinct
            )
            alone |= nearest < 0
            starts = np.column_stack([starts, pool.starts[nearest]])
            owners = np.column_stack([owners, pool.trajectories[nearest]])
        rejected = {NOWHERE: int(astray.sum()), NOBODY_ELSE: int((alone & ~astray).sum())}
        return self.filter.passed(starts[~(astray | alone)], generator, rejected)

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]:
        return self.filter.statistic(starts, generator)

    def _drawn(self, generator: np.random.Generator) -> Windows:
        if self.pool >= len(self.windows.starts):
            return self.windows
        chosen = np.sort(generator.choice(len(self.windows.starts), self.pool, replace=False))
        return Windows(self.windows.starts[chosen], self.windows.trajectories[chosen], self.windows.total)

    def _seen(self, rows: Int[np.ndarray, "_"]) -> Float[np.ndarray, "_ obs"]:
        return self.normaliser.normalise(np.asarray(self.observations[rows])).astype(np.float32)
