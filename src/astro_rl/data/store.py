"""The store: a folder of `.npy` columns and a manifest, opened as memory maps however large it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np

from astro_rl.data.assemble import dataset_of
from astro_rl.data.atomic import new_folder
from astro_rl.data.checks import check_dataset, check_layout, check_offsets
from astro_rl.data.columns import Column, DiskSpace, Progress, column_file, map_npy, write_npy
from astro_rl.data.digest import digest_columns
from astro_rl.data.manifest import make_manifest, read_manifest, write_manifest
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

OFFSETS_CHECKED = 4_000_000
"""Up to this many trajectories, opening checks every offset; beyond, that would no longer be done at once."""


def open_store(path: str | Path) -> Dataset:
    """The dataset of a store, memory-mapped. Reads the manifest, headers and offsets, and no other byte."""
    path = Path(path)
    manifest = read_manifest(path)
    columns = {
        name: _open_column(path, name, np.dtype(entry["dtype"]), tuple(entry["shape"]), entry["bytes"])
        for name, entry in manifest["columns"].items()
    }
    offsets, rows = columns.pop("offsets"), len(columns["observations"])
    check_layout(columns, path)
    if len(offsets) <= OFFSETS_CHECKED:
        check_offsets(offsets, rows, path)
    elif offsets[0] != 0 or offsets[-1] != rows:
        check_offsets(offsets[[0, -1]], rows, path)
    dataset = dataset_of(columns, offsets, manifest["info"])
    return replace(dataset, stamp=(manifest["digest"], {"offsets": offsets, **columns}))


def _open_column(folder: Path, name: str, dtype: np.dtype, shape: tuple[int, ...], size: int) -> np.ndarray:
    path = folder / column_file(name)
    if not path.is_file():
        raise DataError("A column of the store is missing.", file=path, field=name)
    found = path.stat().st_size
    if found != size:
        raise DataError(
            "A column of the store was cut, or changed since it was written.",
            file=path,
            field=name,
            found=f"{found} bytes",
            expected=f"{size} bytes",
            fix="write the store again from its source",
        )
    try:
        return map_npy(path, dtype, shape)
    except ValueError as error:
        raise DataError(
            "A column's header is damaged, or is not what the manifest says.",
            file=path,
            field=name,
            found=str(error),
            expected=f"{dtype}, shape {shape}",
            fix="write the store again from its source",
        ) from error


def write_store(
    dataset: Dataset, path: str | Path, *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Write the dataset as a store, a chunk at a time; it appears whole or not at all."""
    check_dataset(dataset)
    columns = {name: Column.of(column) for name, column in dataset.columns().items()}
    needed = dataset.nbytes + dataset.offsets.nbytes
    with store_folder(path, overwrite=overwrite, needed_bytes=needed) as folder:
        DiskSpace(folder, progress).put(columns)
        seal_store(folder, dataset)


def convert_to_store(
    read: Callable[[DiskSpace], Dataset],
    path: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Let a reader land its columns in the new store's own folder, so that none is ever whole in memory."""
    with store_folder(path, overwrite=overwrite) as folder:
        seal_store(folder, read(DiskSpace(folder, progress)))


def seal_store(folder: Path, dataset: Dataset) -> None:
    """Write what is not there yet: columns that were not landed in the folder, the offsets, the manifest."""
    columns = {**dataset.columns(), "offsets": dataset.offsets}
    for name, column in columns.items():
        if not (folder / column_file(name)).exists():
            write_npy(folder / column_file(name), Column.of(column))
    sizes = {name: (folder / column_file(name)).stat().st_size for name in columns}
    write_manifest(folder, make_manifest(columns, sizes, digest_columns(columns), dataset.info))


def store_folder(
    path: str | Path, *, overwrite: bool, needed_bytes: int | None = None
) -> AbstractContextManager[Path]:
    """A folder for a new store. Only a store is ever overwritten, never another kind of folder."""
    path = Path(path)
    if overwrite and path.is_dir() and any(path.iterdir()):
        try:
            read_manifest(path)
        except DataError as error:
            raise DataError(
                "The destination is a folder that is not a store, and is not overwritten.",
                file=path,
                fix="give another name, or remove the folder yourself",
            ) from error
    return new_folder(path, overwrite=overwrite, needed_bytes=needed_bytes)


def verify_store(path: str | Path, progress: Progress | None = None) -> Dataset:
    """Open the store and read all of it: every check of the data, and the digest against the manifest's."""
    dataset = open_store(path)
    check_dataset(dataset, path, progress)
    expected = read_manifest(Path(path))["digest"]
    found = digest_columns({"offsets": dataset.offsets, **dataset.columns()})
    if found != expected:
        raise DataError(
            "The store's bytes are not those that were written.",
            file=path,
            found=f"digest {found}",
            expected=f"digest {expected}",
            fix="write the store again from its source",
        )
    return dataset
