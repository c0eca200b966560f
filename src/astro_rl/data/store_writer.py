"""Writing a store trajectory by trajectory, for data made piece by piece and never whole in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from astro_rl.data.assemble import dataset_of
from astro_rl.data.build import from_trajectories
from astro_rl.data.checks import check_dataset
from astro_rl.data.columns import array_chunks, column_file, map_npy, native, npy_header
from astro_rl.data.schema import Dataset, Trajectory
from astro_rl.data.store import seal_store, store_folder
from astro_rl.errors import DataError


class StoreWriter:
    """`with StoreWriter(path) as writer: writer.append(trajectory)`.

    Memory does not grow with what was written. Leaving the block commits the store in one rename; leaving
    it through an exception, or calling `abort`, leaves nothing behind. The first trajectory fixes the
    columns and their types.
    """

    def __init__(
        self, path: str | Path, *, info: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> None:
        self.path, self.info = Path(path), dict(info or {})
        self._place: AbstractContextManager[Path] = store_folder(self.path, overwrite=overwrite)
        self._columns: dict[str, _GrowingColumn] = {}
        self._folder: Path | None = None
        self.rows = self.trajectories = 0

    def __enter__(self) -> StoreWriter:
        self._folder = self._place.__enter__()
        self._offsets = _GrowingColumn(self._folder / "offsets.npy", np.zeros(1, np.int64))
        self._offsets.append(np.zeros(1, np.int64))
        return self

    def append(self, trajectory: Trajectory | Mapping[str, Any]) -> None:
        """Check one trajectory (as `from_trajectories` takes them) and write it."""
        self.extend([trajectory])

    def extend(self, trajectories: Dataset | Iterable[Trajectory | Mapping[str, Any]]) -> None:
        """Several at once, or a whole dataset, whose columns are copied chunk by chunk."""
        if self._folder is None:
            raise DataError(
                "The writer is not open.", file=self.path, fix="use it as: with StoreWriter(path) as writer"
            )
        if isinstance(trajectories, Dataset):
            batch = trajectories
            check_dataset(batch)
        else:
            batch = from_trajectories(trajectories, source=self.path)
        columns = batch.columns()
        if not self._columns:
            self._columns = {
                name: _GrowingColumn(self._folder / column_file(name), column)
                for name, column in columns.items()
            }
        self._refuse_others(columns)
        for name, column in columns.items():
            self._columns[name].append(column)
        self._offsets.append(np.asarray(batch.offsets[1:]) + self.rows)
        self.rows += batch.n_rows
        self.trajectories += batch.n_trajectories

    def abort(self) -> None:
        """Give up; nothing is left behind. Does nothing after the block."""
        if self._folder is not None:
            self._leave(_Aborted, _Aborted(), None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is None:
            return
        try:
            if kind is None:
                self._seal()
        except BaseException as fault:
            self._leave(type(fault), fault, fault.__traceback__)
            raise
        self._leave(kind, error, trace)

    def _seal(self) -> None:
        assert self._folder is not None
        if not self.trajectories:
            raise DataError("No trajectory was written.", file=self.path, expected="at least one")
        columns = {name: column.close() for name, column in self._columns.items()}
        offsets = self._offsets.close()
        seal_store(self._folder, dataset_of(columns, offsets, self.info))

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder = None
        for column in (*self._columns.values(), self._offsets):
            column.discard()
        with suppress(_Aborted):
            self._place.__exit__(kind, error, trace)

    def _refuse_others(self, columns: Mapping[str, np.ndarray]) -> None:
        if columns.keys() != self._columns.keys():
            raise DataError(
                "A trajectory has other columns than those written before.",
                file=self.path,
                field=", ".join(sorted(columns.keys() ^ self._columns.keys())),
                found=", ".join(columns),
                expected=", ".join(self._columns),
            )
        for name, column in columns.items():
            self._columns[name].refuse_other(name, column, self.path)


class _Aborted(Exception):
    """Takes the way of an error through the context managers, and ends in `abort`."""


class _GrowingColumn:
    """An `.npy` file whose number of rows is written last: NumPy pads headers so that it can grow."""

    def __init__(self, path: Path, like: np.ndarray) -> None:
        self.path, self.dtype, self.row_shape = path, native(like.dtype), like.shape[1:]
        self.rows = 0
        self.file: BinaryIO = path.open("wb", buffering=2**20)
        self._write_header()
        self.header_bytes = self.file.tell()

    def _write_header(self) -> None:
        np.lib.format.write_array_header_1_0(self.file, npy_header(self.dtype, (self.rows, *self.row_shape)))

    def refuse_other(self, name: str, column: np.ndarray, file: Path) -> None:
        if native(column.dtype) != self.dtype or column.shape[1:] != self.row_shape:
            raise DataError(
                "A trajectory has another shape or type than those written before.",
                file=file,
                field=name,
                found=f"{column.dtype}, {column.shape[1:]} a row",
                expected=f"{self.dtype}, {self.row_shape} a row",
            )

    def append(self, rows: np.ndarray) -> None:
        for chunk in array_chunks(rows):
            self.file.write(np.ascontiguousarray(chunk, dtype=self.dtype).data)
        self.rows += len(rows)

    def close(self) -> np.ndarray:
        self.file.seek(0)
        self._write_header()
        if self.file.tell() != self.header_bytes:
            raise RuntimeError("NumPy's header changed its length while the column grew")
        self.file.close()
        return map_npy(self.path, self.dtype, (self.rows, *self.row_shape))

    def discard(self) -> None:
        """Close what is open; a full disk may refuse what is still buffered, which no longer matters."""
        with suppress(OSError):
            self.file.close()
