"""Appendix C's geometry of a path in the plane: how far its heading turns from step to step, and how sharply.

    Δθ_t = ∠(s_t − s_{t−1}, s_{t+1} − s_t)                                            signed, in (−π, π]
    κ_t  = ‖s_{t+1} − 2 s_t + s_{t−1}‖ / (‖s_{t+1} − s_t‖² + ‖s_t − s_{t−1}‖²)        per unit of length

κ grows with sharpness: 0 on a straight line at even speed, and 1 / step where a path of even steps turns back. The
paper's table calls higher values better; its formula says the opposite, and we report what the formula gives. A body
that stands still has no heading: such places are NaN, and summaries leave them out and count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError


def direction_changes(xy: Float[np.ndarray, "*batch rows 2"]) -> Float[np.ndarray, "*batch inner"]:
    """Δθ at every place but the first and the last; positive to the left. NaN where either step has no length."""
    before, after = _steps(xy)
    cross = before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
    dot = (before * after).sum(axis=-1)
    # A cross product of −0 would put a turn of exactly half a circle at −π.
    angle = np.arctan2(cross + 0.0, dot)
    moved = before.any(axis=-1) & after.any(axis=-1)
    return np.where(moved, angle, np.nan)


def curvature(xy: Float[np.ndarray, "*batch rows 2"]) -> Float[np.ndarray, "*batch inner"]:
    """κ at every place but the first and the last. NaN where neither step has a length."""
    before, after = _steps(xy)
    bend = np.linalg.norm(after - before, axis=-1)
    lengths = np.square(after).sum(axis=-1) + np.square(before).sum(axis=-1)
    return np.divide(bend, lengths, out=np.full_like(bend, np.nan), where=lengths > 0)


@dataclass(frozen=True)
class PathGeometry:
    """Of each trajectory (or window), the means over its places. NaN where it has none with a heading."""

    turning: Float[np.ndarray, "paths"]
    """Mean |Δθ|, in radians."""
    bending: Float[np.ndarray, "paths"]
    """Mean κ."""
    still: float
    """Share of places without a heading."""

    def summary(self) -> GeometrySummary:
        turning, bending = (part[np.isfinite(part)] for part in (self.turning, self.bending))
        return GeometrySummary(len(self.turning), *_moments(turning), *_moments(bending), self.still)


@dataclass(frozen=True)
class GeometrySummary:
    """Mean and standard deviation over paths, as the paper's table has them; and the median, since κ has no upper end:
    a few places where a body all but stands still can be most of a mean. None where no path moves."""

    paths: int
    turning: float | None
    turning_std: float | None
    turning_median: float | None
    bending: float | None
    bending_std: float | None
    bending_median: float | None
    still: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def path_geometry(
    paths: Sequence[Float[np.ndarray, "_ 2"]],
    *,
    stride: int = 1,
    among: Sequence[Bool[np.ndarray, "_"]] | None = None,
) -> PathGeometry:
    """`stride`: steps between the places that are looked at: 1 is the paper's; an ant's every step sways, so that a
    longer one tells where it heads. `among`: rows that count, where not all of a path's do; a place counts with its
    middle row."""
    if stride < 1:
        raise ConfigError(
            "Places cannot be less than a step apart.", field="stride", found=stride, expected=">= 1"
        )
    turning, bending = np.full((2, len(paths)), np.nan)
    places = still = 0
    for number, path in enumerate(paths):
        thinned = np.asarray(path, np.float64)[::stride]
        if len(thinned) < 3:
            continue
        turns, bends = np.abs(direction_changes(thinned)), curvature(thinned)
        if among is not None:
            counts = among[number][::stride][1:-1]
            turns, bends = turns[counts], bends[counts]
        places += len(turns)
        still += int(np.isnan(turns).sum())
        turning[number], bending[number] = _mean(turns), _mean(bends)
    return PathGeometry(turning, bending, still / places if places else 0.0)


def dataset_geometry(
    dataset: Dataset,
    xy: tuple[int, int],
    *,
    stride: int = 1,
    among: Bool[np.ndarray, "rows"] | None = None,
) -> PathGeometry:
    """Of all trajectories of a dataset; `xy` are the entries of an observation that hold the place."""
    places = np.asarray(dataset.observations)[:, list(xy)]
    parts = [slice(a, b) for a, b in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True)]
    chosen = None if among is None else [among[part] for part in parts]
    return path_geometry([places[part] for part in parts], stride=stride, among=chosen)


def _steps(xy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # In 64 bits: second differences of a maze's float32 coordinates are their last digits.
    steps = np.diff(np.asarray(xy, np.float64), axis=-2)
    return steps[..., :-1, :], steps[..., 1:, :]


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _moments(values: np.ndarray) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    return float(values.mean()), float(values.std()), float(np.median(values))
