"""Datasets from flat transitions, as most people's arrays are: one row a step.

```
 next observations given               not given
 o0 o1 o2 | p0 p1   and  o1 o2 o3 ...  o0 o1 o2 o3 | p0 p1 p2
 becomes  o0 o1 o2 o3 | p0 p1 p2       stays as it is: the last row of a trajectory becomes its end row
```

A last row that is terminal keeps its transition. Where its next observation was never recorded, its end row
repeats the last observation: no value looks beyond it, but it is no sample of the dynamics, and
`info["made_up_end_rows"]` counts how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from astro_rl.data.assemble import assemble
from astro_rl.data.checks import Source, check_offsets_rise, check_same_length, missing_field
from astro_rl.data.columns import Chunks, Column
from astro_rl.data.ends import FLAGS, as_array, flags_from
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

JUMP_TOLERANCE = 1e-6
"""How far a next observation may be from the observation that follows it, as D4RL's users agree on."""


def from_transitions(
    observations: ArrayLike,
    actions: ArrayLike,
    next_observations: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    terminals: ArrayLike | None = None,
    timeouts: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    terminals_end: bool = True,
    jump_tolerance: float = JUMP_TOLERANCE,
    extras: Mapping[str, ArrayLike] | None = None,
    info: Mapping[str, Any] | None = None,
    source: Source = None,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
) -> Dataset:
    """A dataset from one row a step. `terminals` are true terminations, `timeouts` cuts.

    Trajectories end after timeouts, after terminals (`terminals_end=False` where episodes go on after
    success, as D4RL's antmaze does) and where the next observation is not the observation that follows.
    `offsets` (where each trajectory starts, then the number of steps) replaces all three.
    """
    given = {
        "observations": observations,
        "actions": actions,
        "next_observations": next_observations,
        "rewards": rewards,
        "terminated": terminals,
        "truncated": timeouts,
        **(extras or {}),
    }
    columns = {
        name: Column.of(as_array(name, value, source)) for name, value in given.items() if value is not None
    }
    edges = None if offsets is None else np.asarray(as_array("offsets", offsets, source), dtype=np.int64)
    options = BuildOptions(drop_short, actions_outside, action_range, source)
    return assemble_steps(columns, edges, info or {}, options, terminals_end, jump_tolerance)


def assemble_steps(
    columns: Mapping[str, Column],
    offsets: np.ndarray | None,
    info: Mapping[str, Any],
    options: BuildOptions,
    terminals_end: bool = True,
    jump_tolerance: float = JUMP_TOLERANCE,
) -> Dataset:
    """`from_transitions` on columns that need not be in memory; flags and row numbers are."""
    columns, info, source = dict(columns), dict(info), options.source
    for name in ("observations", "actions"):
        if name not in columns:
            raise missing_field(name, columns, source)
    check_same_length(columns, source, "observations")
    steps = len(columns["observations"])
    flags = {name: flags_from(name, columns.pop(name).read(), source) for name in FLAGS if name in columns}
    terminated = flags.get("terminated", np.zeros(steps, dtype=bool))
    following = columns.pop("next_observations", None)
    if offsets is not None:
        check_offsets_rise(offsets, steps, source)
    else:
        offsets = _offsets_of_steps(
            columns["observations"], following, flags, terminals_end, jump_tolerance, options
        )
    last = np.maximum(offsets[1:] - 1, 0)
    made = np.ones(len(last), dtype=bool) if following is not None else terminated[last]
    made &= np.diff(offsets) > 0
    rows = {name: spread(column, offsets, made, _fill(name)) for name, column in columns.items()}
    if following is not None:
        marks = np.zeros(steps, dtype=bool)
        marks[last[made]] = True
        rows["observations"] = spread(columns["observations"], offsets, made, following.kept(marks).read())
    elif made.any():
        info["made_up_end_rows"] = int(made.sum())
    row_offsets = offsets + np.concatenate([[0], np.cumsum(made)])
    for name, flag in flags.items():
        rows[name] = Column.of(_row_flags(spread(Column.of(flag), offsets, made, "zero").read(), row_offsets))
    return assemble(rows, row_offsets, info, options)


def _fill(name: str) -> Literal["zero", "repeat"]:
    return "zero" if name in ("actions", "rewards") else "repeat"


def _row_flags(flag: np.ndarray, row_offsets: np.ndarray) -> np.ndarray:
    """A last step that became an end row hands its flag to the transition that leads to it."""
    sizes = np.diff(row_offsets)
    ends = row_offsets[1:][sizes > 1] - 1
    flag[ends - 1] |= flag[ends]
    flag[row_offsets[1:][sizes > 0] - 1] = False
    return flag


def spread(
    column: Column, offsets: np.ndarray, made: np.ndarray, fill: Literal["zero", "repeat"] | np.ndarray
) -> Column:
    """The column with one more row after each marked trajectory: zero, the last row again, or a given one."""
    if not made.any():
        return column
    after = offsets[1:][made]

    def widened() -> Chunks:
        start = 0
        for chunk in column.chunks():
            first, stop = np.searchsorted(after, (start, start + len(chunk)), side="right")
            at = after[first:stop] - start
            if isinstance(fill, str):
                rows = (
                    chunk[at - 1] if fill == "repeat" else np.zeros((len(at), *chunk.shape[1:]), chunk.dtype)
                )
            else:
                rows = fill[first:stop].astype(chunk.dtype)
            yield np.insert(chunk, at, rows, axis=0) if len(at) else chunk
            start += len(chunk)

    return Column(column.dtype, (len(column) + int(made.sum()), *column.shape[1:]), widened)


def _offsets_of_steps(
    observations: Column,
    following: Column | None,
    flags: Mapping[str, np.ndarray],
    terminals_end: bool,
    jump_tolerance: float,
    options: BuildOptions,
) -> np.ndarray:
    steps = len(observations)
    if following is None and not any(flag.any() for flag in flags.values()):
        raise DataError(
            "Nothing says where trajectories end.",
            file=options.source,
            found=f"{' and '.join(flags)} without a mark"
            if flags
            else "no timeouts, terminals or next observations",
            expected="timeouts, terminals, next_observations or offsets",
            fix=f"one trajectory: offsets=[0, {steps}]",
        )
    ends = np.zeros(steps, dtype=bool)
    for name, flag in flags.items():
        if name == "truncated" or terminals_end:
            ends |= flag
    if following is not None:
        if following.shape != observations.shape or following.dtype.kind != "f":
            raise DataError(
                "The next observations do not fit the observations.",
                file=options.source,
                field="next_observations",
                found=f"{following.dtype}, shape {following.shape}",
                expected=f"{observations.dtype}, shape {observations.shape}",
            )
        ends |= jumps(observations, following, jump_tolerance)
    if steps:
        ends[-1] = True
    return np.concatenate([[0], np.flatnonzero(ends) + 1]).astype(np.int64)


def jumps(observations: Column, following: Column, tolerance: float = JUMP_TOLERANCE) -> np.ndarray:
    """For each step, whether its next observation is another than the observation of the step after it."""
    found = np.zeros(len(observations), dtype=bool)
    coarse = np.result_type(observations.dtype, following.dtype)
    if observations.dtype != following.dtype:
        coarse = np.dtype(np.float32)
    before: np.ndarray | None = None
    row = 0
    for here, after in _side_by_side(observations, following):
        here, after = here.astype(coarse, copy=False), after.astype(coarse, copy=False)
        if before is not None:
            found[row - 1] = np.linalg.norm(here[0] - before) > tolerance
        found[row : row + len(here) - 1] = np.linalg.norm(here[1:] - after[:-1], axis=-1) > tolerance
        before, row = after[-1], row + len(here)
    return found


def _side_by_side(one: Column, other: Column) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of two columns, cut to equal lengths."""
    left, right = one.chunks(), other.chunks()
    a, b = next(left, None), next(right, None)
    while a is not None and b is not None:
        size = min(len(a), len(b))
        yield a[:size], b[:size]
        a = a[size:] if size < len(a) else next(left, None)
        b = b[size:] if size < len(b) else next(right, None)
