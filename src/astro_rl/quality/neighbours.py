"""Exact nearest neighbours by blocked matrix products, and the units in which states and transitions are apart.

A distance is a root mean square over the numbers of a state (s) or of a transition (s, a, s' − s), each in units of its
own spread in real data, a change in units of its typical one. Numbers that never vary do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from astro_rl.data.normaliser import CONSTANT
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

BLOCK = 2048
"""Reference rows compared at once: 16 KiB a query."""
SCALE_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Units:
    """What each number of a row is divided by; 0 where it never varies."""

    mean: Float[np.ndarray, "obs"]
    state: Float[np.ndarray, "obs"]
    action: Float[np.ndarray, "act"]
    change: Float[np.ndarray, "obs"]
    """Typical (root mean square) one-step changes."""

    @classmethod
    def of(cls, real: Dataset) -> Units:
        rows = real.transition_rows()
        rows = rows[:: max(1, len(rows) // SCALE_ROWS)]
        here = np.asarray(real.observations[rows], np.float64)
        change = np.asarray(real.observations[rows + 1], np.float64) - here
        spread = here.std(axis=0)
        spread[spread <= CONSTANT[4] * np.maximum(1.0, np.abs(here.mean(axis=0)))] = 0.0
        if not spread.any():
            raise DataError(
                "Every dimension of the observations is constant.",
                field="observations",
                fix="look at the recording: astro-rl data inspect",
            )
        typical = np.sqrt(np.square(change).mean(axis=0))
        typical[spread == 0] = 0.0
        action = np.asarray(real.actions[rows], np.float64).std(axis=0)
        action[action <= CONSTANT[4]] = 0.0
        return cls(here.mean(axis=0), spread, action, typical)

    def states(self, dataset: Dataset, rows: Int[np.ndarray, "rows"]) -> Float[np.ndarray, "rows numbers"]:
        return _scaled(np.asarray(dataset.observations[rows], np.float64) - self.mean, self.state)

    def actions(self, actions: Float[np.ndarray, "rows act"]) -> Float[np.ndarray, "rows numbers"]:
        return _scaled(np.asarray(actions, np.float64), self.action)

    def changes(self, dataset: Dataset, rows: Int[np.ndarray, "rows"]) -> Float[np.ndarray, "rows numbers"]:
        after = np.asarray(dataset.observations[rows + 1], np.float64)
        return _scaled(after - np.asarray(dataset.observations[rows], np.float64), self.change)

    def transitions(
        self, dataset: Dataset, rows: Int[np.ndarray, "rows"]
    ) -> Float[np.ndarray, "rows numbers"]:
        """(s, a, s' − s) of the transitions that leave the rows."""
        parts = self.states(dataset, rows), self.actions(dataset.actions[rows]), self.changes(dataset, rows)
        return np.concatenate(parts, axis=1)


def nearest(
    queries: Float[np.ndarray, "queries numbers"], reference: Float[np.ndarray, "reference numbers"]
) -> Float[np.ndarray, "queries"]:
    """Root mean square distance to the nearest reference row.

    ‖q − r‖² = ‖q‖² + ‖r‖² − 2 q·r finds the row, in 64 bits; the distance is then taken directly, because what is left
    of that sum between near rows is rounding.
    """
    best = np.full(len(queries), np.inf)
    rows = np.zeros(len(queries), np.int64)
    for start in range(0, len(reference), BLOCK):
        part = reference[start : start + BLOCK]
        # ‖q‖² is the same for all rows of the reference.
        squares = np.square(part).sum(axis=1) - 2.0 * (queries @ part.T)
        here = squares.argmin(axis=1)
        found = squares[np.arange(len(queries)), here]
        nearer = found < best
        best[nearer], rows[nearer] = found[nearer], here[nearer] + start
    apart = np.square(queries - reference[rows]).mean(axis=1)
    return np.sqrt(apart)


def _scaled(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    return values[:, units > 0] / units[units > 0]
