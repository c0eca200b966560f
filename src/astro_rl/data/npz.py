"""`.npz` archives read and written a chunk at a time: nothing unpickled, nothing read unmeasured."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from astro_rl.data.atomic import readable_bytes
from astro_rl.data.columns import Chunks, Column, Progress, native, npy_header, rows_per_chunk, told
from astro_rl.errors import DataError

EXPAND_LIMIT_BYTES = 64 * 2**30
"""What a compressed file may unpack to unless told otherwise."""

ZIP_MAGIC = b"PK\x03\x04"


@runtime_checkable
class Readable(Protocol):
    """A member of an archive while it is read."""

    def read(self, size: int = -1, /) -> bytes: ...
    def tell(self) -> int: ...


@dataclass(frozen=True)
class _Member:
    """One array of the archive: where it is, and what its header says."""

    file: Path
    entry: str
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool

    def chunks(self) -> Chunks:
        with (
            _told(self.file, self.entry),
            zipfile.ZipFile(self.file) as archive,
            archive.open(self.entry) as data,
        ):
            _read_header(data)
            if self.fortran_order or not self.shape:
                # Columns of a Fortran-ordered array lie apart: rows exist only once all of it is read.
                flat = np.frombuffer(_exactly(data, self._bytes(self.shape)), dtype=self.dtype)
                yield flat.reshape(self.shape, order="F" if self.fortran_order else "C")
                return
            step = rows_per_chunk(self.dtype, self.shape)
            for start in range(0, self.shape[0], step):
                shape = (min(step, self.shape[0] - start), *self.shape[1:])
                yield np.frombuffer(_exactly(data, self._bytes(shape)), dtype=self.dtype).reshape(shape)

    def _bytes(self, shape: tuple[int, ...]) -> int:
        return self.dtype.itemsize * math.prod(shape)


def open_npz(path: Path, expand_limit_bytes: int = EXPAND_LIMIT_BYTES) -> dict[str, Column]:
    """The archive's arrays by name, not yet read: only the directory and the headers are."""
    if path.is_dir():
        raise DataError(
            "A folder was given where an .npz file is needed.", file=path, fix="give the file inside it"
        )
    if not path.exists():
        raise DataError("There is no such file.", file=path)
    columns: dict[str, Column] = {}
    with _told(path, None), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        expands = sum(entry.file_size for entry in entries)
        if expands > expand_limit_bytes:
            raise expands_too_far(path, expands, expand_limit_bytes)
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename:
                continue
            if name in columns:
                raise DataError("Two arrays of the archive have the same name.", file=path, field=name)
            with archive.open(entry) as data:
                member = _member(path, entry, name, data)
            columns[name] = Column(member.dtype, member.shape, member.chunks)
    return columns


def expands_too_far(path: Path, expands: int, limit: int) -> DataError:
    return DataError(
        "The file would expand past the limit; nothing was read.",
        file=path,
        found=f"{readable_bytes(path.stat().st_size)} that expand to {readable_bytes(expands)}",
        expected=f"at most {readable_bytes(limit)}",
        fix=f"if the file is trusted: expand_limit_bytes={expands}",
    )


def _member(path: Path, entry: zipfile.ZipInfo, name: str, data: Readable) -> _Member:
    shape, fortran_order, dtype, header = _read_header(data)
    if dtype.hasobject:
        raise DataError(
            "A column holds Python objects, which are never unpickled.",
            file=path,
            field=name,
            found=f"dtype {dtype}",
            expected="numbers",
            fix=f"save {name} as one plain array: trajectories end to end, with offsets",
        )
    claimed, there = dtype.itemsize * math.prod(shape), entry.file_size - header
    if claimed != there:
        raise DataError(
            "The file is damaged: an array's header and its data disagree.",
            file=path,
            field=name,
            found=f"{there} bytes of data",
            expected=f"{claimed} bytes, for {dtype} of shape {shape}",
            fix="get the file again",
        )
    return _Member(path, entry.filename, dtype, shape, fortran_order and len(shape) > 1)


def _read_header(data: Readable) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    version = np.lib.format.read_magic(data)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"array format version {version} is not one for plain numbers")
    shape, fortran_order, dtype = readers[version](data)
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, fortran_order, dtype, data.tell()


def _exactly(data: Readable, count: int) -> bytes:
    """Exactly so many bytes. The archive's checksum is compared when the last of them is read."""
    parts: list[bytes] = []
    while count:
        part = data.read(count)
        if not part:
            raise EOFError(f"{count} bytes are missing")
        parts.append(part)
        count -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


@contextmanager
def _told(path: Path, entry: str | None) -> Iterator[None]:
    """Damage, as one message, whichever layer stumbles over it first."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise DataError(
            "The file is cut or damaged, or is not an .npz archive.",
            file=path,
            field=entry.removesuffix(".npy") if entry else None,
            found=f"{error}" or type(error).__name__,
            fix="get the file again; a download that was broken off leaves such a file",
        ) from error


def write_npz(
    path: Path, columns: Mapping[str, Column], *, compressed: bool = True, progress: Progress | None = None
) -> None:
    """An archive that `np.load` reads. Same columns, same bytes: the archive's times are fixed."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, column in told(columns, progress).items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = method, 0o644 << 16
            dtype = native(column.dtype)
            with archive.open(entry, "w", force_zip64=True) as data:
                np.lib.format.write_array_header_1_0(data, npy_header(dtype, column.shape))
                for chunk in column.chunks():
                    data.write(np.ascontiguousarray(chunk, dtype=dtype).tobytes())
