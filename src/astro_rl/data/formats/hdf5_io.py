"""Opening, checking and writing HDF5 files so that every fault is told in our words and nothing
half-written stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from astro_rl.data.atomic import new_file
from astro_rl.errors import DataError

EXPAND_LIMIT_BYTES = 64 * 2**30
"""What a file may claim to hold. Compressed HDF5 can claim a terabyte in a few kilobytes, so it is asked
first."""


def is_hdf5(path: Path) -> bool:
    return path.is_file() and bool(h5py.is_hdf5(path))


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """The file opened for reading; a fault of the file while it is open becomes a `DataError`."""
    if path.is_dir():
        raise DataError(
            "A file was expected.", file=path, found="a directory", fix="give the .hdf5 file inside it"
        )
    if not path.exists():
        raise DataError("The file does not exist.", file=path)
    if not h5py.is_hdf5(path):
        raise DataError(
            "This is not an HDF5 file.",
            file=path,
            found=f"{path.stat().st_size} bytes without HDF5's signature",
            fix="fetch the file again; an interrupted download or a saved web page looks like this",
        )
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError) as fault:
        raise DataError(
            "The file is truncated or corrupt.",
            file=path,
            found=str(fault).splitlines()[0],
            fix="fetch or copy the file again",
        ) from fault


def leaves(group: h5py.Group) -> dict[str, h5py.Dataset]:
    """Every array below a group by its path, in sorted order."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item

    group.visititems(visit)
    return dict(sorted(found.items()))


def claimed_bytes(arrays: Mapping[str, h5py.Dataset]) -> int:
    """What a file says it holds, before anything is read."""
    return sum(int(array.size or 0) * array.dtype.itemsize for array in arrays.values())


def check_claimed_size(claimed: int, limit_bytes: int | None, path: Path) -> None:
    if limit_bytes is not None and claimed > limit_bytes:
        raise DataError(
            "The file would expand past the limit.",
            file=path,
            found=f"{claimed:,} bytes",
            expected=f"at most {limit_bytes:,} bytes",
            fix="raise expand_limit_bytes if the file is meant to be this large",
        )


def read_numbers(array: h5py.Dataset, path: Path, field: str) -> np.ndarray:
    """An array of booleans, integers or floats; anything else is refused unread."""
    if array.dtype.kind not in "biuf":
        raise DataError(
            "The column does not hold real numbers.",
            file=path,
            field=field,
            found=f"dtype {array.dtype}",
            expected="booleans, integers or floats",
        )
    return np.asarray(array[()])


def read_floats(array: h5py.Dataset, path: Path, field: str) -> np.ndarray:
    """An array that has to be float32 or float64. Half precision is widened; integers mean another kind of
    data."""
    values = read_numbers(array, path, field)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype not in (np.float32, np.float64):
        raise DataError(
            "The column has the wrong type.",
            file=path,
            field=field,
            found=f"dtype {values.dtype}",
            expected="float32 or float64",
            fix="discrete actions and images are not supported; convert other integers to float32",
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)


@contextmanager
def write_hdf5(path: Path, *, overwrite: bool, needed_bytes: int) -> Iterator[h5py.File]:
    """A new file that appears under its name only once it is complete and on disk."""
    with (
        new_file(path, overwrite=overwrite, needed_bytes=needed_bytes) as partial,
        told_as_os_errors(),
        h5py.File(partial, "w") as file,
    ):
        yield file


@contextmanager
def told_as_os_errors() -> Iterator[None]:
    """HDF5 tells of a full disk found on closing a file by a RuntimeError; callers look for OSError."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(str(error)) from error
