"""Arrays under the names and in the layouts people use. What cannot be told is asked, not guessed.

| what is there | taken as |
| --- | --- |
| observations (N, T+1, obs) and actions (N, T, act) | N trajectories of T transitions |
| next observations | flat transitions, see `astro_rl.data.transitions` |
| as many more observations than actions as there are trajectories | T + 1 observations and T of the rest |
| as many observations as actions, and timeouts or truncations | flat transitions without next observations |
| as many observations as actions, and otherwise | `layout="rows"` or `layout="steps"` has to say |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from astro_rl.data.assemble import assemble
from astro_rl.data.checks import Source, check_offsets_rise, missing_field
from astro_rl.data.columns import Column
from astro_rl.data.ends import as_array, flags_from, offsets_from_terminals
from astro_rl.data.formats.spellings import SEGMENTATION, SPELLINGS, find_fields
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import COLUMNS, Dataset
from astro_rl.data.transitions import assemble_steps, spread
from astro_rl.errors import ConfigError, DataError

Layout = Literal["rows", "steps"]
DonesMean = Literal["terminated", "truncated"]


@dataclass(frozen=True)
class PlainOptions:
    """What a file of plain arrays cannot always say itself."""

    layout: Layout | None = None
    """rows: T + 1 rows a trajectory, the last with an observation only. steps: one row a transition."""
    dones_mean: DonesMean | None = None
    """Whether a `dones` column marks true terminations or cuts, where nothing else tells."""
    fields: Mapping[str, str] | None = None
    """Our name of a field to its name in the file, where the table of spellings does not have it."""
    close_last: bool = False
    """Take the last row as an end row where its mark is missing."""
    build: BuildOptions = field(default_factory=BuildOptions)


def from_dict(
    arrays: Mapping[str, ArrayLike],
    *,
    layout: Layout | None = None,
    dones_mean: DonesMean | None = None,
    fields: Mapping[str, str] | None = None,
    close_last: bool = False,
    info: Mapping[str, Any] | None = None,
    source: Source = None,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
) -> Dataset:
    """A dataset from a dictionary of arrays under common names. What does not fit is left out, and named."""
    columns = {}
    for name, value in arrays.items():
        array = np.asarray(value) if _is_note(value) else as_array_of_any_kind(name, value, source)
        columns[name] = Column.of(array)
    build = BuildOptions(drop_short, actions_outside, action_range, source)
    options = PlainOptions(layout, dones_mean, fields, close_last, build)
    return assemble_plain(columns, info or {"source": "dict"}, options)


def _is_note(value: object) -> bool:
    return isinstance(value, str | bytes | int | float)


def as_array_of_any_kind(name: str, value: ArrayLike, source: Source) -> np.ndarray:
    """As `as_array`, but text passes: it is left out later, by name."""
    array = np.asarray(value) if isinstance(value, np.ndarray) else None
    if array is not None and array.dtype.kind in "US":
        return array
    if array is not None and array.dtype.kind in "biuf":
        return array
    return as_array(name, value, source)


def assemble_plain(columns: Mapping[str, Column], info: Mapping[str, Any], options: PlainOptions) -> Dataset:
    """Fields found, layout told, dataset made. Columns may still be in their file."""
    source = options.build.source
    names = find_fields(columns, options.fields, source)
    for required in ("observations", "actions"):
        if required not in names:
            raise missing_field(required, columns, source, SPELLINGS[required])
    found = {ours: columns[name] for ours, name in names.items()}
    if len(found["observations"].shape) == 3 and len(found["actions"].shape) == 3:
        found, names = _flattened(found, options), {**names, "offsets": "offsets"}
    flags = {name: found.pop(name) for name in ("terminated", "truncated", "dones") if name in found}
    segments = {kind: found.pop(kind) for kind in SEGMENTATION if kind in found}
    others = {name: column for name, column in columns.items() if name not in names.values()}
    flags = _without_dones(flags, options)
    offsets = _segments(segments, found, source)
    layout = _layout(found, flags, offsets, names, options)
    rows = len(found["observations"])
    steps = len(found["actions"])
    extras, left_out = {}, []
    for name, column in others.items():
        fits = len(column.shape) >= 1 and len(column) in (rows, steps) and column.dtype.kind in "biuf"
        if fits and name not in (*COLUMNS, *SPELLINGS):
            extras[name] = column
        else:
            left_out.append(name)
    info = dict(info)
    if left_out:
        info["left_out"] = sorted(left_out)
    if layout == "steps":
        return assemble_steps({**extras, **found, **flags}, offsets, info, options.build)
    if offsets is None and rows == steps + 1:
        offsets = np.array([0, rows], dtype=np.int64)
    elif offsets is None:
        marks = flags_from("terminated", flags.pop("terminated").read(), source)
        offsets = offsets_from_terminals(marks, options.close_last, source)
    if rows != steps:
        if offsets[-1] == steps:
            offsets = offsets + np.arange(len(offsets))
        check_offsets_rise(offsets, rows, source)
        found, flags, extras = (_with_end_rows(group, offsets, steps) for group in (found, flags, extras))
    return assemble({**extras, **found, **flags}, offsets, info, options.build)


def _with_end_rows(columns: Mapping[str, Column], offsets: np.ndarray, steps: int) -> dict[str, Column]:
    """Columns of one row a step made row-aligned; those with a row for each observation already are."""
    inner, every = offsets - np.arange(len(offsets)), np.ones(len(offsets) - 1, dtype=bool)
    return {
        name: spread(column, inner, every, "zero" if name in COLUMNS else "repeat")
        if len(column) == steps
        else column
        for name, column in columns.items()
    }


def _flattened(found: Mapping[str, Column], options: PlainOptions) -> dict[str, Column]:
    """(N, T, …) arrays laid end to end, with the offsets that say so."""
    source, flat = options.build.source, {}
    number, length = found["observations"].shape[:2]
    for name, column in found.items():
        if name in SEGMENTATION or column.shape[0] != number or len(column.shape) < 2:
            raise DataError(
                "Arrays with a trajectory axis do not fit together.",
                file=source,
                field=name,
                found=f"shape {column.shape}",
                expected=f"({number}, {length} or {length - 1}, …), as observations",
            )
        array = column.read()
        flat[name] = Column.of(array.reshape(number * column.shape[1], *column.shape[2:]))
    steps = found["actions"].shape[1]
    unit = length if steps in (length, length - 1) else steps
    flat["offsets"] = Column.of(np.arange(number + 1, dtype=np.int64) * unit)
    return flat


def _without_dones(flags: Mapping[str, Column], options: PlainOptions) -> dict[str, Column]:
    """`dones` beside one of the two flags marks that one or the other; alone, the user says which."""
    flags, source = dict(flags), options.build.source
    if "dones" not in flags:
        if options.dones_mean is not None:
            raise ConfigError("dones_mean has an effect only where there is a dones field.")
        return flags
    dones = flags_from("dones", flags.pop("dones").read(), source)
    known = [name for name in ("terminated", "truncated") if name in flags]
    if not known:
        if options.dones_mean is None:
            raise DataError(
                "A dones field does not say whether an episode was over or was cut: learners have to know.",
                file=source,
                field="dones",
                expected="terminated and truncated apart",
                fix='dones_mean="terminated" if no value lies beyond, dones_mean="truncated" for time limits',
            )
        return {options.dones_mean: Column.of(dones)}
    if len(known) == 1:
        known_flag = flags_from(known[0], flags[known[0]].read(), source)
        other = "truncated" if known[0] == "terminated" else "terminated"
        flags[other] = Column.of(dones & ~known_flag)
    return flags


def _segments(
    segments: Mapping[str, Column], found: Mapping[str, Column], source: Source
) -> np.ndarray | None:
    """Offsets from whichever way the file tells trajectories apart; None where only flags can."""
    if not segments:
        return None
    ((kind, column),) = segments.items()
    values = column.read()
    total = len(found["observations"])
    if values.ndim != 1:
        raise _odd_segments(kind, values, source)
    if kind == "ids":
        if len(values) not in (total, len(found["actions"])):
            raise _odd_segments(kind, values, source)
        starts = np.flatnonzero(values[1:] != values[:-1]) + 1
        if len(np.unique(values)) != len(starts) + 1:
            raise DataError(
                "The rows of a trajectory are not together.",
                file=source,
                field="trajectory ids",
                found=f"{len(np.unique(values))} ids in {len(starts) + 1} runs",
                expected="one run of rows for each id",
                fix="sort the rows by trajectory and step",
            )
        return np.concatenate([[0], starts, [len(values)]]).astype(np.int64)
    if kind == "starts" and (values.dtype == np.bool_ or len(values) == total):
        values = np.flatnonzero(flags_from("episode_starts", values, source))
    if values.dtype.kind not in "iu" or not len(values):
        raise _odd_segments(kind, values, source)
    values = values.astype(np.int64)
    if kind == "ends":
        return np.concatenate([[0], values])
    return np.append(values, total) if kind == "starts" else values


def _odd_segments(kind: str, values: np.ndarray, source: Source) -> DataError:
    return DataError(
        "Where trajectories end cannot be read.",
        file=source,
        field=kind,
        found=f"{values.dtype}, shape {values.shape}",
        expected="an id for each row" if kind == "ids" else "one axis of row numbers",
    )


def _layout(
    found: Mapping[str, Column],
    flags: Mapping[str, Column],
    offsets: np.ndarray | None,
    names: Mapping[str, str],
    options: PlainOptions,
) -> Layout:
    rows, steps, source = len(found["observations"]), len(found["actions"]), options.build.source
    trajectories = None if offsets is None else len(offsets) - 1
    fix = (
        'layout="rows" if the last row of a trajectory has only an observation, layout="steps" if it has more'
    )
    if "next_observations" in found:
        if options.layout == "rows":
            raise ConfigError("A file with next observations has one row a step.", found='layout="rows"')
        return "steps"
    if rows == steps:
        if options.layout is not None:
            if options.layout == "rows" and offsets is None and "terminated" not in flags:
                raise DataError("Nothing marks the end rows.", file=source, expected="terminals or offsets")
            return options.layout
        if offsets is None and "truncated" in flags:
            return "steps"
        if offsets is None and not flags:
            raise DataError(
                "Nothing says where trajectories end.",
                file=source,
                found=", ".join(sorted(names.values())),
                expected="timeouts, terminals, next_observations, offsets, episode_ends or trajectory ids",
                fix=f"one trajectory: add offsets=[0, {rows}] and say the layout; {fix}",
            )
        raise DataError(
            "It cannot be told whether the last row of a trajectory has an action.",
            file=source,
            found=f"{rows} observations and {steps} actions; ends by "
            f"{'marks on terminated rows only' if offsets is None else 'row numbers or ids'}",
            expected="next observations, timeouts, or one observation more than actions in each trajectory",
            fix=f'{fix}; format="ogbench" for OGBench files',
        )
    if options.layout == "steps" or rows != steps + (trajectories or 1):
        raise DataError(
            "Observations and actions do not fit together.",
            file=source,
            found=f"{rows} observations, {steps} actions, {trajectories or 'unknown'} trajectories",
            expected="as many observations as actions, or one more for each trajectory",
        )
    return "rows"


def assemble_own(columns: Mapping[str, Column], note: str, build: BuildOptions) -> Dataset:
    """A plain file that we wrote: row-aligned columns under our own names, with offsets and `info`."""
    columns = dict(columns)
    try:
        info = json.loads(note)
        offsets = columns.pop("offsets").read()
        if not isinstance(info, dict):
            raise ValueError("the note is not a JSON object")
    except (ValueError, KeyError) as error:
        raise DataError(
            "The file says that it was written by astro-rl, but is damaged.",
            file=build.source,
            found=str(error),
        ) from error
    for name in COLUMNS:
        if name not in columns and name != "rewards":
            raise missing_field(name, columns, build.source)
    return assemble(columns, offsets, info, build)
