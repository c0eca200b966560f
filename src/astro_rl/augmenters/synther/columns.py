"""Transitions as rows of numbers: what is modelled of them, and how it is scaled.

    s | a | r | end | s'        r and end where they are modelled; SynthER's authors have the same columns in the order
                                s a r s' end

Each column has its own mean and spread, s' other ones than s; the end, 0 or 1, is left as it is. Both as the
authors'. Unlike theirs, columns that never vary come back exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.data.schema import Dataset


class Transitions(NamedTuple):
    """Transitions apart, in the dataset's units."""

    observations: Float[np.ndarray, "transitions obs"]
    actions: Float[np.ndarray, "transitions act"]
    rewards: Float[np.ndarray, "transitions"] | None
    ends: Float[np.ndarray, "transitions"] | None
    """Near 1 where nothing follows."""
    following: Float[np.ndarray, "transitions obs"]


@dataclass(frozen=True)
class Columns:
    """Which columns there are."""

    observation_dim: int
    action_dim: int
    rewards: bool
    ends: bool

    @property
    def width(self) -> int:
        return 2 * self.observation_dim + self.action_dim + self.rewards + self.ends

    def split(self, rows: Float[np.ndarray, "transitions width"]) -> Transitions:
        edges = np.cumsum([self.observation_dim, self.action_dim, self.rewards, self.ends])
        here, actions, rewards, ends, following = np.split(rows, edges, axis=1)
        return Transitions(
            here,
            actions,
            rewards[:, 0] if self.rewards else None,
            ends[:, 0] if self.ends else None,
            following,
        )


def columns_of(dataset: Dataset, *, rewards: bool) -> Columns:
    """With `rewards`, those of the dataset, and ends, where any are marked: what never comes needs no model."""
    ends = rewards and bool(np.asarray(dataset.terminated).any())
    return Columns(dataset.observation_dim, dataset.action_dim, rewards, ends)


def transition_table(
    dataset: Dataset, columns: Columns, most: int
) -> tuple[Float[np.ndarray, "transitions width"], Normaliser]:
    """Normalised rows, evenly spread over the data where it has more than `most`, and what undoes the scaling."""
    rows = dataset.transition_rows()
    rows = rows[:: max(1, -(-len(rows) // most))]
    parts = [np.asarray(dataset.observations[rows]), np.asarray(dataset.actions[rows])]
    if columns.rewards:
        assert dataset.rewards is not None
        parts.append(np.asarray(dataset.rewards[rows], np.float32)[:, None])
    ends = np.asarray(dataset.terminated[rows], np.float32)[:, None]
    scales = [fit_normaliser(part) for part in parts]
    if columns.ends:
        parts.append(ends)
        scales.append(Normaliser(*(np.asarray([value], np.float32) for value in (0, 1, 1))))
    parts.append(np.asarray(dataset.observations[rows + 1]))
    scales.append(fit_normaliser(parts[-1]))
    normaliser = Normaliser(*(np.concatenate(numbers) for numbers in zip(*scales, strict=True)))
    table = np.concatenate(
        [scale.normalise(part).astype(np.float32) for scale, part in zip(scales, parts, strict=True)], axis=1
    )
    return table, normaliser
