"""Writing D4RL's HDF5 files; `astro_rl.data.formats.d4rl` describes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from astro_rl.data.checks import Progress
from astro_rl.data.formats.d4rl_ends import (
    ENDS_AFTER,
    ENDS_HERE,
    FLAGS,
    MADE,
    NEXT,
    OWN_GROUP,
    RESERVED,
    TERMINAL,
    TIMEOUT,
    cut_flags,
)
from astro_rl.data.formats.hdf5_io import write_hdf5
from astro_rl.data.manifest import portable_info
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError


def write(
    dataset: Dataset,
    path: Path,
    *,
    overwrite: bool = False,
    reward_shift: float | None = None,
    compression: str | None = "gzip",
    progress: Progress | None = None,
) -> None:
    """A file that `qlearning_dataset` turns into exactly these transitions, and `read` into exactly this
    dataset.

    Rows are those of the dataset, end rows marked by `timeouts`, but for end rows that `read` made: these
    are left out again. The file's rewards are the dataset's minus `reward_shift` (default: what `read` had
    added). Where the dataset has no rewards the file has zeros, because D4RL's readers insist on the
    column, and says so in `info`.
    """
    clash = sorted(RESERVED & set(dataset.extras))
    if clash:
        raise DataError(
            "An extra column has a name that means something else in a D4RL file.",
            field=clash[0],
            fix="rename the column",
        )
    info = {key: value for key, value in portable_info(dataset.info, path).items() if key != "d4rl"}
    shift = float(dataset.info.get("reward_shift", 0.0) if reward_shift is None else reward_shift)
    end_rows = dataset.end_rows
    flags = dataset.extras.get(FLAGS)
    omitted = _rederivable(dataset) if flags is not None else np.zeros(dataset.n_rows, dtype=bool)
    ends = np.zeros(dataset.n_rows, dtype=np.uint8)
    ends[end_rows[~omitted[end_rows]]] = ENDS_HERE
    ends[end_rows[omitted[end_rows]] - 1] = ENDS_AFTER
    made = omitted.copy()
    if flags is None:
        terminals, timeouts = dataset.terminated.copy(), ends == ENDS_HERE
    else:
        origin = np.asarray(flags)
        terminals, timeouts = dataset.terminated | (origin & TERMINAL > 0), origin & TIMEOUT > 0
        timeouts[end_rows[(origin[end_rows] & MADE > 0) & ~omitted[end_rows]]] = True
    zeros = np.zeros(dataset.n_rows, dtype=dataset.observations.dtype)
    rewards = (
        zeros if dataset.rewards is None else dataset.rewards - np.asarray(shift, dtype=dataset.rewards.dtype)
    )
    origin_facts = dataset.info.get("d4rl", {})
    dtypes = origin_facts.get("dtypes", {"terminals": "bool", "timeouts": "bool"})
    columns: dict[str, np.ndarray] = {
        "observations": dataset.observations,
        "actions": dataset.actions,
        "rewards": rewards,
        "terminals": terminals.astype(dtypes["terminals"]),
    }
    if "timeouts" in dtypes or timeouts.any():
        columns["timeouts"] = timeouts.astype(dtypes.get("timeouts", "bool"))
    for name, column in sorted(dataset.extras.items()):
        if name != FLAGS:
            columns["next_observations" if name == NEXT else name] = column
    columns[f"{OWN_GROUP}/ends"] = ends
    if not np.array_equal(dataset.truncated, cut_flags(dataset.terminated, made, end_rows)):
        columns[f"{OWN_GROUP}/truncated"] = dataset.truncated
    if flags is not None and (omitted != (np.asarray(flags) == MADE)).any():
        columns[f"{OWN_GROUP}/flags"] = np.asarray(flags)
    kept = ~omitted
    saved = {"reward_shift": shift, "rewards_known": dataset.rewards is not None, "info": info}
    needed = sum(column.nbytes for column in columns.values())
    with write_hdf5(path, overwrite=overwrite, needed_bytes=needed) as file:
        for done, (name, column) in enumerate(columns.items(), start=1):
            values = column if not omitted.any() else column[kept]
            if name in origin_facts.get("squeezed", ()):
                values = values[:, None]
            file.create_dataset(name, data=values, compression=compression)
            if progress is not None:
                progress(done, len(columns))
        for name, fact in origin_facts.get("metadata", {}).items():
            value = fact["value"]
            file[name] = (
                np.bytes_(value.encode()) if isinstance(value, str) else np.asarray(value, fact["dtype"])
            )
        file[f"{OWN_GROUP}/info"] = json.dumps(saved, sort_keys=True)


def _rederivable(dataset: Dataset) -> np.ndarray:
    """End rows that `read` made and would make again in just the same way, so that the file need not have
    them."""
    made = np.asarray(dataset.extras[FLAGS]) == MADE
    rows = dataset.end_rows[made[dataset.end_rows]]
    successors = dataset.extras.get(NEXT, dataset.observations)
    same = (dataset.observations[rows] == successors[rows - 1]).all(axis=1)
    for name, column in dataset.columns().items():
        if name not in ("observations", "terminated", "truncated", FLAGS):
            same &= (column[rows] == 0).all(axis=tuple(range(1, column.ndim)))
    derivable = np.zeros(dataset.n_rows, dtype=bool)
    derivable[rows[same]] = True
    return derivable
