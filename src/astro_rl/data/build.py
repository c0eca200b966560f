"""Datasets from arrays: trajectories laid end to end, or given one by one. All of it is checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from astro_rl.data.assemble import assemble
from astro_rl.data.checks import (
    Source,
    closest,
)
from astro_rl.data.columns import Column
from astro_rl.data.ends import FLAGS, as_array, flags_from, offsets_from
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset, Trajectory
from astro_rl.errors import DataError


def from_arrays(
    observations: ArrayLike,
    actions: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    ends: ArrayLike | None = None,
    terminals: ArrayLike | None = None,
    close_last: bool = False,
    rewards: ArrayLike | None = None,
    terminated: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
    extras: Mapping[str, ArrayLike] | None = None,
    info: Mapping[str, Any] | None = None,
    source: Source = None,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
) -> Dataset:
    """A dataset from row-aligned columns: T + 1 rows a trajectory, the last of which has only an observation.

    Where trajectories stand is said in one of three ways: `offsets` (where each starts, then the number of
    rows), `ends` (the number of rows up to and including each trajectory), or `terminals` (1 on each end
    row, as OGBench has it; `close_last` takes the last row as an end row where its mark is missing).
    Without flags, the last transition of each trajectory counts as truncated. Arrays that need no change are
    not copied.
    """
    options = BuildOptions(drop_short, actions_outside, action_range, source)
    columns = {
        "observations": as_array("observations", observations, source),
        "actions": as_array("actions", actions, source),
    }
    optional = {"rewards": rewards, "terminated": terminated, "truncated": truncated, **(extras or {})}
    columns.update(
        {name: as_array(name, value, source) for name, value in optional.items() if value is not None}
    )
    rows = len(columns["observations"]) if columns["observations"].ndim else 0
    starts = offsets_from(rows, offsets, ends, terminals, close_last, source)
    return assemble({name: Column.of(array) for name, array in columns.items()}, starts, info or {}, options)


def from_trajectories(
    trajectories: Iterable[Trajectory | Mapping[str, Any]],
    *,
    info: Mapping[str, Any] | None = None,
    source: Source = None,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
) -> Dataset:
    """A dataset from trajectories: T + 1 observations and T of everything else.

    Each is a `Trajectory`, or a dictionary with `observations`, `actions` and, as wanted, `rewards`,
    `terminated`, `truncated` and `extras` (a dictionary of columns with T + 1 rows, or T, in which case the
    last one is repeated).
    """
    parts: dict[str, list[np.ndarray]] = {}
    sizes: list[int] = []
    for number, trajectory in enumerate(trajectories):
        columns = _trajectory_rows(number, trajectory, source)
        if number and set(columns) != set(parts):
            odd = sorted(set(columns) ^ set(parts))
            raise DataError(
                "Trajectories have different fields.",
                file=source,
                field=", ".join(odd),
                found=f"trajectory {number} has {', '.join(columns)}",
                expected=f"{', '.join(parts)}, as trajectory 0",
            )
        for name, column in columns.items():
            first = parts.setdefault(name, [column])[0]
            if column.shape[1:] != first.shape[1:] or column.dtype != first.dtype:
                raise DataError(
                    "Trajectories have different shapes or types.",
                    file=source,
                    field=name,
                    found=f"trajectory {number}: {column.dtype}, {column.shape[1:]} a row",
                    expected=f"{first.dtype}, {first.shape[1:]} a row, as trajectory 0",
                )
            if number:
                parts[name].append(column)
        sizes.append(len(columns["observations"]))
    if not sizes:
        raise DataError("There is no trajectory.", file=source, expected="at least one")
    columns = {name: Column.of(np.concatenate(pieces)) for name, pieces in parts.items()}
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return assemble(
        columns, offsets, info or {}, BuildOptions(drop_short, actions_outside, action_range, source)
    )


_TRAJECTORY_FIELDS = ("observations", "actions", "rewards", "terminated", "truncated", "extras")


def _trajectory_rows(
    number: int, trajectory: Trajectory | Mapping[str, Any], source: Source
) -> dict[str, np.ndarray]:
    """One trajectory as row-aligned columns, its end row padded with zeros."""
    fields = (
        trajectory
        if isinstance(trajectory, Mapping)
        else {n: getattr(trajectory, n) for n in _TRAJECTORY_FIELDS}
    )
    for name in fields:
        if name not in _TRAJECTORY_FIELDS:
            near = closest(_TRAJECTORY_FIELDS, [name])
            raise DataError(
                f"Trajectory {number} has an unknown field.",
                file=source,
                field=str(name),
                expected=", ".join(_TRAJECTORY_FIELDS),
                fix=f"did you mean {near!r}?" if near else f'other columns go into extras={{"{name}": …}}',
            )
    for name in ("observations", "actions"):
        if fields.get(name) is None:
            raise DataError(f"Trajectory {number} has no {name}.", file=source, field=name)
    named = [name for name in _TRAJECTORY_FIELDS[:5] if fields.get(name) is not None]
    given = {name: as_array(name, fields[name], source) for name in named}
    steps = len(given["actions"]) if given["actions"].ndim else 0
    rows = {"observations": given.pop("observations")}
    if rows["observations"].ndim == 0 or len(rows["observations"]) != steps + 1:
        raise DataError(
            "A trajectory of T actions needs T + 1 observations.",
            file=source,
            field=f"trajectory {number}",
            found=f"observations of shape {rows['observations'].shape}, {steps} actions",
            expected=f"{steps + 1} observations",
            fix="flat transitions with as many observations as actions go through from_transitions",
        )
    for name, value in given.items():
        if name != "actions" and value.shape != (steps,):
            raise DataError(
                "A trajectory's fields have different lengths.",
                file=source,
                field=f"{name} of trajectory {number}",
                found=f"shape {value.shape}",
                expected=f"({steps},), as there are actions",
            )
        value = flags_from(name, value, source) if name in FLAGS else value
        rows[name] = np.concatenate([value, np.zeros((1, *value.shape[1:]), value.dtype)])
    for name, value in (fields.get("extras") or {}).items():
        value = as_array(name, value, source)
        if value.ndim and len(value) == steps and steps:
            value = np.concatenate([value, value[-1:]])
        if not value.ndim or len(value) != steps + 1:
            raise DataError(
                "A trajectory's fields have different lengths.",
                file=source,
                field=f"{name} of trajectory {number}",
                found=f"shape {value.shape}",
                expected=f"{steps + 1} rows, as there are observations, or {steps}, as there are actions",
            )
        rows[name] = value
    if "terminated" in rows and "truncated" not in rows:
        rows["truncated"] = np.zeros(steps + 1, dtype=bool)
        if steps:
            rows["truncated"][steps - 1] = not rows["terminated"][steps - 1]
    return rows
