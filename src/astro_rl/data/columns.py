"""Columns on their way: read chunk by chunk from a file, changed in passing, landed in memory or on disk.

A reader describes what a file holds as `Column`s and lands them in a *space*. The same reader then loads into
memory (`MemorySpace`) or converts a file larger than memory into a store (`DiskSpace`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from astro_rl.data.atomic import room_for

CHUNK_BYTES = 8 * 2**20
"""How much of a column is in memory at a time while it streams."""

Chunks = Iterator[np.ndarray]
Progress = Callable[[int, int], None]


def native(dtype: np.dtype) -> np.dtype:
    """The little-endian type of the same kind: what columns are kept in, and what a digest is taken over."""
    return dtype.newbyteorder("<") if dtype.byteorder == ">" else dtype


def rows_per_chunk(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    return max(1, CHUNK_BYTES // max(1, row_bytes))


def array_chunks(array: np.ndarray) -> Chunks:
    """Slices of an array, in order, of at most `CHUNK_BYTES` each."""
    step = rows_per_chunk(array.dtype, array.shape)
    return (array[start : start + step] for start in range(0, len(array), step))


@dataclass(frozen=True)
class Column:
    """A column that can be read from its start as often as needed. `array` is set where it is in memory."""

    dtype: np.dtype
    shape: tuple[int, ...]
    chunks: Callable[[], Chunks]
    array: np.ndarray | None = None

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @staticmethod
    def of(array: np.ndarray) -> Column:
        return Column(array.dtype, array.shape, lambda: array_chunks(array), array)

    def read(self) -> np.ndarray:
        """The whole column as one array, of its own where it is not an array already."""
        if self.array is not None:
            dtype = native(self.array.dtype)
            return self.array if dtype == self.array.dtype else self.array.astype(dtype)
        out = np.empty(self.shape, dtype=native(self.dtype))
        row = 0
        for chunk in self.chunks():
            if not self.shape:
                return chunk
            out[row : row + len(chunk)] = chunk
            row += len(chunk)
        return out

    def map(self, change: Callable[[np.ndarray, int], np.ndarray]) -> Column:
        """Each chunk changed on the way; `change` is given the chunk and the row at which it starts."""

        def changed() -> Chunks:
            row = 0
            for chunk in self.chunks():
                yield change(chunk, row)
                row += len(chunk)

        return Column(self.dtype, self.shape, changed)

    def kept(self, keep: np.ndarray) -> Column:
        """Only the rows marked in `keep`."""

        def filtered() -> Chunks:
            row = 0
            for chunk in self.chunks():
                yield chunk[keep[row : row + len(chunk)]]
                row += len(chunk)

        return Column(self.dtype, (int(keep.sum()), *self.shape[1:]), filtered)


@runtime_checkable
class Space(Protocol):
    """Where columns land."""

    def put(self, columns: Mapping[str, Column]) -> dict[str, np.ndarray]:
        """Read the columns to their ends and give them back as arrays."""
        ...


def told(columns: Mapping[str, Column], progress: Progress | None) -> Mapping[str, Column]:
    """The same columns; as they are read, `progress` is told the bytes done and the bytes in all."""
    if progress is None:
        return columns
    total, done = sum(column.nbytes for column in columns.values()), 0

    def tell(chunk: np.ndarray, _: int) -> np.ndarray:
        nonlocal done
        done += chunk.nbytes
        progress(done, total)
        return chunk

    return {name: column.map(tell) for name, column in columns.items()}


class MemorySpace:
    """Columns become arrays; one that is an array already is not copied."""

    def put(self, columns: Mapping[str, Column]) -> dict[str, np.ndarray]:
        return {name: column.read() for name, column in columns.items()}


class DiskSpace:
    """Columns become `.npy` files of a folder, written chunk by chunk, and come back as memory maps.

    Written with plain writes rather than through a writable map: a full disk then raises an error; a map
    would kill the process with a bus error.
    """

    def __init__(self, folder: Path, progress: Progress | None = None) -> None:
        self.folder, self.progress = folder, progress

    def put(self, columns: Mapping[str, Column]) -> dict[str, np.ndarray]:
        landed: dict[str, np.ndarray] = {}
        with room_for(self.folder, sum(column.nbytes for column in columns.values())):
            for name, column in told(columns, self.progress).items():
                path = self.folder / column_file(name)
                write_npy(path, column)
                landed[name] = map_npy(path, native(column.dtype), column.shape)
        return landed


def column_file(name: str) -> str:
    """The file of a column in a store: a slash in a name (HDF5's groups) becomes two underscores."""
    return name.replace("/", "__") + ".npy"


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> dict[str, object]:
    return {"descr": np.lib.format.dtype_to_descr(native(dtype)), "fortran_order": False, "shape": shape}


def write_npy(path: Path, column: Column) -> None:
    dtype = native(column.dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, npy_header(dtype, column.shape))
        for chunk in column.chunks():
            file.write(np.ascontiguousarray(chunk, dtype=dtype).data)


def map_npy(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The file as a read-only memory map, without reading more than its header, which has to say the same."""
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0(file)
        start = file.tell()
    if header != (shape, False, dtype):
        raise ValueError(f"{header[2]}, shape {header[0]}{', Fortran order' if header[1] else ''}")
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape)
