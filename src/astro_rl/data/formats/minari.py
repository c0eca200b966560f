"""Minari's HDF5 datasets, read and written with h5py alone: neither minari nor an environment is needed.

A dataset is a folder; any of the three paths is accepted for reading::

    NAME-v0/                         the dataset
        data/                        metadata.json: spaces, numbers of episodes and steps, format version
            main_data.hdf5           one group an episode
                episode_0/
                    observations     T + 1 rows; or a group of them, one an entry of a dictionary
                    actions          T rows
                    rewards, terminations, truncations    T
                    infos/...        T + 1 rows, one for the reset and one a step

Dictionary observations become one vector by joining entries. `observation_keys` says which and in what
order. Without it: the only entry, if there is one; for a goal dictionary (`observation`, `achieved_goal`,
`desired_goal`) the observation, preceded by the achieved goal unless the observation holds it already. For
AntMaze that gives x, y and the 27 numbers of the ant, which is D4RL's layout. Entries that are not joined
are carried along as `observations/<key>`, infos as `infos/<key>`, but for the simulator's own (`qpos`,
`qvel`, `button_states`), which have their names here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import ArrayLike

from astro_rl.data.assemble import assemble
from astro_rl.data.checks import Progress
from astro_rl.data.columns import Column
from astro_rl.data.formats.hdf5_io import (
    EXPAND_LIMIT_BYTES,
    is_hdf5,
    open_hdf5,
)
from astro_rl.data.formats.minari_episodes import Episode, Layout, layout_of, read_episodes
from astro_rl.data.formats.minari_writer import DATA_FILE, METADATA_FILE, write
from astro_rl.data.options import ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

__all__ = ["read", "recognises", "write"]

_FACTS = (
    "dataset_id", "minari_version", "env_spec", "eval_env_spec", "observation_space", "action_space",
    "algorithm_name", "author", "author_email", "code_permalink", "description", "requirements",
    "ref_min_score", "ref_max_score",
)  # fmt: skip
"""Metadata that is carried in `info["minari"]`, and written again."""


def recognises(path: Path) -> bool:
    """A folder or file that means to be Minari's. The Arrow backend's are recognised too, and refused by
    `read`."""
    if path.is_dir():
        folder = path / "data" if (path / "data").is_dir() else path
        return (folder / DATA_FILE).exists() or "total_episodes" in (_metadata(folder) or {})
    if not is_hdf5(path):
        return False
    try:
        with h5py.File(path, "r") as file:
            return bool(_numbers(file)) and f"episode_{_numbers(file)[0]}/terminations" in file
    except (OSError, RuntimeError):
        return False


def read(
    path: Path,
    *,
    observation_keys: Sequence[str] | None = None,
    drop_short: bool = False,
    expand_limit_bytes: int | None = EXPAND_LIMIT_BYTES,
    actions_outside: ActionsOutside = "refuse",
    action_range: tuple[ArrayLike, ArrayLike] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The episodes as trajectories, in the order of their numbers."""
    file_path, metadata = _locate(path)
    own = metadata.get("astro_rl", {})
    with open_hdf5(file_path) as file:
        numbers = _episode_numbers(file, file_path)
        keys = own.get("observation_keys") if observation_keys is None else list(observation_keys)
        layout = layout_of(Episode.of(file, numbers[0]), keys, own.get("columns", {}), file_path)
        columns, offsets = read_episodes(
            file, numbers, layout, file_path, drop_short, expand_limit_bytes, progress
        )
    if not own.get("rewards_known", True):
        columns.pop("rewards")
    info = {
        **own.get("info", {}),
        "source": "minari",
        "source_file": _name(path, file_path),
        "minari": {name: metadata[name] for name in _FACTS if name in metadata},
        **_facts(layout),
    }
    options = BuildOptions(drop_short, actions_outside, action_range, path)
    return assemble({name: Column.of(column) for name, column in columns.items()}, offsets, info, options)


def _facts(layout: Layout) -> dict[str, Any]:
    facts: dict[str, Any] = {"left_out": list(layout.left_out)}
    if layout.parts is not None:
        facts["observation_parts"] = [[key, width] for key, width in layout.parts]
    return facts


def _locate(path: Path) -> tuple[Path, dict[str, Any]]:
    if not path.is_dir():
        return path, _metadata(path.parent) or {}
    folder = path / "data" if (path / "data").is_dir() else path
    metadata = _metadata(folder)
    stored = (metadata or {}).get("data_format", "hdf5")
    if stored != "hdf5":
        raise DataError(
            "Only Minari's HDF5 backend is supported.",
            file=path,
            field="data_format",
            found=stored,
            expected="hdf5",
            fix="make the dataset again with data_format='hdf5', or copy its episodes into one that has it",
        )
    if not (folder / DATA_FILE).exists():
        raise DataError(
            "The Minari dataset has no data.",
            file=path,
            found=", ".join(sorted(p.name for p in folder.iterdir())) or "an empty folder",
            expected=f"data/{DATA_FILE}",
            fix="download or copy the dataset again",
        )
    return folder / DATA_FILE, metadata or {}


def _metadata(folder: Path) -> dict[str, Any] | None:
    """The metadata beside the data, or None: episodes can be read without it."""
    try:
        found = json.loads((folder / METADATA_FILE).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _name(path: Path, file_path: Path) -> str:
    """What the dataset is called: its folder, not `data` or `main_data.hdf5` inside it."""
    folder = file_path.parent
    return folder.parent.name if folder.name == "data" else folder.name if path.is_dir() else path.name


def _numbers(file: h5py.File) -> list[int]:
    return sorted(int(match[1]) for name in file if (match := re.fullmatch(r"episode_(\d+)", str(name))))


def _episode_numbers(file: h5py.File, path: Path) -> list[int]:
    numbers = _numbers(file)
    if not numbers:
        raise DataError(
            "The file holds no episodes.",
            file=path,
            found=", ".join(list(file)[:5]) or "an empty file",
            expected="groups episode_0, episode_1, …",
        )
    return numbers
