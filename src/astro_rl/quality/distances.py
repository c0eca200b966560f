"""Learned distances held against the truth: shortest paths through the maze, in steps at the data's own speed.

True steps of a pair are its shortest path (`geodesics`) divided by one speed, the x-y path that the data covers in a
step while it is on its way. That speed is a fact of the data: no learned distance enters it, so a learned scale that
is off shows as an error here. Euclidean distance, the rival, has no scale of its own and gets the best line fitted to
the truth; the learned distance is reported both as it is and with the same favour.

Truth knows places alone. A body needs steps to turn and to change its gait where x and y stay the same, and a point
on its lucky steps is faster than on its usual ones: both count as errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.stitch.windows import window_starts
from astro_rl.tasks.task import Task

NEAR = 100.0
"""True steps under which a pair is near."""
DETOUR = 1.25
"""A path this many times as long as the straight line is a detour. Most walls are passed at next to no extra length: in
OGBench's medium maze half of all walled pairs cost less than 4 %, so that walled pairs alone say little."""
SPEED_STEPS = 18
"""Steps of the windows that speed is read off: the paper's sub-trajectory, two cells' width for an ant."""
SPEED_WINDOWS = 4096
MOVING_SHARE = 0.5
"""A window is on its way if it gets at least this share of what the farthest twentieth of windows get; the rule of
`stitch.gauge`, in units of the maze."""
CALIBRATION_EDGES = (0.0, 25.0, 50.0, 100.0, 200.0, 400.0, np.inf)

Vector = Float[np.ndarray, "pairs"]


@runtime_checkable
class Measure(Protocol):
    """What is judged: `temporal.model.TemporalModel`, or anything else that says how many steps apart states are."""

    def steps(
        self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]
    ) -> Float[np.ndarray, "batch"]: ...

    def saturated(self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]) -> float: ...


@dataclass(frozen=True)
class Speed:
    """How fast the data moves through the maze, in its units a step, idle windows left aside."""

    path: float
    """Median length of the x-y path a step: what true steps are counted with."""
    progress: float
    """Median shortest path between a window's ends, a step: less than `path` by all wobbling and turning back."""
    moving: float
    """Share of the windows that are on their way."""


@dataclass(frozen=True)
class Agreement:
    """One distance against true steps over one set of pairs. None: too few pairs to say."""

    rank_correlation: float | None
    """Spearman's."""
    relative_error: float | None
    """Median of |measured − true| / true."""
    near_relative_error: float | None
    """The same over pairs under `NEAR` true steps."""
    ratio: float | None
    """Median of measured / true: 1 where the scale is right."""


@dataclass(frozen=True)
class DistanceReport:
    """`agreement[part][pairs][distance]`: parts `training` and `held_out`; pairs `all`, `walled` (a wall crosses the
    straight line), `in_sight` and `detour`; distances `learned`, `learned_fitted` and `euclidean`."""

    speed: Speed
    agreement: Mapping[str, Mapping[str, Mapping[str, Agreement]]]
    counts: Mapping[str, Mapping[str, int]]
    """Pairs of each kind, and how many were left out."""
    calibration: Mapping[str, list[dict[str, float]]]
    """By ranges of true steps: quartiles of the learned ones."""
    saturated: Mapping[str, float]
    """Share of the pairs that read only "far"."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def distance_report(
    model: Measure,
    dataset: Dataset,
    task: Task,
    *,
    pairs: int = 10_000,
    seed: int = 0,
    held_out: Dataset | None = None,
    grid: MazeGrid | None = None,
) -> DistanceReport:
    """Random pairs of states of the dataset, and of trajectories that the model has not seen.

    `grid`: the task's maze where it is built already. Speed is measured on `dataset` alone.
    """
    if task.xy_indices is None:
        raise UnavailableError(
            f"{task.name} is not set in a maze, so its learned distances have no truth to be held against.",
            fix="name a task of a maze, such as antmaze-medium-stitch",
        )
    grid = grid or MazeGrid.of_task(task)
    xy = list(task.xy_indices)
    generator = np.random.default_rng(seed)
    speed = travel_speed(dataset, grid, xy, generator)
    parts = {"training": dataset} | ({} if held_out is None else {"held_out": held_out})
    agreement, counts, calibration, saturated = {}, {}, {}, {}
    for name, part in parts.items():
        a, b = (np.asarray(part.observations[rows]) for rows in random_pairs(part.n_rows, pairs, generator))
        truth = grid.distance(a[:, xy], b[:, xy]) / speed.path
        # Under a step apart, a relative error says nothing; in a wall (bodies do touch them) there is no path.
        kept = np.isfinite(truth) & (truth >= 1)
        a, b, truth = a[kept], b[kept], truth[kept]
        learned = np.asarray(model.steps(a, b), np.float64)
        straight = np.linalg.norm(a[:, xy].astype(np.float64) - b[:, xy], axis=-1)
        walled = grid.separated_by_wall(a[:, xy], b[:, xy])
        groups = {"all": np.ones(len(truth), bool), "walled": walled, "in_sight": ~walled}
        groups["detour"] = truth * speed.path >= DETOUR * straight
        agreement[name] = agreements(learned, straight, truth, groups)
        counts[name] = {group: int(chosen.sum()) for group, chosen in groups.items()}
        counts[name] |= {"near": int((truth < NEAR).sum()), "left_out": int((~kept).sum())}
        calibration[name] = calibration_of(learned, truth)
        saturated[name] = model.saturated(a, b)
    return DistanceReport(speed, agreement, counts, calibration, saturated)


def travel_speed(dataset: Dataset, grid: MazeGrid, xy: list[int], generator: np.random.Generator) -> Speed:
    """Over windows of `SPEED_STEPS` steps, those that stay where they are left out."""
    starts, _ = window_starts(dataset.offsets, SPEED_STEPS + 1)
    if len(starts) == 0:
        raise DataError(
            "No trajectory is long enough to measure the data's speed.",
            found=f"trajectories of up to {int(np.diff(dataset.offsets).max(initial=0))} states",
            expected=f"{SPEED_STEPS + 1} or more",
        )
    if len(starts) > SPEED_WINDOWS:
        starts = np.sort(generator.choice(starts, SPEED_WINDOWS, replace=False))
    rows = starts[:, None] + np.arange(SPEED_STEPS + 1)
    places = np.asarray(dataset.observations[rows.ravel()])[:, xy].astype(np.float64)
    places = places.reshape(*rows.shape, 2)
    travelled = np.linalg.norm(np.diff(places, axis=1), axis=-1).sum(axis=1)
    apart = grid.distance(places[:, 0], places[:, -1])
    travelled, apart = travelled[np.isfinite(apart)], apart[np.isfinite(apart)]
    farthest = np.quantile(apart, 0.95) if len(apart) else 0.0
    if not farthest > 0:
        raise DataError(
            "The dataset stays where it is, so it has no speed.",
            found=f"{len(apart)} windows of {SPEED_STEPS} steps, none of which gets anywhere",
            fix="inspect the dataset for idle trajectories, or the task for its x and y",
        )
    moving = apart >= MOVING_SHARE * farthest
    return Speed(
        path=float(np.median(travelled[moving])) / SPEED_STEPS,
        progress=float(np.median(apart[moving])) / SPEED_STEPS,
        moving=float(moving.mean()),
    )


def random_pairs(rows: int, pairs: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of states drawn at random, the first sorted: a memory map is read in order."""
    return np.sort(generator.integers(rows, size=pairs)), generator.integers(rows, size=pairs)


def agreements(
    learned: Vector, straight: Vector, truth: Vector, groups: Mapping[str, Bool[np.ndarray, "pairs"]]
) -> dict[str, dict[str, Agreement]]:
    """All distances over all groups. Lines are fitted over all pairs, and over all near ones for the near error."""
    near = truth < NEAR
    measured = {
        "learned": (learned, learned),
        "learned_fitted": (best_line(learned, truth), best_line(learned, truth, near)),
        "euclidean": (best_line(straight, truth), best_line(straight, truth, near)),
    }
    raw = {"learned": learned, "learned_fitted": learned, "euclidean": straight}
    found: dict[str, dict[str, Agreement]] = {}
    for group, chosen in groups.items():
        found[group] = {}
        for name, (overall, nearby) in measured.items():
            found[group][name] = Agreement(
                rank_correlation=spearman(raw[name][chosen], truth[chosen]),
                relative_error=_median_error(overall[chosen], truth[chosen]),
                near_relative_error=_median_error(nearby[chosen & near], truth[chosen & near]),
                ratio=float(np.median(overall[chosen] / truth[chosen])) if chosen.any() else None,
            )
    return found


def best_line(
    measured: Vector, truth: Vector, among: Bool[np.ndarray, "pairs"] | None = None, rounds: int = 50
) -> Vector:
    """a · measured + b with the least mean of |a · measured + b − true| / true: the line that is kindest to the
    figure reported. By least squares, weighted anew each round."""
    chosen = np.ones(len(truth), bool) if among is None else among
    if chosen.sum() < 2:
        return measured
    design = np.stack([measured[chosen], np.ones(chosen.sum())], axis=1) / truth[chosen, None]
    weights = np.ones(len(design))
    line = np.zeros(2)
    for _ in range(rounds):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, None], root, rcond=None)[0]
        weights = 1 / np.maximum(np.abs(design @ line - 1), 1e-4)
    return line[0] * measured + line[1]


def spearman(a: Vector, b: Vector) -> float | None:
    """Correlation of ranks; equal values share the mean of their ranks. None where one does not vary."""
    first, second = _ranks(a), _ranks(b)
    if len(a) < 2 or first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def calibration_of(learned: Vector, truth: Vector) -> list[dict[str, float]]:
    table = []
    for low, high in pairwise(CALIBRATION_EDGES):
        inside = (truth >= low) & (truth < high)
        if inside.any():
            quartiles = np.quantile(learned[inside], (0.25, 0.5, 0.75))
            table.append(
                {"from": low, "pairs": int(inside.sum()), "true": float(np.median(truth[inside]))}
                | {name: float(q) for name, q in zip(("lower", "median", "upper"), quartiles, strict=True)}
            )
    return table


def _ranks(values: Vector) -> Vector:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def _median_error(measured: Vector, truth: Vector) -> float | None:
    return float(np.median(np.abs(measured - truth) / truth)) if len(truth) else None
