"""Scaling to zero mean and unit spread, undone exactly: constant dimensions keep their value, whatever a model says."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

CHUNK_ROWS = 1 << 18
CONSTANT = {4: 1e-6, 8: 1e-7}
"""A spread below this share of a dimension's size is rounding, not information. By bytes a number: eight hold more than
rounding there, but often come from four."""


class Normaliser(NamedTuple):
    """x ↦ (x − mean) / scale. `spread` is 0 on constant dimensions, so that undoing gives the mean there exactly."""

    mean: Float[np.ndarray, "dims"]
    scale: Float[np.ndarray, "dims"]
    spread: Float[np.ndarray, "dims"]

    def normalise(self, x: Any) -> Any:
        return (x - self.mean) / self.scale

    def undo(self, z: Any) -> Any:
        """In 64 bits: beside a huge mean, 32 would leave steps of its last digit alone."""
        return np.asarray(z, np.float64) * self.spread + self.mean


def fit_normaliser(column: Float[np.ndarray, "rows dims"]) -> Normaliser:
    """From all rows, in two chunked passes with float64 sums: huge offsets must not drown small spreads."""
    rows = len(column)
    total = np.zeros(column.shape[1])
    for start in range(0, rows, CHUNK_ROWS):
        total += np.asarray(column[start : start + CHUNK_ROWS], np.float64).sum(axis=0)
    mean = total / rows
    squares = np.zeros(column.shape[1])
    for start in range(0, rows, CHUNK_ROWS):
        squares += np.square(np.asarray(column[start : start + CHUNK_ROWS], np.float64) - mean).sum(axis=0)
    std = np.sqrt(squares / rows)
    constant = std <= CONSTANT[column.dtype.itemsize] * np.maximum(1.0, np.abs(mean))
    return Normaliser(
        mean.astype(np.float32),
        np.where(constant, 1.0, std).astype(np.float32),
        np.where(constant, 0.0, std).astype(np.float32),
    )
