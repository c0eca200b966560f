"""Plain `.npz`: whatever arrays there are, see `plain`. What we write holds our own columns and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from astro_rl.data.atomic import new_file
from astro_rl.data.checks import check_dataset
from astro_rl.data.columns import Column, MemorySpace, Progress, Space
from astro_rl.data.formats.plain import DonesMean, Layout, PlainOptions, assemble_own, assemble_plain
from astro_rl.data.manifest import portable_info
from astro_rl.data.npz import EXPAND_LIMIT_BYTES, open_npz, write_npz
from astro_rl.data.options import ActionRange, ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset

NOTE = "astro_rl_rows"
"""The member that marks a file of ours: its columns are row-aligned, and the text is the dataset's info."""

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")


def recognises(path: Path) -> bool:
    """Any zip archive: what is wrong with its content is for reading to say."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in ZIP_STARTS


def read(
    path: Path,
    *,
    layout: Layout | None = None,
    dones_mean: DonesMean | None = None,
    fields: Mapping[str, str] | None = None,
    close_last: bool = False,
    expand_limit_bytes: int = EXPAND_LIMIT_BYTES,
    drop_short: bool = False,
    actions_outside: ActionsOutside = "refuse",
    action_range: ActionRange | None = None,
    space: Space | None = None,
) -> Dataset:
    columns = open_npz(path, expand_limit_bytes)
    build = BuildOptions(drop_short, actions_outside, action_range, path, space or MemorySpace())
    note = columns.pop(NOTE, None)
    if note is not None:
        return assemble_own(columns, str(note.read().reshape(-1)[0]), build)
    options = PlainOptions(layout, dones_mean, fields, close_last, build)
    return assemble_plain(columns, {"source": "plain-npz", "source_file": path.name}, options)


def write(
    dataset: Dataset,
    path: Path,
    *,
    overwrite: bool = False,
    compressed: bool = True,
    progress: Progress | None = None,
) -> None:
    """Our own columns and offsets, row-aligned; `np.load` reads them without us."""
    check_dataset(dataset)
    columns = {name: Column.of(column) for name, column in dataset.columns().items()}
    columns["offsets"] = Column.of(dataset.offsets)
    columns[NOTE] = Column.of(np.array([json.dumps(portable_info(dataset.info), sort_keys=True)]))
    with new_file(path, overwrite=overwrite, needed_bytes=dataset.nbytes) as partial:
        write_npz(partial, columns, compressed=compressed, progress=progress)
