"""From datasets and models to a story. Each piece is a function of its own: data without a plane has no maps, a run
without augmentation no trajectories, and the page leaves out what is missing.

Nothing is picked for its looks: fragments, chains and trajectories are drawn evenly through the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.augment.finish import LINEAGE_COLUMNS
from astro_rl.data.schema import Dataset
from astro_rl.report.evidence import ChosenPair, Curves, Film, Measures, NoFilm, Pair
from astro_rl.report.provenance import accounts_of, lineage_texts, method_name, method_of
from astro_rl.report.story import (
    Account,
    Chain,
    DistanceMap,
    Facts,
    Fragments,
    Link,
    PlaceMap,
    RunStory,
    Scores,
    Stage,
    Stitched,
    Truth,
    ValueMaps,
    Walls,
)
from astro_rl.report.walls import walls_of
from astro_rl.tasks.rewards import Reach
from astro_rl.tasks.task import Task

FRAGMENTS, PICTURES = 60, 12
WALKABLE, SINGLE = 3, 600
"""Transitions of a trajectory that is drawn by itself; shorter ones are drawn together, so many of them."""
STATES = 20_000
"""States behind a map, at most."""
SQUARES_A_CELL, SQUARES_ACROSS = 8, 56
"""Squares along a maze's cell, or along the longer side of what has no walls."""

Plane = tuple[int, int]


@runtime_checkable
class Distances(Protocol):
    """A `TemporalModel`, or whatever else counts steps between observations."""

    def steps(
        self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]
    ) -> Float[np.ndarray, "batch"]: ...


def gather(
    task: Task | None,
    dataset: Dataset,
    augmented: Dataset | None = None,
    *,
    name: str = "",
    distances: Distances | None = None,
    xy: Plane | None = None,
    values: Sequence[ValueMaps] = (),
    scores: Sequence[Scores] = (),
    accounts: Sequence[Account] | None = None,
    pairs: Sequence[Pair] = (),
    geometry: Measures | None = None,
    chosen: Mapping[str, tuple[ChosenPair, ...]] | None = None,
    film: Film | NoFilm | None = None,
    metrics: Measures | None = None,
    curves: Sequence[Curves] = (),
    truth: Sequence[Truth] = (),
    stages: Sequence[Stage] = (),
    machine: str | None = None,
    settings: Mapping[str, str] | None = None,
    commands: Sequence[str] = (),
    links: Sequence[Link] = (),
    limits: Sequence[str] = (),
) -> RunStory:
    """Everything that the objects at hand can tell. `xy`: where x and y stand in an observation; a task knows it.

    Accounts and lineage are read from the augmented data unless given. `outcomes` makes value maps and scores.
    """
    plane = xy if xy is not None or task is None else task.xy_indices
    goal, radius = goal_of(task)
    lineage = {} if augmented is None else dict(augmented.info.get("lineage", {}))
    long = augmented if augmented is not None and np.median(augmented.lengths) >= WALKABLE else None
    return RunStory(
        task=name or ("a dataset" if task is None else task.name),
        original=facts_of(dataset, "recorded"),
        augmented=None if augmented is None else facts_of(augmented, "augmented"),
        method=method_name(method_of(lineage)),
        goal=goal,
        goal_radius=radius,
        walls=None if task is None or plane is None else walls_of(task),
        fragments=None if plane is None else fragments_of(dataset, plane),
        distance=None
        if plane is None or distances is None
        else distance_map(
            distances, dataset, plane, near=goal, walls=None if task is None else walls_of(task)
        ),
        chains=() if plane is None or augmented is None else chains_of(augmented, dataset, plane),
        stitched=() if plane is None or long is None else stitched_of(long, dataset, plane),
        generated=None
        if plane is None or augmented is None or long is not None
        else fragments_of(augmented, plane, SINGLE),
        pairs=tuple(pairs),
        geometry=geometry,
        chosen={} if plane is None else dict(chosen or {}),
        film=film,
        metrics=metrics,
        curves=tuple(curves),
        values=tuple(values),
        scores=tuple(scores),
        accounts=tuple(accounts_of(lineage) if accounts is None else accounts),
        truth=tuple(truth),
        stages=tuple(stages),
        machine=machine,
        lineage=lineage_texts(lineage),
        settings=dict(settings or {}),
        commands=tuple(commands),
        links=tuple(links),
        limits=tuple(limits),
    )


def facts_of(dataset: Dataset, name: str) -> Facts:
    """Sizes and lengths, and for augmented data how much of it is generated and from how many recordings."""
    lengths = np.asarray(dataset.lengths)
    share = sources = None
    if has_lineage(dataset):
        owners = np.asarray(dataset.extras["source_trajectory"])
        rows = np.asarray(dataset.extras["source_step"])
        share = float(np.mean((owners < 0) | (rows < 0)))
        spans = pairwise(np.asarray(dataset.offsets))
        counts = [len(np.unique(part[part >= 0])) for part in (owners[a:b] for a, b in spans)]
        sources = float(np.median(counts))
    return Facts(
        name=name,
        trajectories=dataset.n_trajectories,
        transitions=dataset.n_transitions,
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        observation_dim=dataset.observation_dim,
        action_dim=dataset.action_dim,
        generated_share=share,
        sources=sources,
    )


def has_lineage(dataset: Dataset) -> bool:
    return all(column in dataset.extras for column in LINEAGE_COLUMNS[:2])


def goal_of(task: Task | None) -> tuple[tuple[float, float] | None, float | None]:
    """A goal that the agent itself has to reach in its plane, and how near is near enough."""
    rewards = None if task is None else task.rewards
    if task is None or not isinstance(rewards, Reach) or rewards.xy_indices != task.xy_indices:
        return None, None
    return rewards.goal, rewards.tolerance


def fragments_of(dataset: Dataset, xy: Plane, count: int = FRAGMENTS) -> Fragments:
    tracks = tuple(_places(dataset[int(number)].observations, xy) for number in evenly(len(dataset), count))
    return Fragments(tracks, total=dataset.n_trajectories)


def distance_map(
    distances: Distances,
    dataset: Dataset,
    xy: Plane,
    *,
    near: tuple[float, float] | None = None,
    walls: Walls | None = None,
    states: int = STATES,
) -> DistanceMap:
    """Steps between one recorded state and many others. The one is the nearest to `near`, or the first of all."""
    rows = evenly(dataset.n_rows, states)
    observations = np.asarray(dataset.observations[rows])
    places = _places(observations, xy)
    source = 0 if near is None else int(np.argmin(np.linalg.norm(places - np.asarray(near), axis=1)))
    start = np.broadcast_to(observations[source], observations.shape)
    steps = np.asarray(distances.steps(np.ascontiguousarray(start), observations), np.float64)
    return DistanceMap(places[source], PlaceMap(places, steps, cell_of(places, walls)))


def stitched_of(
    augmented: Dataset, dataset: Dataset, xy: Plane, count: int = PICTURES
) -> tuple[Stitched, ...]:
    """Some augmented trajectories with what is recorded in them."""
    if not has_lineage(augmented):
        return ()
    found = []
    for number in evenly(len(augmented), count).tolist():
        track = augmented[number]
        owners, _ = _origin(augmented, dataset, number)
        generated = generated_states(augmented, dataset, number)
        source = np.where(generated, -1, owners)
        found.append(Stitched(_places(track.observations, xy), generated, source))
    return tuple(found)


def generated_states(augmented: Dataset, dataset: Dataset, number: int) -> Bool[np.ndarray, "states"]:
    """Which states of an augmented trajectory no recording holds."""
    _, rows = _origin(augmented, dataset, number)
    return ~_recorded(augmented[number].observations, dataset, rows)


def chains_of(augmented: Dataset, dataset: Dataset, xy: Plane, count: int = PICTURES) -> tuple[Chain, ...]:
    """The recorded pieces behind some augmented trajectories, of those that have two or more."""
    if not has_lineage(augmented):
        return ()
    statistic = augmented.extras.get("filter_statistic")
    found = []
    for number in evenly(len(augmented), 4 * count).tolist():
        _, rows = _origin(augmented, dataset, number)
        pieces = [rows[a:b] for a, b in runs_of(rows)]
        if len(pieces) < 2:
            continue
        told = None if statistic is None else float(statistic[int(augmented.offsets[number])])
        found.append(Chain(tuple(_places(dataset.observations[piece], xy) for piece in pieces), told))
    return tuple(found[number] for number in evenly(len(found), count))


def runs_of(rows: Int[np.ndarray, "states"]) -> list[tuple[int, int]]:
    """Stretches of known rows that follow one another in the source, as (first, one past the last)."""
    known = rows >= 0
    breaks = np.flatnonzero(~known[1:] | ~known[:-1] | (np.diff(rows) != 1)) + 1
    cuts = np.concatenate([[0], breaks, [len(rows)]])
    return [(int(a), int(b)) for a, b in pairwise(cuts) if known[a]]


def cell_of(places: Float[np.ndarray, "places 2"], walls: Walls | None) -> float:
    """A square's side. In a maze it divides the cell, so that no square lies on both sides of a wall."""
    if walls is not None:
        return walls.size / SQUARES_A_CELL
    return max(float(np.ptp(places, axis=0).max()) / SQUARES_ACROSS, 1e-9)


def evenly(total: int, count: int) -> Int[np.ndarray, "chosen"]:
    """`count` numbers below `total`, spread over all of it; all of them where there are no more."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.int64))


def _places(observations: np.ndarray, xy: Plane) -> Float[np.ndarray, "states 2"]:
    return np.asarray(observations[:, list(xy)], np.float64)


def _origin(augmented: Dataset, dataset: Dataset, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A trajectory's source trajectories and source rows, −1 where there are none."""
    span = slice(int(augmented.offsets[number]), int(augmented.offsets[number + 1]))
    owners = np.asarray(augmented.extras["source_trajectory"][span], np.int64)
    steps = np.asarray(augmented.extras["source_step"][span], np.int64)
    known = (owners >= 0) & (steps >= 0)
    rows = np.asarray(dataset.offsets)[np.where(known, owners, 0)] + steps
    return np.where(known, owners, -1), np.where(known, rows, -1)


def _recorded(
    observations: Float[np.ndarray, "states obs"], dataset: Dataset, rows: Int[np.ndarray, "states"]
) -> Bool[np.ndarray, "states"]:
    """States that are their source's. `rollout` names a source and writes down what the model made of it."""
    known = rows >= 0
    theirs = np.asarray(dataset.observations[np.where(known, rows, 0)])
    return known & np.isclose(observations, theirs, rtol=1e-5, atol=1e-6).all(axis=1)
