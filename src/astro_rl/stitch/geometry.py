"""Where the known states of a chain stand: n times l states and M masked ones, L = n (l + M)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from astro_rl.errors import ConfigError


@dataclass(frozen=True)
class ChainShape:
    """n sub-trajectories of l states, each followed by M masked ones. The last MASK has no target: a free
    continuation."""

    pieces: int = 5
    segment: int = 18
    mask: int = 18

    def __post_init__(self) -> None:
        for name, least in (("pieces", 1), ("segment", 2), ("mask", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    "A chain needs more.", field=name, found=getattr(self, name), expected=f">= {least}"
                )

    @property
    def period(self) -> int:
        return self.segment + self.mask

    @property
    def horizon(self) -> int:
        """L."""
        return self.pieces * self.period

    def positions(self) -> Int[np.ndarray, "known"]:
        """Places of all known states in the sequence, in order."""
        starts = np.arange(self.pieces) * self.period
        return (starts[:, None] + np.arange(self.segment)[None, :]).ravel()

    def known(self) -> Bool[np.ndarray, "horizon"]:
        mask = np.zeros(self.horizon, bool)
        mask[self.positions()] = True
        return mask


def window_starts(
    offsets: Int[np.ndarray, "trajectories_plus_1"], segment: int
) -> tuple[Int[np.ndarray, "windows"], Int[np.ndarray, "windows"]]:
    """Rows with l − 1 successors in their own trajectory, and the trajectory of each."""
    rows_left = np.maximum(np.diff(offsets) - (segment - 1), 0)
    trajectories = np.repeat(np.arange(len(rows_left)), rows_left)
    before = np.cumsum(rows_left) - rows_left
    starts = np.arange(rows_left.sum()) - before[trajectories] + offsets[:-1][trajectories]
    return starts, trajectories
