"""How far the simulator strays from a sequence when only its first state and its actions are given.

    whole   from the first state of a trajectory, all its actions: x-y distance after some steps, where the first gap
            ends, and at the end
    gap     from the last known state before a gap, the gap's actions alone: the errors of `whole` without the chaos of
            what came before

Real sequences of the same lengths are the floor. It is not 0: an ant's steps magnify the rounding of float32
observations about a thousandfold in thirty steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from astro_rl.data.schema import Dataset
from astro_rl.quality.replay import open_loops
from astro_rl.tasks.task import Task

MARKS = (1, 10, 50)
"""Steps at which distances are taken, where a sequence has so many."""


@dataclass(frozen=True)
class Distance:
    """x-y distances in the environment's units."""

    sequences: int
    median: float
    p95: float


@dataclass(frozen=True)
class Divergence:
    """Distances by place: "1", "10", "50", "end of gap", "end". A place that no sequence has is left out."""

    steps: float
    """Mean number of steps of a sequence."""
    generated: dict[str, Distance]
    real: dict[str, Distance] | None


def measure_divergence(
    dataset: Dataset,
    known: Bool[np.ndarray, "rows"],
    task: Task,
    real: Dataset | None,
    *,
    sequences: int,
    generator: np.random.Generator,
    workers: int | None = 0,
) -> dict[str, Divergence]:
    """Both measures on up to `sequences` trajectories that have generated rows."""
    offsets = np.asarray(dataset.offsets)
    begins, stops = gap_rows(known, offsets)
    have = np.flatnonzero(begins >= 0)
    if not len(have):
        return {}
    chosen = np.sort(generator.choice(have, min(sequences, len(have)), replace=False))
    first, last = offsets[:-1][chosen], offsets[1:][chosen] - 1
    begins, stops = begins[chosen], stops[chosen]
    found = {"whole": _measure(dataset, task, first, last, {"end of gap": stops - first}, workers)}
    # A trajectory that is generated from its first state on has no known state before the gap: its own first one.
    before = np.maximum(begins - 1, first)
    landing = np.minimum(stops, last)
    longer = landing > before
    found["gap"] = _measure(dataset, task, before[longer], landing[longer], {}, workers)
    lengths = {"whole": last - first, "gap": (landing - before)[longer]}
    floor = {}
    if real is not None:
        for name, steps in lengths.items():
            starts, ends = _real_windows(real, steps, generator)
            floor[name] = _measure(real, task, starts, ends, {}, workers)
    return {
        name: Divergence(float(lengths[name].mean()), found[name], floor.get(name))
        for name in found
        if len(lengths[name])
    }


def gap_rows(
    known: Bool[np.ndarray, "rows"], offsets: Int[np.ndarray, "trajectories_plus_1"]
) -> tuple[Int[np.ndarray, "trajectories"], Int[np.ndarray, "trajectories"]]:
    """Of each trajectory's first run of generated rows, the first row and the row behind the last; −1 without any."""
    begins, stops = np.full((2, len(offsets) - 1), -1)
    for number, (start, stop) in enumerate(itertools.pairwise(offsets)):
        made = ~known[start:stop]
        if made.any():
            begin = int(np.argmax(made))
            run = made[begin:]
            begins[number] = start + begin
            stops[number] = stop if run.all() else start + begin + int(np.argmin(run))
    return begins, stops


def _measure(
    dataset: Dataset,
    task: Task,
    first: np.ndarray,
    last: np.ndarray,
    places: dict[str, np.ndarray],
    workers: int | None,
) -> dict[str, Distance]:
    """Replays rows first to last of each sequence. `places` are steps, one a sequence."""
    plane = list(task.xy_indices or ())
    actions = [np.asarray(dataset.actions[a:b]) for a, b in zip(first, last, strict=True)]
    met = open_loops(task, np.asarray(dataset.observations[first]), actions, workers=workers)
    apart = [
        np.linalg.norm(reached[:, plane] - dataset.observations[a : b + 1][:, plane], axis=1)
        for reached, a, b in zip(met, first, last, strict=True)
    ]
    distances = {str(mark): np.array([d[mark] for d in apart if len(d) > mark]) for mark in MARKS}
    for name, steps in places.items():
        distances[name] = np.array([d[min(step, len(d) - 1)] for d, step in zip(apart, steps, strict=True)])
    distances["end"] = np.array([d[-1] for d in apart])
    return {
        name: Distance(len(d), float(np.median(d)), float(np.quantile(d, 0.95)))
        for name, d in distances.items()
        if len(d)
    }


def _real_windows(
    real: Dataset, steps: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A random window of each length, shortened where trajectories are shorter."""
    lengths = np.asarray(real.lengths)
    steps = np.minimum(steps, lengths.max())
    first = np.empty(len(steps), np.int64)
    for number, wanted in enumerate(steps):
        owner = generator.choice(np.flatnonzero(lengths >= wanted))
        first[number] = real.offsets[owner] + generator.integers(lengths[owner] - wanted + 1)
    return first, first + steps
