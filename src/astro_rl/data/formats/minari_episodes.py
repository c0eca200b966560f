"""Reading Minari's episodes into row-aligned columns: what each episode has to hold, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from astro_rl.data.checks import Progress, short_trajectories
from astro_rl.data.formats.hdf5_io import (
    check_claimed_size,
    claimed_bytes,
    leaves,
    read_floats,
    read_numbers,
)
from astro_rl.data.schema import SIMULATOR_COLUMNS
from astro_rl.errors import ConfigError, DataError

GOAL_KEYS = frozenset({"observation", "achieved_goal", "desired_goal"})
FLAGS = {"terminations": "terminated", "truncations": "truncated"}
END_ROW = {"end_action": "actions", "end_reward": "rewards"}
"""Attributes in which astro-rl keeps what Minari has no place for: an end row's action and reward."""


@dataclass(frozen=True)
class Episode:
    """One episode's group, seen as its arrays by path."""

    name: str
    arrays: Mapping[str, h5py.Dataset]
    attributes: Mapping[str, Any]

    @staticmethod
    def of(file: h5py.File, number: int) -> Episode:
        group = file[f"episode_{number}"]
        if not isinstance(group, h5py.Group):
            raise DataError("An episode is not a group.", file=file.filename, field=f"episode_{number}")
        return Episode(f"episode_{number}", leaves(group), group.attrs)

    @property
    def observations(self) -> dict[str, h5py.Dataset]:
        """The entries of the observation dictionary; one entry with an empty name if it is not a
        dictionary."""
        return {
            place.removeprefix("observations").removeprefix("/"): array
            for place, array in self.arrays.items()
            if place.split("/")[0] == "observations"
        }


@dataclass(frozen=True)
class Layout:
    """Which of an episode's arrays become which columns; told from the first episode, and asked of all."""

    parts: tuple[tuple[str, int], ...] | None
    """Entries of the observation dictionary that are joined, with their widths; None for plain
    observations."""
    carried: Mapping[str, str]
    """Paths of arrays that are carried along, and the columns' names."""
    left_out: tuple[str, ...]
    """Arrays that have no row for each observation, or no numbers."""


def layout_of(episode: Episode, keys: Sequence[str] | None, names: Mapping[str, str], path: Path) -> Layout:
    """`names` maps paths to column names where astro-rl wrote the file and noted them."""
    _require(episode, path)
    steps = _length(episode.arrays["actions"])
    entries = episode.observations
    parts: tuple[tuple[str, int], ...] | None = None
    if "" not in entries:
        chosen = _default_keys(entries, path) if keys is None else _known_keys(keys, entries, path)
        parts = tuple((key, int(np.prod(entries[key].shape[1:], dtype=int))) for key in chosen)
    elif keys is not None:
        raise ConfigError(
            "observation_keys has no effect: the observations are not a dictionary.", found=list(keys)
        )
    joined = {f"observations/{key}" for key, _ in parts or ()}
    carried: dict[str, str] = {}
    left_out: list[str] = []
    for place, array in episode.arrays.items():
        if place in joined or place in ("observations", "actions", "rewards", *FLAGS):
            continue
        bare = place.removeprefix("infos/")
        if array.dtype.kind in "biuf" and _length(array) in (steps, steps + 1):
            carried[place] = names.get(place, bare if bare in SIMULATOR_COLUMNS else place)
        else:
            left_out.append(place)
    return Layout(parts, carried, tuple(left_out))


def _require(episode: Episode, path: Path) -> None:
    for name in ("observations", "actions", "rewards", *FLAGS):
        if name == "observations" and episode.observations:
            continue
        if name not in episode.arrays:
            grouped = name == "actions" and any(place.startswith("actions/") for place in episode.arrays)
            raise DataError(
                "Actions that are a dictionary or a tuple are not supported."
                if grouped
                else "An episode lacks a field.",
                file=path,
                field=f"{episode.name}/{name}",
                found=", ".join(episode.arrays) or "nothing",
                expected="observations, actions, rewards, terminations, truncations",
            )


def _default_keys(entries: Mapping[str, h5py.Dataset], path: Path) -> list[str]:
    if len(entries) == 1:
        return list(entries)
    tops = {key.split("/")[0] for key in entries}
    if "observation" in entries and tops <= GOAL_KEYS:
        goal = entries.get("achieved_goal")
        return (
            ["observation"]
            if goal is None or _holds(entries["observation"], goal)
            else ["achieved_goal", "observation"]
        )
    raise DataError(
        "The observations are a dictionary, and it is not clear which entries make up the state.",
        file=path,
        field="observations",
        found=", ".join(f"{key} {array.shape[1:]}" for key, array in entries.items()),
        fix=f"choose with observation_keys, for example observation_keys={tuple(entries)[:2]}",
    )


def _holds(observation: h5py.Dataset, goal: h5py.Dataset) -> bool:
    """Whether every column of the goal is a column of the observation already (PointMaze's x and y are)."""
    if observation.ndim != 2 or goal.ndim != 2:
        return False
    seen, wanted = observation[()], goal[()]
    return all((seen == wanted[:, [k]]).all(axis=0).any() for k in range(wanted.shape[1]))


def _known_keys(keys: Sequence[str], entries: Mapping[str, h5py.Dataset], path: Path) -> list[str]:
    unknown = [key for key in keys if key not in entries]
    if unknown or not keys or len(set(keys)) != len(keys):
        raise DataError(
            "observation_keys does not name entries of the observation dictionary, each once.",
            file=path,
            field="observations",
            found=", ".join(keys) or "no key",
            expected=f"some of {', '.join(entries)}",
        )
    return list(keys)


def read_episodes(
    file: h5py.File,
    numbers: Sequence[int],
    layout: Layout,
    path: Path,
    drop_short: bool,
    limit_bytes: int | None,
    progress: Progress | None,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """All episodes end to end, with an end row each: zeros where Minari has no value for it.

    One pass: with thousands of small arrays, opening them is what takes the time.
    """
    pieces: dict[str, list[np.ndarray]] = {}
    sizes: list[int] = []
    claimed = 0
    for number in numbers:
        episode = Episode.of(file, number)
        steps = _checked_steps(episode, path)
        claimed += claimed_bytes(episode.arrays)
        check_claimed_size(claimed, limit_bytes, path)
        sizes.append(steps + 1)
        for name, values in _episode_rows(episode, layout, steps, path).items() if steps else ():
            column = pieces.setdefault(name, [])
            if column and (values.shape[1:] != column[0].shape[1:] or values.dtype != column[0].dtype):
                raise DataError(
                    "Episodes have different shapes or types.",
                    file=path,
                    field=f"{episode.name}: {name}",
                    found=f"{values.dtype}, {values.shape[1:]} a row",
                    expected=f"{column[0].dtype}, {column[0].shape[1:]} a row, as in the episodes before",
                )
            column.append(values)
        if progress is not None:
            progress(len(sizes), len(numbers))
    rows_of_all = np.asarray(sizes)
    short = np.flatnonzero(rows_of_all < 2)
    if len(short) and (not drop_short or len(short) == len(sizes)):
        raise short_trajectories(short, rows_of_all, path)
    offsets = np.concatenate([[0], np.cumsum(rows_of_all[rows_of_all >= 2])]).astype(np.int64)
    return {name: np.concatenate(pieces.pop(name)) for name in list(pieces)}, offsets


def _checked_steps(episode: Episode, path: Path) -> int:
    """The number of an episode's actions, once its fields agree with it."""
    _require(episode, path)
    steps = _length(episode.arrays["actions"])
    expected = dict.fromkeys(("rewards", *FLAGS), steps)
    if steps:
        expected.update({place: steps + 1 for place in episode.arrays if place.startswith("observations")})
    for name, rows in expected.items():
        if _length(episode.arrays[name]) != rows:
            raise DataError(
                "An episode of T actions needs T + 1 observations and T of everything else.",
                file=path,
                field=f"{episode.name}/{name}",
                found=f"{_length(episode.arrays[name])} rows for {steps} actions",
                expected=f"{rows} rows",
                fix="Minari's first AntMaze datasets (v0) have such episodes; later versions do not",
            )
    return steps


def _length(array: h5py.Dataset) -> int:
    return len(array) if array.shape else -1


def _episode_rows(episode: Episode, layout: Layout, steps: int, path: Path) -> dict[str, np.ndarray]:
    def array_at(place: str) -> h5py.Dataset:
        if place in episode.arrays:
            return episode.arrays[place]
        raise DataError(
            "An episode lacks a field that the first one has.",
            file=path,
            field=f"{episode.name}/{place}",
            found=", ".join(episode.arrays),
        )

    if layout.parts is None:
        observations = read_floats(array_at("observations"), path, f"{episode.name}/observations")
    else:
        places = [f"observations/{key}" for key, _ in layout.parts]
        pieces = [read_floats(array_at(place), path, f"{episode.name}/{place}") for place in places]
        observations = np.concatenate([piece.reshape(len(piece), -1) for piece in pieces], axis=1)
    rows = {
        "observations": observations,
        "actions": read_floats(array_at("actions"), path, f"{episode.name}/actions"),
        "rewards": read_numbers(array_at("rewards"), path, f"{episode.name}/rewards"),
    }
    for name, column in FLAGS.items():
        rows[column] = read_numbers(array_at(name), path, f"{episode.name}/{name}").astype(bool)
    for place, name in layout.carried.items():
        values = read_numbers(array_at(place), path, f"{episode.name}/{place}")
        if values.ndim == 0 or len(values) not in (steps, steps + 1):
            raise DataError(
                "An episode's field has no row for each observation, as it has in the first episode.",
                file=path,
                field=f"{episode.name}/{place}",
                found=f"shape {values.shape}",
                expected=f"{steps + 1} rows",
            )
        rows[name] = values if len(values) == steps + 1 else np.concatenate([values, values[-1:]])
    for name in ("actions", "rewards", *FLAGS.values()):
        rows[name] = np.concatenate([rows[name], np.zeros_like(rows[name][:1])])
    for attribute, name in END_ROW.items():
        if attribute in episode.attributes:
            rows[name][-1] = episode.attributes[attribute]
    return rows
