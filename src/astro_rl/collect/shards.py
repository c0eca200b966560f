"""Finished episodes on disk while a dataset is being made: small files of a few consecutive episodes each.

Which episodes share a shard follows from the recipe alone, never from the number of workers, and a shard
appears whole or not at all. That is what lets a killed run go on, and end with the bytes it would have had.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from astro_rl.collect.episodes import COLUMN_TYPES, Collector, Columns, Split, make_episode
from astro_rl.data.catalogue import Recipe

ROWS_PER_SHARD = 2100
"""A fraction of a second of pointmaze, some seconds of a manipulation scene: what a kill can cost."""


@dataclass(frozen=True)
class Shard:
    """Episodes `first` to `first + episodes - 1` of a split."""

    split: Split
    first: int
    episodes: int

    @property
    def file_name(self) -> str:
        return f"{self.split}-{self.first:07d}.npz"


def plan_shards(split: Split, episodes: int, episode_rows: int) -> list[Shard]:
    each = max(1, ROWS_PER_SHARD // episode_rows)
    return [Shard(split, first, min(each, episodes - first)) for first in range(0, episodes, each)]


def make_shard(
    collector: Collector, shard: Shard, seed: int, folder: Path, on_episode: Callable[[int], None]
) -> None:
    """Makes a shard's episodes and puts them on disk. `on_episode` hears each number before its episode."""
    made: list[Columns] = []
    for number in range(shard.first, shard.first + shard.episodes):
        on_episode(number)
        made.append(make_episode(collector, seed, shard.split, number))
    write_shard(folder / shard.file_name, made)


def write_shard(path: Path, episodes: list[Columns]) -> None:
    """Not synchronised to disk: a shard lost or torn in a power cut is noticed when read, and made again."""
    columns = {name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]}
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **columns)  # pyright: ignore[reportArgumentType]
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def shard_is_sound(path: Path, shard: Shard, recipe: Recipe) -> bool:
    """Whether the file is there, undamaged (checksums are read) and holds the rows it should."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                return False
        with np.load(path, allow_pickle=False) as arrays:
            return len(arrays["terminals"]) == shard.episodes * recipe.episode_rows
    except (OSError, zipfile.BadZipFile, KeyError, ValueError):
        return False


@dataclass(frozen=True)
class ShardColumns:
    """A split's shards read as columns, one shard in memory at a time."""

    folder: Path
    shards: list[Shard]

    def names(self) -> list[str]:
        with np.load(self.folder / self.shards[0].file_name, allow_pickle=False) as arrays:
            return [name for name in COLUMN_TYPES if name in arrays.files]

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        for shard in self.shards:
            with np.load(self.folder / shard.file_name, allow_pickle=False) as arrays:
                yield arrays[name]
