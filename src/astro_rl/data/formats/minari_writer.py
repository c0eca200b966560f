"""Writing Minari datasets; `astro_rl.data.formats.minari` describes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from astro_rl.data.atomic import new_folder, synchronise
from astro_rl.data.checks import Progress
from astro_rl.data.formats.hdf5_io import told_as_os_errors
from astro_rl.data.manifest import portable_info
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError

DATA_FILE, METADATA_FILE = "main_data.hdf5", "metadata.json"
FORMAT_VERSION = "0.5.0"
"""The oldest Minari with this layout. Minari refuses data marked with a version that it does not know."""
_GROUP_OVERHEAD_BYTES = 8192
"""What HDF5 itself takes for an episode's groups and headers, for telling how much room is needed."""


def write(
    dataset: Dataset,
    path: Path,
    *,
    overwrite: bool = False,
    dataset_id: str | None = None,
    progress: Progress | None = None,
) -> None:
    """A folder that `minari.MinariDataset(path / "data")` loads.

    `minari.load_dataset(NAME)` finds it if the folder is called NAME, ends in a version (`-v0`) and stands
    in Minari's folder. Where the dataset has no rewards the file has zeros, because Minari insists on them,
    and says so in its metadata. An end row's action and reward, which Minari has no place for, are kept as
    attributes.
    """
    name = dataset_id if dataset_id is not None else _dataset_id(path)
    if not re.fullmatch(r"([-_\w]+/)*[-_\w]+-v\d+", name):
        raise ConfigError("The dataset's name is not one of Minari's.", found=name, expected="NAME-v0")
    places = _places(dataset)
    parts = _parts(dataset)
    info = portable_info(dataset.info, path)
    size = dataset.nbytes + dataset.n_trajectories * _GROUP_OVERHEAD_BYTES
    with new_folder(path, overwrite=overwrite, needed_bytes=size) as partial, told_as_os_errors():
        folder = partial / "data"
        folder.mkdir()
        with h5py.File(folder / DATA_FILE, "w", track_order=True) as file:
            for number in range(len(dataset)):
                _write_episode(file.create_group(f"episode_{number}"), dataset, number, parts, places)
                if progress is not None:
                    progress(number + 1, len(dataset))
        bytes_written = (folder / DATA_FILE).stat().st_size
        metadata = _metadata(dataset, info, name, parts, places, bytes_written)
        (folder / METADATA_FILE).write_text(json.dumps(metadata, sort_keys=True))
        for file_name in (DATA_FILE, METADATA_FILE):
            synchronise(folder / file_name)


def _dataset_id(path: Path) -> str:
    name = re.sub(r"[^-_\w]+", "-", path.name)
    return name if re.search(r"-v\d+$", name) else f"{name}-v0"


def _places(dataset: Dataset) -> dict[str, str]:
    """Where in an episode each extra column goes. Minari has room for them in `infos`."""
    taken: dict[str, str] = {}
    parts = _parts(dataset)
    for column in sorted(dataset.extras):
        kept = column.startswith("infos/") or (parts is not None and column.startswith("observations/"))
        place = column if kept else f"infos/{column}"
        while place in taken.values():
            place += "_"
        taken[column] = place
    return taken


def _parts(dataset: Dataset) -> list[tuple[str, int]] | None:
    """How the observation was joined from a dictionary, if it was and still has that width."""
    noted = dataset.info.get("observation_parts")
    if not noted or sum(width for _, width in noted) != dataset.observation_dim:
        return None
    return [(str(key), int(width)) for key, width in noted]


def _write_episode(
    group: h5py.Group,
    dataset: Dataset,
    number: int,
    parts: list[tuple[str, int]] | None,
    places: dict[str, str],
) -> None:
    start, stop = int(dataset.offsets[number]), int(dataset.offsets[number + 1])
    steps = slice(start, stop - 1)
    group.attrs["id"] = number
    group.attrs["total_steps"] = stop - 1 - start
    observations = dataset.observations[start:stop]
    if parts is None:
        group["observations"] = observations
    else:
        edges = np.cumsum([0, *(width for _, width in parts)])
        for (key, _), low, high in zip(parts, edges[:-1], edges[1:], strict=True):
            group[f"observations/{key}"] = observations[:, low:high]
    group["actions"] = dataset.actions[steps]
    rewards = dataset.rewards
    group["rewards"] = rewards[steps] if rewards is not None else np.zeros(stop - 1 - start, dtype=np.float32)
    group["terminations"] = dataset.terminated[steps]
    group["truncations"] = dataset.truncated[steps]
    infos = group.create_group("infos")
    for column, place in places.items():
        target, key = (infos, place.removeprefix("infos/")) if place.startswith("infos/") else (group, place)
        target[key] = dataset.extras[column][start:stop]
    for attribute, column in (("end_action", dataset.actions), ("end_reward", rewards)):
        if column is not None and column[stop - 1].any():
            group.attrs[attribute] = column[stop - 1]


def _metadata(
    dataset: Dataset,
    info: dict[str, Any],
    name: str,
    parts: list[tuple[str, int]] | None,
    places: dict[str, str],
    data_bytes: int,
) -> dict[str, Any]:
    carried = dict(info.get("minari", {}))
    own = {
        "columns": {place: column for column, place in places.items()},
        "rewards_known": dataset.rewards is not None,
        "info": {key: value for key, value in info.items() if key not in ("minari", "left_out")},
    }
    if parts is not None:
        own["observation_keys"] = [key for key, _ in parts]
    observation_space = carried.pop("observation_space", None)
    action_space = carried.pop("action_space", None)
    if parts is None or observation_space is None or dataset.info.get("source") != "minari":
        observation_space = json.dumps(_observation_space(dataset, parts, places))
    if action_space is None or "changes" in dataset.info:
        action_space = json.dumps(_action_space(dataset))
    return {
        **carried,
        "dataset_id": name,
        "minari_version": FORMAT_VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": dataset.n_trajectories,
        "total_steps": dataset.n_transitions,
        "dataset_size": round(data_bytes / 1e6, 1),
        "observation_space": observation_space,
        "action_space": action_space,
        "astro_rl": own,
    }


def _observation_space(
    dataset: Dataset, parts: list[tuple[str, int]] | None, places: dict[str, str]
) -> dict[str, Any]:
    if parts is None:
        return _box(dataset.observations.dtype, (dataset.observation_dim,), -np.inf, np.inf)
    spaces = {key: _box(dataset.observations.dtype, (width,), -np.inf, np.inf) for key, width in parts}
    for column, place in places.items():
        if place.startswith("observations/"):
            values = dataset.extras[column]
            spaces[place.removeprefix("observations/")] = _box(
                values.dtype, values.shape[1:], -np.inf, np.inf
            )
    tree: dict[str, Any] = {"type": "Dict", "subspaces": {}}
    for key, space in sorted(spaces.items()):
        *branches, leaf = key.split("/")
        node = tree
        for branch in branches:
            node = node["subspaces"].setdefault(branch, {"type": "Dict", "subspaces": {}})
        node["subspaces"][leaf] = space
    return tree


def _action_space(dataset: Dataset) -> dict[str, Any]:
    """[−1, 1], widened by the rounding errors that a dataset may have, so that the space contains every
    action."""
    reach = 1.0
    for start in range(0, dataset.n_rows, 2**20):
        reach = max(reach, float(np.abs(dataset.actions[start : start + 2**20]).max()))
    return _box(dataset.actions.dtype, (dataset.action_dim,), -reach, reach)


def _box(dtype: np.dtype, shape: tuple[int, ...], low: float, high: float) -> dict[str, Any]:
    """A space as Minari's metadata has it. Infinite bounds are `Infinity`, which Minari writes and reads
    itself."""
    bounds = {"low": np.full(shape, low).tolist(), "high": np.full(shape, high).tolist()}
    return {"type": "Box", "dtype": str(dtype), "shape": list(shape), **bounds}
