"""Append-only records: a line of JSON a measurement, written as it is made, and a Parquet copy at the end.

Lines are cut back to the checkpoint that a run resumes from, so that a killed run ends with the same bytes as
one that was left alone.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.errors import AstroError, DataError
from astro_rl.run.files import jsonable


class RecordFile:
    """`NAME.jsonl`, in the order of steps. Several lines may share a step, for example one a seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._last_step: int | None = None

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Append a line. A number that is not finite becomes null, because JSON has no other place for it."""
        if "step" in values:
            raise AstroError("`step` is written by itself.", file=self.path, field="step")
        descriptor = self._open()
        if self._last_step is not None and step < self._last_step:
            raise AstroError(
                "Records go forward.",
                file=self.path,
                field="step",
                found=step,
                expected=f"{self._last_step} or later",
            )
        record = {"step": int(step), **{name: _plain(value) for name, value in values.items()}}
        line = json.dumps(jsonable(record), allow_nan=False, separators=(",", ":")) + "\n"
        content = line.encode()
        try:
            written = os.write(descriptor, content)
        except OSError as error:
            raise DataError("Cannot write this record.", file=self.path, found=error.strerror) from error
        if written < len(content):
            raise DataError(
                "Cannot write this record.", file=self.path, found="only a part of the line was written"
            )
        self._last_step = step

    def truncate_after(self, step: int) -> None:
        """Remove what was recorded after `step`, and a last line that a kill cut in half."""
        self.close()
        if not self.path.exists():
            return
        end = 0
        for number, stop, record in self._complete_lines():
            if _step_of(record, self.path, number) > step:
                break
            end = stop
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.ftruncate(descriptor, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> list[dict[str, Any]]:
        """All complete lines. A half-written last one is passed over: its writer may be at work, or was
        killed.
        """
        if not self.path.exists():
            return []
        return [record for _, _, record in self._complete_lines()]

    def sync(self) -> None:
        """Have everything on the disk: before a checkpoint, so that after a power cut no line is missing
        under it.
        """
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def write_parquet(self) -> Path:
        """The same records as a table, `NAME.parquet`."""
        import pyarrow.parquet as parquet

        table = table_of(self.read())
        target = self.path.with_suffix(".parquet")
        temporary = target.with_name(f".{target.name}.tmp")
        try:
            with temporary.open("wb") as file:
                parquet.write_table(table, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise DataError("Cannot write this file.", file=target, found=error.strerror) from error
        return target

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._last_step = None

    def _open(self) -> int:
        if self._descriptor is None:
            end, last = 0, None
            if self.path.exists():
                for number, stop, record in self._complete_lines():
                    end, last = stop, _step_of(record, self.path, number)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)
            self._last_step = last
        return self._descriptor

    def _complete_lines(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """(line number, where it ends in the file, record). Only the last line may be damaged."""
        content = self.path.read_bytes()
        position, number = 0, 0
        while position < len(content):
            number += 1
            stop = content.find(b"\n", position) + 1
            is_last = stop in (0, len(content))
            record = _parse(content[position : stop or None]) if stop else None
            if record is None:
                if is_last:
                    return
                raise DataError(
                    "A line in the middle of the records is damaged.",
                    file=self.path,
                    field=f"line {number}",
                    found=content[position : min(stop, position + 60)],
                    expected="an object of JSON",
                )
            yield number, stop, record
            position = stop


def table_of(records: list[dict[str, Any]]) -> Any:
    """A pyarrow table of all columns that any record has; mixed kinds of values become JSON text."""
    import pyarrow as pa

    names = list(dict.fromkeys(["step", *(name for record in records for name in record)]))
    columns = {}
    for name in names:
        values = [record.get(name) for record in records]
        try:
            columns[name] = pa.array(values, type=pa.int64() if name == "step" else None)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else json.dumps(value) for value in values])
    return pa.table(columns)


def _plain(value: Any) -> Any:
    """Numbers, text and lists of them; whatever has a shape becomes a list."""
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _step_of(record: dict[str, Any], path: Path, number: int) -> int:
    step = record.get("step")
    if type(step) is not int:
        raise DataError(
            "A record without a step.",
            file=path,
            field=f"line {number}",
            found=step,
            expected="a whole number",
        )
    return step
