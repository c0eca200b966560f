"""Augmented data against the simulator: put it into each state, apply the action, see where it ends up.

One-step errors by kind of transition, told apart by the lineage column `source_step` (−1 on generated rows):

    generated    generated → generated
    into gap     known → generated, the first step of a gap
    out of gap   generated → known, the junction
    known        known → known: real rows in `anchored` data
    real         rows of the source dataset, replayed the same way: the floor
    other action the same rows with each other's actions: what knowing nothing of the action costs

An error is a Euclidean distance within one group of numbers (x-y, other positions, velocities), held against the
typical one-step change of that group in real data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.quality.openloop import Divergence, measure_divergence
from astro_rl.quality.replay import checked_state, replay_steps
from astro_rl.quality.truth_table import truth_table
from astro_rl.tasks.task import Task

CONTRADICTED = (0.25, 0.5, 1.0)
"""Shares of a typical step that x-y errors are counted above. Above 1.0 the simulator contradicts the transition: it
lands further from the claimed state than a step goes. Real rows are at 1e-5."""

SCALE_ROWS = 100_000
KINDS = ("generated", "into gap", "out of gap", "known")


@dataclass(frozen=True)
class GroupError:
    """Errors of one group of numbers, in the environment's units and against a typical step."""

    median: float
    p95: float
    median_of_rms_step: float
    p95_of_rms_step: float
    median_of_median_step: float
    p95_of_median_step: float


@dataclass(frozen=True)
class KindTruth:
    """One kind of transition."""

    kind: str
    population: int
    """Transitions of this kind in the data; `rows` of them were replayed."""
    rows: int
    groups: dict[str, GroupError]
    xy_above: dict[str, float]
    """Share of transitions whose x-y error is above so many typical (root mean square) steps."""
    contradicted: float
    """Share in which the error of any group is above its typical step."""


@dataclass(frozen=True)
class Walls:
    """Straight lines between consecutive x-y that meet a wall. Walls are not widened by the body's radius."""

    transitions: int
    crossing: float
    """Share of the transitions with a generated end."""
    inside: float
    """Share of generated states that stand inside a wall."""
    crossing_real: float | None


@dataclass(frozen=True)
class TruthReport:
    """Everything that was measured on one augmented dataset."""

    task: str
    transitions: int
    scale_from: str
    """Which transitions typical steps are measured on."""
    typical_step: dict[str, dict[str, float]]
    """`rms` and `median` change in one step, by group."""
    kinds: dict[str, KindTruth]
    walls: Walls
    divergence: dict[str, Divergence]
    settings: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> str:
        return truth_table(self.as_json())


def truth_of(
    dataset: Dataset,
    task: Task,
    *,
    rows: int = 2000,
    seed: int = 0,
    real: Dataset | None = None,
    sequences: int = 100,
    workers: int | None = 0,
    progress: Callable[[str], None] | None = None,
) -> TruthReport:
    """`rows` transitions of each kind, `sequences` whole trajectories. Without `real`, the known rows of `dataset`
    stand for real data. Data without lineage columns counts as generated throughout."""
    checked_state(task, dataset.observations[:1], dataset.actions[:1])
    say = progress or (lambda text: None)
    known = known_rows(dataset)
    leaving = dataset.transition_rows()
    kinds = dict(zip(KINDS, _by_kind(known, leaving), strict=True))
    source, source_rows, scale_from = _yardstick(dataset, real, kinds["known"], leaving)
    groups = groups_of(task)
    steps = _typical_steps(source, source_rows, groups)
    generator = np.random.default_rng(seed)
    found = {}
    for kind, population in kinds.items():
        if len(population):
            say(f"one-step errors: {kind}")
            chosen = _choose(generator, population, rows)
            measured = _errors(dataset, chosen, dataset.actions[chosen], task, groups, workers)
            found[kind] = _kind_truth(kind, len(population), measured, steps)
    say("one-step errors: real")
    chosen = _choose(generator, source_rows, rows)
    others = np.roll(chosen[generator.permutation(len(chosen))], 1)
    for kind, actions in (("real", source.actions[chosen]), ("other action", source.actions[others])):
        measured = _errors(source, chosen, actions, task, groups, workers)
        found[kind] = _kind_truth(kind, len(source_rows), measured, steps)
    say("open-loop divergence")
    divergence = measure_divergence(
        dataset,
        known,
        task,
        source if real is not None else None,
        sequences=sequences,
        generator=generator,
        workers=workers,
    )
    say("walls")
    return TruthReport(
        task=task.name,
        transitions=len(leaving),
        scale_from=scale_from,
        typical_step=steps,
        kinds=found,
        walls=_walls(dataset, known, leaving, task, source, source_rows if real is not None else None),
        divergence=divergence,
        settings={"rows": rows, "seed": seed, "sequences": sequences},
    )


def known_rows(dataset: Dataset) -> Bool[np.ndarray, "rows"]:
    """Rows that stand in the source. None do where there are no lineage columns."""
    if "source_step" not in dataset.extras:
        return np.zeros(dataset.n_rows, bool)
    return np.asarray(dataset.extras["source_step"]) >= 0


def groups_of(task: Task) -> dict[str, Int[np.ndarray, "_"]]:
    """Entries of an observation by what they are: x-y, other positions, velocities."""
    state = checked_state(task, np.zeros((1, task.observation_dim)), np.zeros((1, task.action_dim)))
    entries = np.arange(task.observation_dim)
    plane = np.isin(entries, task.xy_indices or ())
    parts = {
        "x-y": entries[plane],
        "positions": entries[~plane & (entries < state.n_qpos)],
        "velocities": entries[entries >= state.n_qpos],
    }
    return {name: part for name, part in parts.items() if len(part)}


def differences(
    task: Task, a: Float[np.ndarray, "rows obs"], b: Float[np.ndarray, "rows obs"]
) -> Float[np.ndarray, "rows obs"]:
    """a − b in double precision. A quaternion and its negative are one rotation, so the nearer of the two counts."""
    a, b = np.array(a, np.float64), np.asarray(b, np.float64)
    for part in task.layout.unit_vectors if task.layout is not None else ():
        if part.stop - part.start == 4:
            place = slice(part.start, part.stop)
            a[:, place] *= np.where((a[:, place] * b[:, place]).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    return a - b


def _by_kind(known: np.ndarray, leaving: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows that a transition leaves, in the order of `KINDS`."""
    left, entered = known[leaving], known[leaving + 1]
    return tuple(
        leaving[part] for part in (~left & ~entered, left & ~entered, ~left & entered, left & entered)
    )


def _yardstick(
    dataset: Dataset, real: Dataset | None, known: np.ndarray, leaving: np.ndarray
) -> tuple[Dataset, np.ndarray, str]:
    if real is not None:
        if real.observation_dim != dataset.observation_dim or real.action_dim != dataset.action_dim:
            raise DataError(
                "The real data is not of the environment that the augmented data is of.",
                found=f"observations of {real.observation_dim}, actions of {real.action_dim} numbers",
                expected=f"{dataset.observation_dim} and {dataset.action_dim}",
            )
        return real, real.transition_rows(), "real data"
    if len(known):
        return dataset, known, "known rows of the augmented data"
    return dataset, leaving, "all rows of the augmented data, for want of known ones"


def _choose(generator: np.random.Generator, population: np.ndarray, rows: int) -> np.ndarray:
    return np.sort(generator.choice(population, min(rows, len(population)), replace=False))


def _typical_steps(
    source: Dataset, rows: np.ndarray, groups: dict[str, np.ndarray]
) -> dict[str, dict[str, float]]:
    rows = rows[:: max(1, len(rows) // SCALE_ROWS)]
    change = source.observations[rows + 1].astype(np.float64) - source.observations[rows]
    lengths = {name: np.linalg.norm(change[:, part], axis=1) for name, part in groups.items()}
    return {
        name: {"rms": float(np.sqrt(np.square(length).mean())), "median": float(np.median(length))}
        for name, length in lengths.items()
    }


def _errors(
    dataset: Dataset,
    rows: np.ndarray,
    actions: np.ndarray,
    task: Task,
    groups: dict[str, np.ndarray],
    workers: int | None,
) -> dict[str, np.ndarray]:
    met = replay_steps(task, np.asarray(dataset.observations[rows]), np.asarray(actions), workers=workers)
    missed = differences(task, met, dataset.observations[rows + 1])
    return {name: np.linalg.norm(missed[:, part], axis=1) for name, part in groups.items()}


def _kind_truth(
    kind: str, population: int, errors: dict[str, np.ndarray], steps: dict[str, dict[str, float]]
) -> KindTruth:
    groups, beyond = {}, np.zeros(len(errors["x-y"]), bool)
    for name, error in errors.items():
        middle, high = (float(q) for q in np.quantile(error, [0.5, 0.95]))
        rms, typical = (max(steps[name][key], 1e-12) for key in ("rms", "median"))
        groups[name] = GroupError(middle, high, middle / rms, high / rms, middle / typical, high / typical)
        beyond |= error > rms
    of_a_step = errors["x-y"] / max(steps["x-y"]["rms"], 1e-12)
    above = {str(limit): float((of_a_step > limit).mean()) for limit in CONTRADICTED}
    return KindTruth(kind, population, len(beyond), groups, above, float(beyond.mean()))


def _walls(
    dataset: Dataset,
    known: np.ndarray,
    leaving: np.ndarray,
    task: Task,
    source: Dataset,
    source_rows: np.ndarray | None,
) -> Walls:
    grid, plane = MazeGrid.of_task(task), list(task.xy_indices or ())
    touched = leaving[~(known[leaving] & known[leaving + 1])]
    made = np.flatnonzero(~known)

    def crossing(data: Dataset, rows: np.ndarray) -> float:
        here, there = data.observations[rows][:, plane], data.observations[rows + 1][:, plane]
        return float(grid.separated_by_wall(here, there).mean()) if len(rows) else 0.0

    places = dataset.observations[made][:, plane]
    inside = grid.separated_by_wall(places, places)
    of_real = None
    if source_rows is not None:
        of_real = crossing(source, source_rows[:: max(1, len(source_rows) // SCALE_ROWS)])
    return Walls(
        len(touched), crossing(dataset, touched), float(inside.mean()) if len(made) else 0.0, of_real
    )
