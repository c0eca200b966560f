"""OGBench's `.npz`, written column by column in bounded memory, the same bytes for the same rows."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.lib import format as npy

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can tell: a real one would make equal data unequal files."""


@runtime_checkable
class ColumnSource(Protocol):
    """Something that can hand out a column piece by piece, any number of times."""

    def names(self) -> list[str]: ...

    def pieces(self, name: str) -> Iterator[np.ndarray]: ...


def write_npz(path: Path, source: ColumnSource, rows: int) -> None:
    """Writes `rows` rows of each column; on any failure nothing is left at `path`."""
    try:
        with path.open("wb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name in source.names():
                    _write_column(archive, name, source.pieces(name), rows)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write_column(archive: zipfile.ZipFile, name: str, pieces: Iterable[np.ndarray], rows: int) -> None:
    member = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    written = 0
    # Members over 4 GiB need the wider header, and its size cannot be known before compressing.
    with archive.open(member, "w", force_zip64=True) as column:
        for piece in pieces:
            if not written:
                header = {
                    "descr": npy.dtype_to_descr(piece.dtype),
                    "fortran_order": False,
                    "shape": (rows, *piece.shape[1:]),
                }
                npy.write_array_header_1_0(column, header)
            column.write(np.ascontiguousarray(piece).data.cast("B"))
            written += len(piece)
    if written != rows:
        raise AssertionError(f"{name}: {written} rows written where {rows} were announced")


def replace_durably(
    source: Path, destination: Path, rename: Callable[[Path, Path], object] = os.replace
) -> None:
    """Moves a finished, synchronised file into place, and makes the move itself survive a power cut."""
    rename(source, destination)
    folder = os.open(destination.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
