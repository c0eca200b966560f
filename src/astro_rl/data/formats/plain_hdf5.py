"""Plain HDF5: whatever arrays there are, see `plain`. What we write holds our own columns and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.data.atomic import is_disk_full, new_file
from astro_rl.data.checks import check_dataset
from astro_rl.data.columns import Chunks, Column, MemorySpace, Progress, Space, native, rows_per_chunk, told
from astro_rl.data.formats.plain import DonesMean, Layout, PlainOptions, assemble_own, assemble_plain
from astro_rl.data.manifest import portable_info
from astro_rl.data.npz import EXPAND_LIMIT_BYTES, expands_too_far
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

NOTE = "astro_rl_rows"
"""The root attribute that marks a file of ours, with row-aligned columns; its text is the dataset's info."""

MAGIC = b"\x89HDF\r\n\x1a\n"


def recognises(path: Path) -> bool:
    """Any HDF5 file: what is wrong with its content is for reading to say."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8) == MAGIC


def read(
    path: Path,
    *,
    layout: Layout | None = None,
    dones_mean: DonesMean | None = None,
    fields: Mapping[str, str] | None = None,
    close_last: bool = False,
    expand_limit_bytes: int = EXPAND_LIMIT_BYTES,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
    space: Space | None = None,
) -> Dataset:
    build = BuildOptions(drop_short, actions_outside, action_range, path, space or MemorySpace())
    with _opened(path) as file:
        note = file.attrs.get(NOTE)
        arrays = _arrays(file)
        expands = sum(array.dtype.itemsize * array.size for array in arrays.values())
        if expands > expand_limit_bytes:
            raise expands_too_far(path, expands, expand_limit_bytes)
        columns = {name: _column(array) for name, array in arrays.items()}
        if note is not None:
            return assemble_own(columns, str(note), build)
        options = PlainOptions(layout, dones_mean, fields, close_last, build)
        return assemble_plain(columns, {"source": "plain-hdf5", "source_file": path.name}, options)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    if path.is_dir():
        raise DataError(
            "A folder was given where an HDF5 file is needed.", file=path, fix="give the file inside it"
        )
    if not path.exists():
        raise DataError("There is no such file.", file=path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:
        if isinstance(error, OSError) and is_disk_full(error):
            raise
        raise DataError(
            "The file is cut or damaged, or is not HDF5.",
            file=path,
            found=str(error),
            fix="get the file again; a download that was broken off leaves such a file",
        ) from error


def _arrays(file: Any) -> dict[str, Any]:
    """All arrays by their path. Links to other files are not followed."""
    import h5py

    arrays: dict[str, Any] = {}

    def note(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item

    file.visititems(note)
    return arrays


def _column(array: Any) -> Column:
    def chunks() -> Chunks:
        if not array.shape:
            yield np.asarray(array[()])
            return
        step = rows_per_chunk(array.dtype, array.shape)
        for start in range(0, array.shape[0], step):
            yield array[start : start + step]

    return Column(array.dtype, tuple(array.shape or ()), chunks)


def write(
    dataset: Dataset,
    path: Path,
    *,
    overwrite: bool = False,
    compressed: bool = False,
    progress: Progress | None = None,
) -> None:
    """Our own columns and offsets, row-aligned; any HDF5 reader reads them without us."""
    import h5py

    check_dataset(dataset)
    with (
        new_file(path, overwrite=overwrite, needed_bytes=dataset.nbytes) as partial,
        h5py.File(partial, "w") as file,
    ):
        file.attrs[NOTE] = json.dumps(portable_info(dataset.info), sort_keys=True)
        columns = {**dataset.columns(), "offsets": dataset.offsets}
        for name, column in told({name: Column.of(c) for name, c in columns.items()}, progress).items():
            packing = {"compression": "gzip", "shuffle": True} if compressed else {}
            target = file.create_dataset(name, shape=column.shape, dtype=native(column.dtype), **packing)
            row = 0
            for chunk in column.chunks():
                target[row : row + len(chunk)] = chunk
                row += len(chunk)
