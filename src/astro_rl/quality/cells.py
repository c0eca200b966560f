"""The plane in square cells: which ones data visits, and which ordered pairs of them it joins, and how fast.

    fewest(a, b) = the least number of steps from leaving cell a to entering cell b later in the same trajectory

A pair is joined within k steps where fewest(a, b) ≤ k. A dataset of fragments joins few pairs; what stitching adds
are pairs that no recording joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError

ACROSS = 32
"""Cells along the longer side of what real data covers."""
NEVER = np.iinfo(np.int32).max
MOST_CELLS = 20_000
"""A matrix of all pairs of more would not fit where the data does."""


class Visits(NamedTuple):
    """Stays in one cell, in order: consecutive rows of a trajectory in the same cell are one."""

    cell: Int[np.ndarray, "visits"]
    entered: Int[np.ndarray, "visits"]
    """First row."""
    left: Int[np.ndarray, "visits"]
    """Last row."""
    owner: Int[np.ndarray, "visits"]


class Joins(NamedTuple):
    """Ordered pairs of stays of one trajectory, in different cells."""

    first: Int[np.ndarray, "pairs"]
    second: Int[np.ndarray, "pairs"]
    steps: Int[np.ndarray, "pairs"]


@dataclass(frozen=True)
class Cells:
    """A grid of squares, laid over what real data covers, that goes on beyond it."""

    low: tuple[float, float]
    side: float
    xy: tuple[int, int]

    @classmethod
    def over(cls, real: Dataset, xy: tuple[int, int], across: int = ACROSS) -> Cells:
        if across < 1:
            raise ConfigError("A plane has one cell or more.", field="across", found=across)
        check_plane(real, xy)
        places = np.asarray(real.observations)[:, list(xy)]
        low, high = places.min(axis=0).astype(float), places.max(axis=0).astype(float)
        extent = float((high - low).max())
        if not extent > 0:
            raise DataError(
                "All recorded places are one.",
                field=f"observations, dimensions {xy[0]} and {xy[1]}",
                fix="name the entries of an observation that hold x and y",
            )
        return cls((float(low[0]), float(low[1])), extent / across, xy)

    def of(self, dataset: Dataset) -> Int[np.ndarray, "rows 2"]:
        places = np.asarray(dataset.observations)[:, list(self.xy)].astype(np.float64)
        return np.floor((places - np.array(self.low)) / self.side).astype(np.int64)

    def centers(self, cells: Int[np.ndarray, "cells 2"]) -> Float[np.ndarray, "cells 2"]:
        return np.array(self.low) + (cells + 0.5) * self.side


def numbered(*cells: Int[np.ndarray, "_ 2"]) -> tuple[list[Int[np.ndarray, "_"]], int]:
    """Numbers from 0 for all cells that occur, the same cell the same number; and how many there are."""
    together = np.concatenate(cells)
    _, numbers = np.unique(together, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    sizes = np.cumsum([len(part) for part in cells])[:-1]
    return list(np.split(numbers, sizes)), int(numbers.max(initial=-1)) + 1


def visits(cells: Int[np.ndarray, "rows"], offsets: Int[np.ndarray, "trajectories_plus_1"]) -> Visits:
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    begins = np.ones(len(cells), bool)
    begins[1:] = (cells[1:] != cells[:-1]) | (owner[1:] != owner[:-1])
    entered = np.flatnonzero(begins)
    left = np.append(entered[1:], len(cells)) - 1
    return Visits(cells[entered], entered, left, owner[entered])


def joins(found: Visits, within: int) -> Joins:
    """All ordered pairs of stays at most `within` steps apart."""
    parts: list[Joins] = []
    for lag in range(1, len(found.cell)):
        steps = found.entered[lag:] - found.left[:-lag]
        near = (found.owner[lag:] == found.owner[:-lag]) & (steps <= within)
        if not near.any():
            break  # farther stays are farther apart
        here = np.flatnonzero(near)
        here = here[found.cell[here] != found.cell[here + lag]]
        parts.append(
            Joins(found.cell[here], found.cell[here + lag], found.entered[here + lag] - found.left[here])
        )
    empty = np.zeros(0, np.int64)
    return (
        Joins(*(np.concatenate([empty, *column]) for column in zip(*parts, strict=True)))
        if parts
        else Joins(empty, empty, empty)
    )


def fewest_steps(found: Joins, cells: int) -> Int[np.ndarray, "cells cells"]:
    """fewest(a, b); `NEVER` where no trajectory goes from a to b."""
    if cells > MOST_CELLS:
        raise DataError(
            "Too many cells are visited to hold all pairs of them.",
            found=cells,
            expected=f"<= {MOST_CELLS}",
            fix="choose larger cells (fewer across)",
        )
    fewest = np.full((cells, cells), NEVER, np.int32)
    np.minimum.at(fewest, (found.first, found.second), found.steps.astype(np.int32))
    return fewest


def check_plane(dataset: Dataset, xy: tuple[int, int]) -> None:
    if not all(0 <= index < dataset.observation_dim for index in xy) or xy[0] == xy[1]:
        raise ConfigError(
            "These are no two entries of an observation.",
            field="xy",
            found=f"{xy[0]} and {xy[1]}",
            expected=f"two different numbers from 0 to {dataset.observation_dim - 1}",
        )
