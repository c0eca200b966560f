"""How chains are chosen: by temporal distance (`search.ChainSearch`), or by one of the rules that it is compared with.

    temporal    every target about M steps ahead in ψ, and the whole chain passes the filter      ASTRO
    random      every piece drawn uniformly from the dataset                                      table 2, “Rand”
    euclidean   the target nearest to where imitation would lead (`euclidean`)                    table 2, “Pre+Euc”
    windows     real windows: pieces that do follow one another                                   the control

The others look at all windows, also at those that fail the filter by themselves, and let every chain pass unless told
to filter: knowing nothing of temporal distance is what they are there to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from astro_rl.stitch.auto import single_trajectory
from astro_rl.stitch.filtering import ChainFilter, Chains
from astro_rl.stitch.geometry import window_starts
from astro_rl.stitch.windows import Windows


@runtime_checkable
class Selection(Protocol):
    """Batches of chains; batch k depends on the seed and k alone."""

    def batch(self, seed: int, number: int) -> Chains: ...

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]: ...


def all_windows(offsets: Int[np.ndarray, "trajectories_plus_1"], segment: int) -> Windows:
    """Whatever their pace."""
    starts, trajectories = window_starts(offsets, segment)
    return Windows(starts, trajectories, total=len(starts))


@dataclass(frozen=True, eq=False)
class RandomTargets:
    """“Rand”: a chain of n windows drawn uniformly; where `distinct`, from those of trajectories that it does not hold
    yet."""

    windows: Windows
    filter: ChainFilter
    distinct: bool = True

    def __post_init__(self) -> None:
        require_room(self.windows, self.filter.shape.pieces, self.distinct)

    def batch(self, seed: int, number: int) -> Chains:
        generator = np.random.default_rng([seed, number])
        places = np.zeros((self.filter.batch, 0), np.int64)
        for _ in range(self.filter.shape.pieces):
            owners = self.windows.trajectories[places] if self.distinct else places[:, :0]
            places = np.column_stack([places, drawn_from_others(generator, self.windows, owners)])
        return self.filter.passed(self.windows.starts[places], generator)

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]:
        return self.filter.statistic(starts, generator)


@dataclass(frozen=True, eq=False)
class RealWindows:
    """The control: every piece comes from one recording, where the MASK's own states were."""

    firsts: Int[np.ndarray, "windows"]
    """First rows of real windows as long as a chain's known states."""
    filter: ChainFilter

    def batch(self, seed: int, number: int) -> Chains:
        generator = np.random.default_rng([seed, number])
        drawn = generator.choice(self.firsts, size=self.filter.batch)
        shape = self.filter.shape
        return self.filter.passed(drawn[:, None] + np.arange(shape.pieces) * shape.period, generator)

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]:
        return self.filter.statistic(starts, generator)


def drawn_from_others(
    generator: np.random.Generator, windows: Windows, owners: Int[np.ndarray, "chains held"]
) -> Int[np.ndarray, "chains"]:
    """Numbers of windows, uniform over those of all trajectories but each chain's own.

    Windows of a trajectory stand together, so what a chain may take is all places but a few stretches: a place among
    those left is moved past every stretch that begins at or before it. No draw is repeated, whatever is left.
    """
    counts = np.bincount(windows.trajectories, minlength=int(owners.max(initial=0)) + 1)
    firsts = np.cumsum(counts) - counts
    held = np.sort(owners, axis=1)
    places = generator.integers(len(windows.starts) - counts[held].sum(axis=1))
    for column in held.T:
        places = np.where(places >= firsts[column], places + counts[column], places)
    return places


def require_room(windows: Windows, pieces: int, distinct: bool) -> None:
    """Refuses chains of more trajectories than there are."""
    holders = len(np.unique(windows.trajectories))
    if distinct and holders < pieces:
        raise single_trajectory(holders, pieces)
