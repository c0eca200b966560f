"""OGBench's `.npz`: T + 1 rows a trajectory, `terminals` = 1 on the last of them, whose action means nothing.

A file that was read is written again column by column as it was: types, order, end rows and flags. What the
layout has no place for goes into columns that OGBench passes over: rewards, masks (1 − terminated), truncated
where it is not simply the last transition, and a note with the lineage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.data.assemble import assemble
from astro_rl.data.atomic import new_file
from astro_rl.data.checks import check_dataset, missing_field
from astro_rl.data.columns import Column, MemorySpace, Progress, Space
from astro_rl.data.ends import flags_from, offsets_from_terminals
from astro_rl.data.manifest import portable_info
from astro_rl.data.npz import EXPAND_LIMIT_BYTES, open_npz, write_npz
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError

REQUIRED = ("observations", "actions", "terminals")
NOTE = "astro_rl_info"
"""A text beside the columns: the dataset's info as JSON."""


def recognises(path: Path) -> bool:
    """An archive with OGBench's columns. Rewards without masks or simulator state make it flat data."""
    if not path.is_file():
        return False
    try:
        names = set(open_npz(path, expand_limit_bytes=2**63))
    except DataError:
        return False
    if not names.issuperset(REQUIRED) or names & {
        "next_observations",
        "timeouts",
        "dones",
        "offsets",
        "terminated",
    }:
        return False
    return "rewards" not in names or bool(names & {"masks", "qpos", NOTE})


def validation_path(path: str | Path) -> Path:
    """Where OGBench keeps the validation data of a file."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".npz") + "-val.npz")


def read(
    path: Path,
    *,
    validation: bool = False,
    close_last: bool = False,
    expand_limit_bytes: int = EXPAND_LIMIT_BYTES,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
    space: Space | None = None,
) -> Dataset:
    """The file's rows as they are; `validation` reads the companion beside it.

    The last transition of each trajectory counts as truncated: OGBench's episodes stop because time is up.
    """
    path = validation_path(path) if validation else Path(path)
    columns = open_npz(path, expand_limit_bytes)
    for name in REQUIRED:
        if name not in columns:
            raise missing_field(name, columns, path)
    if "valids" in columns:
        raise DataError(
            "This is OGBench's compact form, whose terminals mark two rows a trajectory.",
            file=path,
            field="valids",
            expected="the file layout: terminals on end rows only",
            fix="save it with terminals = 1 - valids and without valids",
        )
    order = [name for name in columns if name != NOTE]
    info = _read_note(columns.pop(NOTE, None), path)
    terminals = columns.pop("terminals")
    marks = flags_from("terminals", terminals.read(), path)
    if len(marks) != len(columns["observations"]):
        raise DataError(
            "Columns have different lengths.",
            file=path,
            field="terminals",
            found=f"{len(marks)} rows",
            expected=f"{len(columns['observations'])} rows, as observations",
        )
    offsets = offsets_from_terminals(marks, close_last, path)
    columns.update(_flags_from_masks(columns, offsets, path))
    told = {"source": "ogbench", "source_file": path.name}
    layout = {"columns": order, "terminals": terminals.dtype.str}
    options = BuildOptions(drop_short, actions_outside, action_range, path, space or MemorySpace())
    return assemble(columns, offsets, {**told, **info, "ogbench": layout}, options)


def _flags_from_masks(columns: dict[str, Column], offsets: np.ndarray, path: Path) -> dict[str, Column]:
    """terminated = 1 − masks on transitions. Masks stay a column only where end rows have their own."""
    if "masks" not in columns:
        return {}
    masks = columns["masks"].read()
    if len(masks) != offsets[-1]:
        raise DataError(
            "Columns have different lengths.",
            file=path,
            field="masks",
            found=f"{len(masks)} rows",
            expected=f"{offsets[-1]} rows, as observations",
        )
    terminated = ~flags_from("masks", masks, path)
    end_rows = offsets[1:] - 1
    if masks.dtype == np.float32 and not terminated[end_rows].any():
        del columns["masks"]
    terminated[end_rows] = False
    return {"terminated": Column.of(terminated)}


def write(
    dataset: Dataset,
    path: Path,
    *,
    validation: Dataset | None = None,
    overwrite: bool = False,
    compressed: bool = True,
    progress: Progress | None = None,
) -> None:
    """The dataset as OGBench's loader reads it, and beside it its validation data where given."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ConfigError(
            "OGBench finds validation data by the name NAME-val.npz, so the file has to be NAME.npz.",
            found=path.name,
            expected="a name that ends in .npz",
        )
    check_dataset(dataset)
    if validation is None:
        _write_one(dataset, path, overwrite, compressed, progress)
        return
    check_dataset(validation)
    # Both are written before either takes its name.
    with new_file(validation_path(path), overwrite=overwrite, needed_bytes=validation.nbytes) as beside:
        write_npz(beside, file_columns(validation), compressed=compressed)
        _write_one(dataset, path, overwrite, compressed, progress)


def _write_one(
    dataset: Dataset, path: Path, overwrite: bool, compressed: bool, progress: Progress | None
) -> None:
    with new_file(path, overwrite=overwrite, needed_bytes=dataset.nbytes) as partial:
        write_npz(partial, file_columns(dataset), compressed=compressed, progress=progress)


def file_columns(dataset: Dataset) -> dict[str, Column]:
    """The file's columns, in the order of the file they came from, or OGBench's."""
    layout = dataset.info.get("ogbench")
    layout = layout if isinstance(layout, Mapping) else {}
    marks = np.zeros(dataset.n_rows, dtype=bool)
    marks[dataset.end_rows] = True
    columns = {name: Column.of(column) for name, column in dataset.columns().items() if name != "terminated"}
    del columns["truncated"]
    columns["terminals"] = Column.of(marks.astype(np.dtype(layout.get("terminals", "|b1"))))
    order = list(layout.get("columns", ()))
    if dataset.terminated.any() or "masks" in (*columns, *order) or ("rewards" in columns and not order):
        columns["masks"] = Column.of(_masks(dataset))
    usual = np.zeros(dataset.n_rows, dtype=bool)
    last = dataset.end_rows - 1
    usual[last] = ~dataset.terminated[last]
    if not np.array_equal(usual, dataset.truncated):
        columns["truncated"] = Column.of(np.asarray(dataset.truncated))
    first = [
        name
        for name in (*order, *REQUIRED, "qpos", "qvel", "button_states", "rewards", "masks")
        if name in columns
    ]
    ordered = {name: columns[name] for name in dict.fromkeys([*first, *sorted(columns)])}
    note = {key: value for key, value in dataset.info.items() if key not in _OWN_FACTS}
    if note:
        text = json.dumps(portable_info(note), sort_keys=True)
        ordered[NOTE] = Column.of(np.array([text]))
    return ordered


_OWN_FACTS = ("source", "source_file", "ogbench")


def _masks(dataset: Dataset) -> np.ndarray:
    kept = dataset.extras.get("masks")
    masks = np.ones(dataset.n_rows, np.float32) if kept is None else np.array(kept)
    rows = dataset.transition_rows()
    masks[rows] = 1 - np.asarray(dataset.terminated[rows], dtype=np.int8)
    return masks


def _read_note(column: Column | None, path: Path) -> dict[str, Any]:
    if column is None:
        return {}
    try:
        note = json.loads(str(column.read().reshape(-1)[0]))
        if not isinstance(note, dict):
            raise ValueError("not a JSON object")
    except (ValueError, IndexError) as error:
        raise DataError(
            "The note beside the columns is damaged.", file=path, field=NOTE, found=str(error)
        ) from error
    return note
