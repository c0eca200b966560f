"""What has to hold before data is believed. Complaints name the field, the first row and how many."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from astro_rl.data.columns import Progress, column_file, rows_per_chunk
from astro_rl.data.schema import COLUMNS, SIMULATOR_COLUMNS, Dataset
from astro_rl.errors import DataError

ACTION_TOLERANCE = 1e-6
"""How far beyond ±1 an action may stand: what rounding to float32 does, and no more."""

Source = str | Path | None


RESERVED = ("offsets", "next_observations")
"""Names that mean something else in files, so that no extra column may have them."""


@runtime_checkable
class Shaped(Protocol):
    """Anything with a type and a shape, so that a column can be refused before it is read."""

    @property
    def dtype(self) -> np.dtype: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def check_dataset(dataset: Dataset, source: Source = None, progress: Progress | None = None) -> None:
    """Raise `DataError` unless the dataset is what `docs/data-format.md` says. Reads in chunks."""
    columns = dataset.columns()
    check_layout(columns, source)
    check_offsets(dataset.offsets, dataset.n_rows, source)
    check_values(columns, dataset.offsets, source, progress)


def check_layout(columns: Mapping[str, Shaped], source: Source = None) -> None:
    """Names, types and shapes: everything that can be told from headers."""
    for name in ("observations", "actions"):
        if name not in columns:
            raise missing_field(name, columns, source)
    for name, column in columns.items():
        if name in RESERVED:
            raise DataError(
                "An extra column has a name that is taken.", file=source, field=name, fix="rename it"
            )
        if name not in COLUMNS and not re.fullmatch(
            r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_.\-]+)*", name
        ):
            raise DataError(
                "A column's name cannot be kept in a file.",
                file=source,
                field=repr(name),
                expected="letters, digits, _ - . and / inside",
                fix="rename the column",
            )
        check_kind(name, column, source)
        check_dimensions(name, column, source)
    files = {column_file(name): name for name in columns}
    if len(files) < len(columns):
        doubled = sorted(set(columns) - set(files.values()))
        raise DataError(
            "Two columns would be kept in the same file.",
            file=source,
            field=" and ".join([doubled[0], files[column_file(doubled[0])]]),
            fix="rename one of them",
        )
    check_same_length(columns, source, "observations")


def check_same_length(columns: Mapping[str, Shaped], source: Source, reference: str) -> None:
    lengths = {name: column.shape[0] if column.shape else 0 for name, column in columns.items()}
    for name, length in lengths.items():
        if length != lengths[reference]:
            raise DataError(
                "Columns have different lengths.",
                file=source,
                field=name,
                found=f"{length} rows",
                expected=f"{lengths[reference]} rows, as {reference}",
                fix="every column needs one row for each observation; T + 1 observations and T of the rest "
                "go through from_trajectories",
            )


def check_kind(name: str, column: Shaped, source: Source = None) -> None:
    """Refuse what is not a number, and what is a number of another kind than the column needs."""
    dtype = column.dtype
    if dtype.hasobject:
        raise DataError(
            "A column holds Python objects, which are never unpickled.",
            file=source,
            field=name,
            found=f"dtype {dtype}",
            expected="numbers",
            fix=f"save {name} as one plain array: trajectories end to end, with offsets",
        )
    if dtype.kind not in "biuf" or dtype.names is not None:
        raise DataError(
            "A column does not hold real numbers.",
            file=source,
            field=name,
            found=f"dtype {dtype}",
            expected="float32 or float64"
            if name in ("observations", "actions", "rewards")
            else "numbers or booleans",
            fix="leave the column out, or convert it to numbers",
        )
    if name in ("terminated", "truncated") and dtype != np.bool_:
        raise DataError(
            "A flag column is not boolean.", file=source, field=name, found=f"dtype {dtype}", expected="bool",
            fix=f"{name} = {name}.astype(bool)",
        )  # fmt: skip
    if name in ("observations", "actions", "rewards") and dtype.str[1:] not in ("f4", "f8"):
        raise _wrong_number(name, dtype, source)


def _wrong_number(name: str, dtype: np.dtype, source: Source) -> DataError:
    what, fix = f"The column {name!r} has an unsupported type.", f"{name} = {name}.astype(np.float32)"
    if name == "actions" and dtype.kind in "iub":
        what = "Actions are integers: discrete actions are not supported, only continuous ones in [-1, 1]."
        fix = "if they are continuous values that were rounded, cast them: actions.astype(np.float32)"
    elif name == "observations" and dtype == np.uint8:
        what = "Observations are bytes: image observations are not supported, only vectors of floats."
        fix = "encode the images to vectors first; if they are not images: observations.astype(np.float32)"
    return DataError(
        what, file=source, field=name, found=f"dtype {dtype}", expected="float32 or float64", fix=fix
    )


def check_dimensions(name: str, column: Shaped, source: Source = None) -> None:
    wanted = {"observations": 2, "actions": 2, "rewards": 1, "terminated": 1, "truncated": 1}.get(name)
    shape = column.shape
    if wanted is None and len(shape) >= 1:
        return
    if wanted == len(shape) and 0 not in shape[1:]:
        return
    expected = {2: "two axes, rows × dimensions, with at least one dimension", 1: "one axis, rows"}[
        wanted or 1
    ]
    fix = None
    if wanted == 2 and len(shape) == 1:
        fix = f"if each row is one number: {name} = {name}[:, None]"
    elif wanted == 1 and len(shape) == 2 and shape[1] == 1:
        fix = f"{name} = {name}[:, 0]"
    raise DataError(
        f"The column {name!r} has the wrong number of axes.",
        file=source,
        field=name,
        found=f"shape {shape}",
        expected=expected,
        fix=fix,
    )


def check_offsets(offsets: np.ndarray, rows: int, source: Source = None) -> None:
    """Offsets rise from 0 to the number of rows, by two or more: a trajectory has a transition."""
    if offsets.dtype != np.int64 or len(offsets) < 2:
        raise DataError(
            "There is no trajectory." if len(offsets) < 2 else "The offsets have the wrong type.",
            file=source,
            field="offsets",
            found=f"{len(offsets)} entries of {offsets.dtype}",
            expected="at least two entries of int64: where each trajectory starts, then the number of rows",
        )
    check_offsets_rise(offsets, rows, source)
    sizes = np.diff(offsets)
    short = np.flatnonzero(sizes < 2)
    if len(short):
        raise short_trajectories(short, sizes, source)


def check_offsets_rise(offsets: np.ndarray, rows: int, source: Source = None) -> None:
    """Offsets go from 0 to the number of rows and never fall; lengths are looked at elsewhere."""
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != rows:
        raise DataError(
            "The offsets do not span the rows.",
            file=source,
            field="offsets",
            found=f"from {offsets[0]} to {offsets[-1]}" if len(offsets) else "no entries",
            expected=f"from 0 to {rows}, the number of rows",
        )
    sizes = np.diff(offsets)
    if (sizes < 0).any():
        first = int(np.flatnonzero(sizes < 0)[0])
        raise DataError(
            "The offsets do not rise.",
            file=source,
            field="offsets",
            found=f"entry {first + 1} is {offsets[first + 1]}, after {offsets[first]}",
            expected="each trajectory starts after the one before it",
        )


def short_trajectories(short: np.ndarray, sizes: np.ndarray, source: Source) -> DataError:
    first = int(short[0])
    rows = int(sizes[first])
    return DataError(
        "A trajectory has no transition.",
        file=source,
        found=f"trajectory {first} has {'no rows' if rows == 0 else 'one row'}; "
        f"{len(short)} of {len(sizes)} trajectories are that short",
        expected="at least one transition: two observations and an action between them",
        fix="leave them out with drop_short=True, which counts what it drops",
    )


def check_values(
    columns: Mapping[str, np.ndarray],
    offsets: Int[np.ndarray, "n"],
    source: Source = None,
    progress: Progress | None = None,
) -> None:
    """Finite everywhere, actions in [-1, 1] on transitions, no flag on an end row."""
    end_rows = np.asarray(offsets[1:]) - 1
    for name in ("terminated", "truncated"):
        flagged = np.flatnonzero(columns[name][end_rows])
        if flagged.size:
            raise DataError(
                f"An end row is marked {name}: flags belong to transitions, and an end row has none.",
                file=source,
                field=name,
                found=f"{len(flagged)} end rows, the first is {where(int(end_rows[flagged[0]]), offsets)}",
                fix="set the flag on the row before",
            )
    numeric = [name for name in ("observations", "actions", "rewards", *SIMULATOR_COLUMNS) if name in columns]
    total, done = sum(len(columns[name]) for name in numeric), 0
    for name in numeric:
        column = columns[name]
        bad, outside = _Count(), _Count()
        step = rows_per_chunk(column.dtype, column.shape)
        for start in range(0, len(column), step):
            chunk = column[start : start + step]
            finite = np.isfinite(chunk)
            if not finite.all():
                bad.add(~finite, chunk, start)
            if name == "actions":
                beyond = np.abs(chunk) > 1 + ACTION_TOLERANCE
                if beyond.any():
                    ends = end_rows[
                        np.searchsorted(end_rows, start) : np.searchsorted(end_rows, start + len(chunk))
                    ]
                    beyond[ends - start] = False
                    outside.add(beyond, chunk, start)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
        if bad.values:
            place = "" if bad.first_place == () else f", position {bad.first_place}"
            raise DataError(
                "A column holds values that are not finite.",
                file=source,
                field=name,
                found=f"{bad.values} values in {bad.rows} of {len(column)} rows; the first is {bad.first} at "
                f"{where(bad.first_row, offsets)}{place}",
                expected="finite numbers",
                fix="repair or leave out these trajectories",
            )
        if outside.values:
            raise DataError(
                "Actions are outside [-1, 1].",
                file=source,
                field=name,
                found=f"{outside.values} values in {outside.rows} of {len(column)} rows; the first is "
                f"{outside.first} at {where(outside.first_row, offsets)}, dimension {outside.first_place}; "
                f"they reach from {outside.low:g} to {outside.high:g}",
                expected="actions in [-1, 1]",
                fix='actions_outside="rescale" with action_range=(low, high) if the environment\'s range is '
                'another one; actions_outside="clip" if these are stray values',
            )


class _Count:
    """How many bad values and rows there are, and where the first one is."""

    def __init__(self) -> None:
        self.values = self.rows = self.first_row = 0
        self.first: float = 0.0
        self.first_place: int | tuple[int, ...] = 0
        self.low, self.high = np.inf, -np.inf

    def add(self, bad: np.ndarray, chunk: np.ndarray, start: int) -> None:
        if not bad.any():
            return
        if not self.values:
            row, *place = (int(axis[0]) for axis in np.nonzero(bad))
            self.first_row, self.first = start + row, chunk[(row, *place)]
            self.first_place = place[0] if len(place) == 1 else tuple(place)
        values = chunk[bad]
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        self.values += len(values)
        self.rows += int(bad.reshape(len(bad), -1).any(axis=1).sum())


def where(row: int, offsets: Int[np.ndarray, "n"]) -> str:
    """A row as a person looks for it."""
    trajectory = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"row {row} (trajectory {trajectory}, step {row - int(offsets[trajectory])})"


def missing_field(
    name: str, present: Iterable[str], source: Source, accepted: Iterable[str] = ()
) -> DataError:
    """A required field is not there; say which one may have been meant."""
    present = sorted(present)
    near = closest(present, [name, *accepted])
    return DataError(
        f"The field {name!r} is missing.",
        file=source,
        field=name,
        found=", ".join(present) if present else "no fields at all",
        expected=" or ".join(dict.fromkeys([name, *accepted])),
        fix=f"did you mean {near!r}? Rename it, or read it with fields={{{name!r}: {near!r}}}"
        if near
        else f"if it goes by another name: fields={{{name!r}: …}}"
        if present and accepted
        else None,
    )


def closest(candidates: Iterable[str], wanted: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The candidate most like one of the wanted names, if any is like it at all."""
    scored = [
        (difflib.SequenceMatcher(None, candidate.lower(), name).ratio(), candidate)
        for candidate in candidates
        for name in wanted
    ]
    best = max(scored, default=(0.0, ""))
    return best[1] if best[0] >= cutoff else None
