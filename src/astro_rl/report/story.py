"""What a run has to tell: plain arrays and texts, no models and no datasets. `gather` fills it, `page` writes it.

Every part but the first few is optional. A part that is absent leaves its section out, so that the same page
serves `make quickstart`, `astro-rl run` on any task, and data that no plane describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.errors import DataError
from astro_rl.report.evidence import ChosenPair, Curves, Film, Measures, NoFilm, Pair

PERCENT = "%"


@dataclass(frozen=True, eq=False)
class Walls:
    """A maze's walls: squares of one size, by their lower left corners."""

    corners: Float[np.ndarray, "walls 2"]
    size: float


@dataclass(frozen=True)
class Facts:
    """A dataset in figures. Lengths are in transitions."""

    name: str
    trajectories: int
    transitions: int
    shortest: int
    median: float
    longest: int
    observation_dim: int
    action_dim: int
    generated_share: float | None = None
    """Share of states that no recording holds; None for recorded data."""
    sources: float | None = None
    """Median number of recordings that a trajectory is put together from; None for recorded data."""


@dataclass(frozen=True, eq=False)
class Fragments:
    """Some of a dataset's trajectories, and places that all of them visit."""

    tracks: tuple[Float[np.ndarray, "_ 2"], ...]
    total: int


@dataclass(frozen=True, eq=False)
class PlaceMap:
    """A number for each of many places, drawn as squares of side `cell`, each the mean of what lies in it."""

    xy: Float[np.ndarray, "places 2"]
    values: Float[np.ndarray, "places"]
    cell: float


@dataclass(frozen=True, eq=False)
class DistanceMap:
    """Learned steps between one place and all others."""

    source: Float[np.ndarray, "2"]
    steps: PlaceMap


@dataclass(frozen=True, eq=False)
class Chain:
    """The recorded pieces of a chain, in order."""

    pieces: tuple[Float[np.ndarray, "_ 2"], ...]
    statistic: float | None = None
    """E[Δ_d], what the filter looked at."""


@dataclass(frozen=True, eq=False)
class Stitched:
    """One completed trajectory."""

    xy: Float[np.ndarray, "states 2"]
    generated: Bool[np.ndarray, "states"]
    """Whether a state comes from the models; the others are recorded."""
    source: Int[np.ndarray, "states"] | None = None
    """Which recording a state comes from; −1 where generated."""


@dataclass(frozen=True, eq=False)
class ValueMaps:
    """What a learner expects from each place, without and with augmented data."""

    learner: str
    xy: Float[np.ndarray, "places 2"]
    before: Float[np.ndarray, "places"]
    after: Float[np.ndarray, "places"]
    cell: float
    seeds: int = 1
    """Over how many seeds values are averaged."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One learner's final scores on each arm, a figure a seed. The first arm is what others are compared with."""

    learner: str
    arms: Mapping[str, Float[np.ndarray, "_"]]
    episodes: int
    """Evaluation episodes behind each figure."""
    updates: int
    unit: str = PERCENT
    """`%` of successful episodes, or the name of what is counted instead."""

    def __post_init__(self) -> None:
        if not self.arms:
            raise DataError("Scores of no arm at all.", field=self.learner, expected="at least one arm")
        for arm, scores in self.arms.items():
            if scores.size == 0 or not np.isfinite(scores).all():
                raise DataError(
                    "An arm needs a finite score for each seed.",
                    field=f"{self.learner}: {arm}",
                    found=scores.tolist(),
                )


@dataclass(frozen=True)
class Account:
    """What was proposed and what became of it: kept + rejected = proposed."""

    title: str
    proposed: int
    kept: int
    rejected: Mapping[str, int]
    note: str = ""
    """What else has to be known of the kept ones."""

    def __post_init__(self) -> None:
        if self.kept + sum(self.rejected.values()) != self.proposed:
            raise DataError(
                "An account that does not add up.",
                field=self.title,
                found=f"{self.kept} kept and {sum(self.rejected.values())} rejected",
                expected=f"{self.proposed} proposed",
            )


@dataclass(frozen=True)
class Truth:
    """Generated transitions against the simulator: errors as shares of the length of one step."""

    what: str
    median: float
    high: float
    """95th percentile."""
    floor_median: float | None = None
    """The same for recorded transitions replayed the same way: no generator can do better."""
    floor_high: float | None = None


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: float


@dataclass(frozen=True)
class Link:
    """A file beside the page, by its path from the page's folder."""

    text: str
    path: str


@dataclass(frozen=True)
class RunStory:
    """Everything the page can say."""

    task: str
    original: Facts
    augmented: Facts | None = None
    method: str = "ASTRO"
    """What made the augmented data."""
    goal: tuple[float, float] | None = None
    goal_radius: float | None = None
    walls: Walls | None = None
    fragments: Fragments | None = None
    distance: DistanceMap | None = None
    chains: tuple[Chain, ...] = ()
    stitched: tuple[Stitched, ...] = ()
    generated: Fragments | None = None
    """Some of the augmented trajectories where they are too short to be walked along: single transitions."""
    pairs: tuple[Pair, ...] = ()
    geometry: Measures | None = None
    """What each selection rule chooses."""
    chosen: Mapping[str, tuple[ChosenPair, ...]] = field(default_factory=dict)
    """Some of what each rule chooses, to be looked at."""
    film: Film | NoFilm | None = None
    """None: nobody asked for one."""
    metrics: Measures | None = None
    values: tuple[ValueMaps, ...] = ()
    curves: tuple[Curves, ...] = ()
    scores: tuple[Scores, ...] = ()
    accounts: tuple[Account, ...] = ()
    truth: tuple[Truth, ...] = ()
    stages: tuple[Stage, ...] = ()
    machine: str | None = None
    """What the times were measured on."""
    lineage: Mapping[str, str] = field(default_factory=dict)
    """Where the augmented data comes from: seeds, hashes of data and models, versions."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Preset, seeds, sizes: whatever somebody needs who repeats the run."""
    commands: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    limits: tuple[str, ...] = ()
    """What this run does not show, a sentence each; the page adds what follows from the number of seeds."""
