"""Where trajectories end, said in offsets, in counts or in marks; and flags told from numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from astro_rl.data.checks import Source, check_kind
from astro_rl.errors import ConfigError, DataError

FLAGS = ("terminated", "truncated")


def as_array(name: str, value: ArrayLike, source: Source = None) -> np.ndarray:
    """The value as an array, refusing what NumPy would turn into an array of objects."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(
            "A field is not one array.",
            file=source,
            field=name,
            found=str(error),
            expected="rows of equal length",
            fix="trajectories of different lengths go end to end with offsets, or through from_trajectories",
        ) from error
    check_kind_of_input(name, array, source)
    return array


def check_kind_of_input(name: str, array: np.ndarray, source: Source) -> None:
    """Flags and rewards may come as integers or booleans; everything else has to have its type already."""
    if name in (*FLAGS, "rewards") and array.dtype.kind in "biuf":
        return
    check_kind(name, array, source)


def offsets_from(
    rows: int,
    offsets: ArrayLike | None,
    ends: ArrayLike | None,
    terminals: ArrayLike | None,
    close_last: bool,
    source: Source,
) -> np.ndarray:
    ways = {"offsets": offsets, "ends": ends, "terminals": terminals}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        raise ConfigError(
            "Where trajectories end has to be said once.",
            found=f"{' and '.join(given)}" if given else "none of offsets, ends, terminals",
            expected="one of offsets, ends, terminals",
            fix="one trajectory: ends=[len(observations)]",
        )
    if close_last and terminals is None:
        raise ConfigError("close_last has an effect only with terminals.", found=given[0])
    if terminals is not None:
        marks = flags_from("terminals", as_array("terminals", terminals, source), source)
        if len(marks) != rows:
            raise wrong_length("terminals", len(marks), rows, source)
        return offsets_from_terminals(marks, close_last, source)
    edges = as_array(given[0], ways[given[0]], source)  # pyright: ignore[reportArgumentType]
    if edges.ndim != 1 or edges.dtype.kind not in "iu":
        raise DataError(
            f"{given[0]} are row numbers.",
            file=source,
            field=given[0],
            found=f"{edges.dtype}, shape {edges.shape}",
            expected="one axis of integers",
        )
    edges = edges.astype(np.int64)
    return edges if offsets is not None else np.concatenate([[0], edges])


def offsets_from_terminals(marks: np.ndarray, close_last: bool, source: Source) -> np.ndarray:
    """Offsets from a mark on each end row. A file that was cut off has none on its last row."""
    if not len(marks):
        raise DataError("There is no trajectory.", file=source, field="terminals", found="no rows")
    end_rows = np.flatnonzero(marks)
    if not marks[-1]:
        if not close_last:
            last = int(end_rows[-1]) + 1 if len(end_rows) else 0
            raise DataError(
                "The last trajectory is not closed: the file may have been cut, or have another layout.",
                file=source,
                field="terminals",
                found=f"0 on the last row, {len(marks) - 1}; the trajectory starts at row {last}",
                expected="1 on the end row of every trajectory",
                fix="close_last=True takes the last row as an end row",
            )
        end_rows = np.append(end_rows, len(marks) - 1)
    return np.concatenate([[0], end_rows + 1]).astype(np.int64)


def flags_from(name: str, array: np.ndarray, source: Source = None) -> np.ndarray:
    """Booleans from 0 and 1 of any numeric type; anything else is not a flag."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise DataError(
            "A flag column has to be one axis of 0 and 1.",
            file=source,
            field=name,
            found=f"{array.dtype}, shape {array.shape}",
            expected="booleans, or 0 and 1",
        )
    if array.dtype == np.bool_:
        return array
    odd = np.flatnonzero((array != 0) & (array != 1))
    if len(odd):
        raise DataError(
            "A flag is neither 0 nor 1.",
            file=source,
            field=name,
            found=f"{array[odd[0]]} in row {odd[0]}; {len(odd)} rows in all",
            expected="0 or 1",
        )
    return array.astype(bool)


def wrong_length(name: str, found: int, rows: int, source: Source) -> DataError:
    return DataError(
        "Columns have different lengths.",
        file=source,
        field=name,
        found=f"{found} rows",
        expected=f"{rows} rows, as observations",
    )
