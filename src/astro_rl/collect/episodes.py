"""What an episode is while a dataset is being made, and where its seed comes from."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import numpy as np

from astro_rl.data.catalogue import Recipe
from astro_rl.errors import UnavailableError

Split = Literal["train", "val"]
SPLITS: tuple[Split, Split] = ("train", "val")

Columns = dict[str, np.ndarray]
"""One episode's (or shard's) rows by column name, in the order and with the types of OGBench's files."""

COLUMN_TYPES = {
    "observations": np.float32,
    "actions": np.float32,
    "terminals": np.bool_,
    "qpos": np.float32,
    "qvel": np.float32,
    "button_states": np.int64,
}

MAX_ATTEMPTS = 100
"""Scene episodes whose cube goes astray are made again: a few in a hundred. A hundred in a row is a fault."""


@runtime_checkable
class Collector(Protocol):
    """Makes episodes of one recipe in an environment of its own."""

    def episode(self, seed: int) -> Columns | None:
        """The episode of this seed, or None where OGBench would throw it away and try again."""
        ...


def episode_seed(dataset_seed: int, split: Split, number: int, attempt: int = 0) -> int:
    """Each episode has its own seed, so that who makes it, and after which other ones, does not matter."""
    sequence = np.random.SeedSequence(dataset_seed, spawn_key=(SPLITS.index(split), number, attempt))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def make_episode(collector: Collector, dataset_seed: int, split: Split, number: int) -> Columns:
    for attempt in range(MAX_ATTEMPTS):
        columns = collector.episode(episode_seed(dataset_seed, split, number, attempt))
        if columns is not None:
            return columns
    raise UnavailableError(
        f"Episode {number} of {split} went wrong {MAX_ATTEMPTS} times in a row.",
        fix="another seed; if that does not help either, the simulator is broken",
    )


def build_collector(recipe: Recipe) -> Collector:
    if recipe.agent == "manip":
        from astro_rl.collect.manipulation import ManipulationCollector

        return ManipulationCollector(recipe)
    from astro_rl.collect.locomotion import MazeCollector

    return MazeCollector(recipe)


class EpisodeRecorder:
    """Rows of one episode, in the types of OGBench's files. The last row's action leads nowhere."""

    def __init__(self, rows: int) -> None:
        self._rows, self._row = rows, 0
        self._columns: Columns = {}

    def add(self, **values: np.ndarray) -> None:
        if not self._columns:
            self._columns = {
                name: np.empty((self._rows, *np.shape(value)), dtype=COLUMN_TYPES[name])
                for name, value in values.items()
            }
        for name, value in values.items():
            self._columns[name][self._row] = value
        self._row += 1

    def columns(self) -> Columns:
        terminals = np.zeros(self._rows, dtype=np.bool_)
        terminals[-1] = True
        found = {**self._columns, "terminals": terminals}
        return {name: found[name] for name in COLUMN_TYPES if name in found}
