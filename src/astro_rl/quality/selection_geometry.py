"""Geometry of chosen source-target pairs, table `tab:td_geom` and its figure a to c: which targets a rule picks.

A pair is a piece, the gap behind it and the next piece. Of each, by appendix C's formulas (`geometry`):

    turn          |Δθ| where the gap begins and where it ends
    curvature     κ at both places, per unit of length; it grows with sharpness
    straightness  ‖s_{t+1} − s_{t−1}‖ / (‖s_{t+1} − s_t‖ + ‖s_t − s_{t−1}‖) there: 1 straight on, 0 back

over four places, read in two ways: `steps`, the states next to the gap (s_{end−1}, s_end | s_target, s_{target+1}), as
the formulas stand; `pieces`, the first and the last state of either piece, which an ant's sway from step to step leaves
alone. Besides, of the way from the source's end to the target:

    behind a wall    the straight line meets a wall
    out of reach     the shortest path is longer than 99 of 100 real windows of M + 1 steps get
    never joined     no recorded trajectory goes from the one cell to the other within M + 1 steps

The paper's figures are not of its formulas. Its mean |Δθ| of 3.147 is above π, which one angle cannot be; the sum of
the two (`turn_sum`) can. Its curvature is "higher is better" and between 0.70 and 0.93, while κ is 0 on a straight line
and has a unit; `straightness` is what its text describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.augment.models import FittedModels
from astro_rl.augment.selecting import selection_for
from astro_rl.augment.settings import changed
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.cells import ACROSS, Cells, fewest_steps, joins, visits
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.quality.geometry import curvature, direction_changes
from astro_rl.stitch.geometry import ChainShape, window_starts
from astro_rl.stitch.selection import Selection
from astro_rl.tasks.task import Task

Rule = Literal["temporal", "euclidean", "random", "original"]
RULES: tuple[Rule, ...] = ("temporal", "euclidean", "random", "original")
CHANGES: dict[Rule, dict[str, Any]] = {
    "temporal": {},
    "euclidean": {"selection": "euclidean"},
    "random": {"selection": "random"},
    "original": {"chains": "regenerated", "filter_real": False},
}
TITLES: dict[str, str] = {
    "temporal": "TD-Space",
    "euclidean": "Pre-Gen+Eucli",
    "random": "Rand",
    "original": "original traj",
}
PAPER: dict[Rule, dict[str, tuple[float, float]]] = {
    "euclidean": {"turn": (3.147, 2.621), "curvature": (0.697, 0.325)},
    "original": {"turn": (2.089, 1.455), "curvature": (0.764, 0.153)},
    "temporal": {"turn": (1.253, 0.451), "curvature": (0.934, 0.079)},
}
"""Table `tab:td_geom`, antmaze-large: mean and standard deviation."""
REACHED = 0.99
"""Quantile of what real windows of M + 1 steps cover that counts as within reach."""
WINDOWS = 4000
"""Real windows that reach is measured on."""
MOST_BATCHES = 64


@dataclass(frozen=True)
class Moments:
    """Over the pairs that have a value: where nothing moves there is no angle. None where none has."""

    mean: float | None
    std: float | None
    median: float | None
    count: int

    def __str__(self) -> str:
        return f"{'–':>16}" if self.mean is None else f"{self.mean:>8.3f} ±{self.std:>6.3f}"


@dataclass(frozen=True)
class Shapes:
    """One reading of all pairs."""

    turn: Moments
    turn_sum: Moments
    curvature: Moments
    straightness: Moments


@dataclass(frozen=True)
class SelectionGeometry:
    """One rule. Shares of its pairs."""

    rule: str
    pairs: int
    steps: Shapes
    pieces: Shapes
    gap: Moments
    """Length of the shortest path from the source's end to the target, in the environment's unit."""
    behind_wall: float
    out_of_reach: float
    never_joined: float
    examples: list[dict[str, Any]]
    """x-y of both pieces of a few pairs, and what was found of each: for pictures."""


@dataclass(frozen=True)
class SelectionReport:
    task: str
    shape: dict[str, int]
    reach: float
    """What counts as within reach in M + 1 steps, in the environment's unit."""
    cell: float
    """Side of the cells that `never_joined` counts."""
    rules: dict[str, SelectionGeometry]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "paper": {rule: dict(told) for rule, told in PAPER.items()}}

    def table(self) -> str:
        lines = [
            f"{self.task}: source-target pairs; {self.reach:.3g} is within reach, cells of {self.cell:.3g}",
            f"{'':15}{'pairs':>6}"
            + "".join(f"{name:>16}" for name in ("|Δθ| steps", "|Δθ| pieces", "κ pieces", "straight"))
            + "".join(f"{name:>7}" for name in ("wall", "far", "new")),
        ]
        for rule, found in self.rules.items():
            shown = (found.steps.turn, found.pieces.turn, found.pieces.curvature, found.pieces.straightness)
            shares = (found.behind_wall, found.out_of_reach, found.never_joined)
            lines.append(
                f"{TITLES.get(rule, rule):15}{found.pairs:>6}"
                + "".join(map(str, shown))
                + "".join(f"{100 * share:>6.1f}%" for share in shares)
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What pairs are held against, prepared once a dataset."""

    places: Float[np.ndarray, "rows 2"]
    shape: ChainShape
    grid: MazeGrid
    reach: float
    cells: Cells
    cell_of: Int[np.ndarray, "rows"]
    joined: Bool[np.ndarray, "cells cells"]
    """Ordered pairs of cells that some trajectory joins within M + 1 steps, and each with itself."""

    @classmethod
    def of(
        cls, dataset: Dataset, task: Task, shape: ChainShape, *, across: int = ACROSS, seed: int = 0
    ) -> Yardstick:
        if task.xy_indices is None:
            raise UnavailableError(
                f"{task.name} is not set in a maze, so its pairs have no plane to lie in.",
                fix="name a task of a maze, such as antmaze-large-stitch",
            )
        places = np.asarray(dataset.observations)[:, list(task.xy_indices)].astype(np.float64)
        grid, steps = MazeGrid.of_task(task), shape.mask + 1
        starts, _ = window_starts(dataset.offsets, steps + 1)
        if len(starts) == 0:
            raise DataError(
                "No trajectory is as long as a gap.",
                found=f"the longest has {int(dataset.lengths.max()) + 1} states",
                expected=f"{steps + 1}, M + 2",
            )
        drawn = np.random.default_rng(seed).choice(starts, min(WINDOWS, len(starts)), replace=False)
        covered = grid.distance(places[drawn], places[drawn + steps])
        cut_off = float(np.mean(~np.isfinite(covered)))
        if cut_off > 1 - REACHED:
            raise DataError(
                "Recorded states lie behind walls of the maze from one another, or inside them.",
                found=f"no way between the ends of {100 * cut_off:.0f} % of real windows",
                fix=f"name the task that the data is of: {task.name} is set in another maze",
            )
        cells = Cells.over(dataset, task.xy_indices, across)
        _, cell_of = np.unique(cells.of(dataset), axis=0, return_inverse=True)
        cell_of = cell_of.reshape(-1)
        count = int(cell_of.max()) + 1
        fewest = fewest_steps(joins(visits(cell_of, np.asarray(dataset.offsets)), steps), count)
        joined = (fewest <= steps) | np.eye(count, dtype=bool)
        return cls(places, shape, grid, float(np.quantile(covered, REACHED)), cells, cell_of, joined)

    def geometry(
        self, rule: str, starts: Int[np.ndarray, "chains pieces"], *, examples: int = 0
    ) -> SelectionGeometry:
        """Of all neighbouring pieces of the chains, by the first row of each piece."""
        source, target = starts[:, :-1].ravel(), starts[:, 1:].ravel()
        last = self.shape.segment - 1
        end = source + last
        near = self.places[np.stack([end - 1, end, target, target + 1], axis=1)]
        whole = self.places[np.stack([source, end, target, target + last], axis=1)]
        here, there = self.places[end], self.places[target]
        walls = self.grid.separated_by_wall(here, there)
        way = self.grid.distance(here, there)
        new = ~self.joined[self.cell_of[end], self.cell_of[target]]
        chosen = np.linspace(0, len(source) - 1, min(examples, len(source))).round().astype(int)
        return SelectionGeometry(
            rule=rule,
            pairs=len(source),
            steps=shapes(near),
            pieces=shapes(whole),
            gap=moments(np.where(np.isfinite(way), way, np.nan)),
            behind_wall=float(walls.mean()),
            out_of_reach=float((way > self.reach).mean()),
            never_joined=float(new.mean()),
            examples=[
                {
                    "source": self.places[source[k] : end[k] + 1].round(3).tolist(),
                    "target": self.places[target[k] : target[k] + last + 1].round(3).tolist(),
                    "behind_wall": bool(walls[k]),
                    "out_of_reach": bool(way[k] > self.reach),
                    "never_joined": bool(new[k]),
                }
                for k in chosen
            ],
        )


def selection_geometry(
    models: FittedModels,
    dataset: Dataset,
    task: Task,
    *,
    rules: Sequence[Rule] = RULES,
    pairs: int = 2000,
    examples: int = 24,
    across: int = ACROSS,
    seed: int = 0,
    latents: Float[np.ndarray, "rows latent"] | None = None,
) -> SelectionReport:
    """At least `pairs` pairs of each rule, under the fit's own settings; the last batch's surplus is left out."""
    yard = Yardstick.of(dataset, task, models.shape, across=across, seed=seed)
    table = models.temporal.encode(dataset.observations) if latents is None else latents
    found = {}
    for rule in rules:
        settings = changed(models.settings.generate, CHANGES[rule])
        starts = chosen_chains(selection_for(models, dataset, settings, table), pairs, seed)
        found[rule] = yard.geometry(rule, starts, examples=examples)
    return SelectionReport(task.name, asdict(models.shape), yard.reach, yard.cells.side, found)


def chosen_chains(selection: Selection, pairs: int, seed: int) -> Int[np.ndarray, "chains pieces"]:
    """As many chains as it takes to hold so many pairs, or as few as pass in `MOST_BATCHES` batches."""
    parts: list[np.ndarray] = []
    wanted = pairs
    for number in range(MOST_BATCHES):
        part = selection.batch(seed, number).starts
        parts.append(part)
        wanted -= part.shape[0] * (part.shape[1] - 1)
        if wanted <= 0:
            break
    starts = np.concatenate(parts)
    if len(starts) == 0:
        raise DataError(
            "The selection gives no chain.",
            found=f"0 in {MOST_BATCHES} batches",
            fix="raise generate.search.threshold, or choose fewer or shorter pieces",
        )
    return starts[: -(-pairs // (starts.shape[1] - 1))]


def shapes(xy: Float[np.ndarray, "pairs 4 2"]) -> Shapes:
    """Of four places each: how the way turns at the second and the third."""
    turns = np.abs(direction_changes(xy))
    steps = np.linalg.norm(np.diff(xy, axis=1), axis=-1)
    whole = np.linalg.norm(xy[:, 2:] - xy[:, :-2], axis=-1)
    lengths = steps[:, 1:] + steps[:, :-1]
    straight = np.divide(whole, lengths, out=np.full_like(whole, np.nan), where=lengths > 0)
    return Shapes(
        turn=moments(turns.mean(axis=1)),
        turn_sum=moments(turns.sum(axis=1)),
        curvature=moments(curvature(xy).mean(axis=1)),
        straightness=moments(straight.mean(axis=1)),
    )


def moments(values: Float[np.ndarray, "pairs"]) -> Moments:
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return Moments(None, None, None, 0)
    return Moments(float(known.mean()), float(known.std()), float(np.median(known)), len(known))
