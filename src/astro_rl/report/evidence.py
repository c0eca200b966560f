"""Further parts of a story, all optional: one pair completed by several methods, measures beside real data's and the
paper's, learning curves, a film. Plain arrays and texts, as in `story`; whoever makes them has a function or a file of
their own (`pairs`, `measures`, `curves`, `film`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from astro_rl.errors import DataError


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one method made of a pair."""

    xy: Float[np.ndarray, "states 2"]
    """The states it wrote down, also where the pair's own are known."""
    driven: Float[np.ndarray, "states 2"] | None = None
    """Where the simulator gets to from the first state under the method's actions; None where none can say."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A source and a target, and the same gap between them completed by several methods."""

    given: Float[np.ndarray, "states 2"]
    """Recorded states; what stands where none is known is not looked at."""
    known: Bool[np.ndarray, "states"]
    attempts: Mapping[str, Attempt]
    lead: Float[np.ndarray, "lead 2"] | None = None
    """Recorded states before the first one: shown, given to no method."""
    recordings: tuple[int, int] | None = None
    """The trajectories that source and target were recorded in."""

    def __post_init__(self) -> None:
        states = len(self.given)
        if not self.attempts or len(self.known) != states or not (self.known[0] and self.known[-1]):
            raise DataError(
                "A pair begins and ends with known states, and somebody has to have completed it.",
                field="known, attempts",
                found=f"{len(self.known)} marks for {states} states, {len(self.attempts)} methods",
            )
        for name, attempt in self.attempts.items():
            for what, xy in (("states", attempt.xy), ("driven states", attempt.driven)):
                if xy is not None and (xy.shape != (states, 2) or not np.isfinite(xy).all()):
                    raise DataError(
                        f"The {what} of a completion do not fit its pair.",
                        field=name,
                        found=f"shape {xy.shape}" + ("" if np.isfinite(xy).all() else ", not all finite"),
                        expected=f"{states} finite places, one for each state of the pair",
                    )

    @property
    def target(self) -> slice:
        """The known states behind the last gap."""
        unknown = np.flatnonzero(~self.known)
        return slice(int(unknown[-1]) + 1 if len(unknown) else 1, len(self.known))

    def miss(self, xy: Float[np.ndarray, "states 2"]) -> float:
        """Mean distance from the target's states, each met at its own time."""
        return float(np.linalg.norm(xy[self.target] - self.given[self.target], axis=1).mean())


@dataclass(frozen=True)
class Reading:
    """One number, and what is known of its uncertainty. A reading has a spread or an interval, or neither."""

    value: float
    spread: float | None = None
    """Standard deviation."""
    low: float | None = None
    high: float | None = None
    """Of a 95 % interval."""
    paper: float | None = None
    paper_spread: float | None = None

    @property
    def reach(self) -> tuple[float, float]:
        """From where to where it is drawn."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        spread = self.spread or 0.0
        return self.value - spread, self.value + spread


@dataclass(frozen=True)
class Measure:
    """One question asked of several sets of data."""

    name: str
    readings: Mapping[str, Reading]
    unit: str = ""
    """`%`, `rad`, `steps`: behind the numbers. Shares are given in percent."""
    better: Literal["lower", "higher"] | None = None
    """In the paper's words. None: neither is better by itself."""
    note: str = ""
    """How it is measured, where its name does not say."""
    group: str = ""
    """What it belongs to, where there are many."""


@dataclass(frozen=True)
class Measures:
    """Measures of the same sets of data, and those that do not apply, with the reason."""

    measures: tuple[Measure, ...]
    reference: str | None = None
    """The set that others are held against, `real, held out`."""
    absent: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    """Over how much data, with which calibration."""

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of all sets of data, in the order in which they first come."""
        return tuple(dict.fromkeys(name for measure in self.measures for name in measure.readings))


@dataclass(frozen=True, eq=False)
class ChosenPair:
    """A source and a target as a selection rule puts them together, before anything is generated."""

    source: Float[np.ndarray, "states 2"]
    target: Float[np.ndarray, "states 2"]
    behind_wall: bool = False
    out_of_reach: bool = False
    never_joined: bool = False
    """No recording goes from the one place to the other."""


@dataclass(frozen=True, eq=False)
class Curves:
    """One quantity over updates, on several arms."""

    group: str
    """What learns: a learner, or a stage of the fit."""
    quantity: str
    """As the records call it: `critic/loss`."""
    steps: Int[np.ndarray, "points"]
    arms: Mapping[str, Float[np.ndarray, "_ _"]]
    """Seeds × points; NaN where a seed has no finite value."""

    def __post_init__(self) -> None:
        for arm, values in self.arms.items():
            if values.ndim != 2 or values.shape[1] != len(self.steps) or not len(values):
                raise DataError(
                    "A curve needs a value for each seed and each point.",
                    field=f"{self.group} {self.quantity}: {arm}",
                    found=f"shape {values.shape}",
                    expected=f"seeds × {len(self.steps)} points",
                )


@dataclass(frozen=True, eq=False)
class Film:
    """Pictures of a body on its way along one trajectory."""

    frames: UInt8[np.ndarray, "frames rows columns 3"]
    states: Int[np.ndarray, "frames"]
    """Which state of the trajectory each picture shows."""
    generated: Bool[np.ndarray, "frames"]
    about: str
    seconds: float = 0.1
    """Between two frames of the animation."""

    def __post_init__(self) -> None:
        if not len(self.frames) == len(self.states) == len(self.generated) or not len(self.frames):
            raise DataError(
                "A film needs a state and a kind for each of its frames.",
                found=f"{len(self.frames)} frames, {len(self.states)} states, {len(self.generated)} kinds",
            )


@dataclass(frozen=True)
class NoFilm:
    """Why a film that was asked for is not there."""

    reason: str
