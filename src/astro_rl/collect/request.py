"""What was asked for, checked before any work, and in the form in which it is remembered on disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from astro_rl.collect.episodes import Split
from astro_rl.data.catalogue import VALIDATION_SHARE, Recipe, known_dataset
from astro_rl.errors import ConfigError, MissingDependency, UnavailableError

MakeFormat = Literal["ogbench", "store"]

COLLECTOR_VERSION = 1
"""Raised whenever the same request would give other rows, so that old and new episodes are never mixed."""

_SIMULATION = ("ogbench", "mujoco", "numpy")
"""Packages whose versions decide the rows, to the last bit."""


@dataclass(frozen=True)
class Request:
    """A dataset to make. Equal requests give equal bytes; workers and folders are no part of it."""

    recipe: Recipe
    episodes: int
    val_episodes: int
    seed: int

    def count(self, split: Split) -> int:
        return self.episodes if split == "train" else self.val_episodes

    def to_json(self) -> dict[str, Any]:
        return {
            "collector_version": COLLECTOR_VERSION,
            "dataset": self.recipe.dataset,
            "episodes": self.episodes,
            "val_episodes": self.val_episodes,
            "seed": self.seed,
            "recipe": asdict(self.recipe),
            "made_with": {package: importlib.metadata.version(package) for package in _SIMULATION},
        }


def check_request(name: str, episodes: int | None, val_episodes: int | None, seed: int) -> Request:
    known = known_dataset(name)
    recipe = known.recipe
    if recipe is None or not recipe.makeable:
        raise UnavailableError(
            f"{name} cannot be made here: {known.why_not_makeable}.", fix=f"astro-rl data fetch {name}"
        )
    for package in ("gymnasium", "mujoco", "ogbench"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependency(package, "ogbench", f"Making {name}")
    episodes = recipe.episodes if episodes is None else episodes
    _at_least("episodes", episodes, 1, f"the published dataset has {recipe.episodes}")
    if val_episodes is None:
        val_episodes = max(1, episodes // VALIDATION_SHARE)
    _at_least("val_episodes", val_episodes, 1, "OGBench's loader needs the validation file")
    _at_least("seed", seed, 0, "a seed is a number from 0 up")
    return Request(recipe, episodes, val_episodes, seed)


def check_format(format: str) -> None:
    if format not in get_args(MakeFormat):
        raise ConfigError(
            "A dataset is made as OGBench's files or as a store.",
            field="format",
            found=format,
            expected=" or ".join(get_args(MakeFormat)),
            fix="make it as 'ogbench', then `astro-rl data convert` it",
        )


def resolve_workers(workers: int | None, shards: int) -> int:
    """How many processes: as many as cores, and no more than there is work. 0 is this process."""
    if workers is None:
        affinity = getattr(os, "sched_getaffinity", None)
        workers = len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)
    _at_least("workers", workers, 0, "0 makes everything in this process")
    return min(workers, shards)


def _at_least(field: str, found: int, least: int, reason: str) -> None:
    if found < least:
        raise ConfigError(
            f"{field} is too small.", field=field, found=found, expected=f"{least} or more", fix=reason
        )
