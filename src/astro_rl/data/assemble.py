"""The one door through which every dataset comes: checked, changed where that was asked for, landed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from astro_rl.data.actions import fit_actions
from astro_rl.data.checks import (
    Source,
    check_dataset,
    check_layout,
    check_offsets,
    check_offsets_rise,
    short_trajectories,
)
from astro_rl.data.columns import Column
from astro_rl.data.ends import FLAGS, flags_from, wrong_length
from astro_rl.data.options import BuildOptions
from astro_rl.data.schema import COLUMNS, Dataset
from astro_rl.errors import DataError


def assemble(
    columns: Mapping[str, Column], offsets: np.ndarray, info: Mapping[str, Any], options: BuildOptions
) -> Dataset:
    """Check row-aligned columns, land them in the space and make the dataset. Every reader ends here."""
    columns, info, source = dict(columns), dict(info), options.source
    changes: list[str] = list(info.pop("changes", ()))
    columns = {name: _without_integers(name, column, changes) for name, column in columns.items()}
    check_layout({name: column for name, column in columns.items() if name not in FLAGS}, source)
    rows = len(columns["observations"])
    keep = _drop_short(offsets, rows, options, changes)
    for name in FLAGS:
        if name in columns:
            columns[name] = Column.of(_flag(name, columns[name], rows, source))
    if keep is not None:
        columns = {name: column.kept(keep) for name, column in columns.items()}
        sizes = np.diff(offsets)
        offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 1])]).astype(np.int64)
    check_offsets(offsets, len(columns["observations"]), source)
    for name in ("actions", "rewards"):
        if name in columns:
            columns[name] = _finite_end_rows(name, columns[name], offsets, changes)
    columns["actions"], told = fit_actions(columns["actions"], offsets, options, changes)
    info.update(told)
    columns.update(_missing_flags(columns, offsets))
    landed = options.space.put(columns)
    if changes:
        info["changes"] = changes
    dataset = dataset_of(landed, offsets, info)
    check_dataset(dataset, source)
    return dataset


def dataset_of(columns: Mapping[str, np.ndarray], offsets: np.ndarray, info: Mapping[str, Any]) -> Dataset:
    """Columns by name, as `Dataset.columns` gives them, made a dataset again. Nothing is checked."""
    return Dataset(
        observations=columns["observations"],
        actions=columns["actions"],
        terminated=columns["terminated"],
        truncated=columns["truncated"],
        rewards=columns.get("rewards"),
        extras={name: column for name, column in columns.items() if name not in COLUMNS},
        offsets=offsets,
        info=info,
    )


def _flag(name: str, column: Column, rows: int, source: Source) -> np.ndarray:
    marks = flags_from(name, column.read(), source)
    if len(marks) != rows:
        raise wrong_length(name, len(marks), rows, source)
    return marks


def _without_integers(name: str, column: Column, changes: list[str]) -> Column:
    """Sparse rewards are often integers or booleans; float32 holds them exactly up to 2^24."""
    if name != "rewards" or column.dtype.kind not in "biu":
        return column
    changes.append(f"rewards: {column.dtype} cast to float32")
    cast = column.map(lambda chunk, _: chunk.astype(np.float32))
    return replace(cast, dtype=np.dtype(np.float32))


def _drop_short(
    offsets: np.ndarray, rows: int, options: BuildOptions, changes: list[str]
) -> np.ndarray | None:
    """The rows to keep where trajectories without a transition are left out; None where there are none."""
    check_offsets_rise(offsets, rows, options.source)
    sizes = np.diff(offsets)
    short = np.flatnonzero((sizes == 0) | (sizes == 1))
    if not len(short):
        return None
    if not options.drop_short:
        raise short_trajectories(short, sizes, options.source)
    if len(short) == len(sizes):
        raise DataError("Every trajectory is without a transition; nothing is left.", file=options.source)
    changes.append(f"dropped {len(short)} of {len(sizes)} trajectories, which had no transition")
    return np.repeat(sizes > 1, sizes)


def _finite_end_rows(name: str, column: Column, offsets: np.ndarray, changes: list[str]) -> Column:
    """NaN as padding on end rows becomes zero: it means nothing, and would poison a mean over the column."""
    end_rows = offsets[1:] - 1
    if column.array is not None and np.isfinite(column.array[end_rows]).all():
        return column

    def clean(chunk: np.ndarray, start: int) -> np.ndarray:
        ends = (
            end_rows[np.searchsorted(end_rows, start) : np.searchsorted(end_rows, start + len(chunk))] - start
        )
        finite = np.isfinite(chunk[ends])
        if finite.all():
            return chunk
        chunk = chunk.copy()
        chunk[ends] = np.where(finite, chunk[ends], 0)
        note = f"{name}: values that are not finite on end rows set to zero"
        if note not in changes:
            changes.append(note)
        return chunk

    return column.map(clean)


def _missing_flags(columns: Mapping[str, Column], offsets: np.ndarray) -> dict[str, Column]:
    """A recording that stops without a reason was cut: its last transition is truncated or terminated."""
    rows = int(offsets[-1])
    flags = {name: columns[name].read() if name in columns else np.zeros(rows, dtype=bool) for name in FLAGS}
    if "truncated" not in columns:
        last = offsets[1:] - 2
        flags["truncated"][last] = ~flags["terminated"][last]
    return {name: Column.of(flag) for name, flag in flags.items()}
