"""D4RL's HDF5 files, read as `d4rl.qlearning_dataset` reads them and without d4rl; written so that it reads
them too.

What a file holds, one row a step (checked against D4RL's generators; types as published, others are
accepted)::

    observations        float32  rows × obs
    actions             float32  rows × act
    rewards             float32  rows               0 or 1 in antmaze; kept as they are, see `reward_shift`
    terminals           bool     rows               float32 in relabelled antmaze files
    timeouts            bool     rows               absent from the oldest files
    next_observations   float32  rows × obs         MuJoCo v1 and v2 only
    infos/goal, infos/qpos, infos/qvel, infos/...   rows × …, carried along under these names
    metadata/...        scalars and a policy's weights; scalars are carried in `info`, weights left out

`infos/qpos` is not renamed to `qpos`: antmaze's was recorded one step late.

What we write adds a group `astro_rl` with the exact ends and `info`, which other readers may ignore.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike

from astro_rl.data.assemble import assemble
from astro_rl.data.checks import short_trajectories
from astro_rl.data.columns import Column
from astro_rl.data.formats import d4rl_ends
from astro_rl.data.formats.d4rl_ends import (
    ENDS_AFTER,
    FLAGS,
    MADE,
    NEXT,
    OWN_GROUP,
    REQUIRED,
    RESERVED,
    TERMINAL,
    TIMEOUT,
    cut_flags,
)
from astro_rl.data.formats.d4rl_writer import write
from astro_rl.data.formats.hdf5_io import (
    EXPAND_LIMIT_BYTES,
    check_claimed_size,
    claimed_bytes,
    is_hdf5,
    leaves,
    open_hdf5,
    read_floats,
    read_numbers,
)
from astro_rl.data.options import ActionsOutside, BuildOptions
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

__all__ = ["read", "recognises", "write"]


def recognises(path: Path) -> bool:
    if not is_hdf5(path):
        return False
    try:
        with h5py.File(path, "r") as file:
            has_columns = all(isinstance(file.get(name), h5py.Dataset) for name in REQUIRED)
            return has_columns and any(name in file for name in ("timeouts", "infos", "metadata", OWN_GROUP))
    except (OSError, RuntimeError):
        return False


def read(
    path: Path,
    *,
    reward_shift: float | None = None,
    terminals_end: bool | None = None,
    max_episode_steps: int | None = None,
    jump_limit: float | None = None,
    drop_short: bool = True,
    expand_limit_bytes: int | None = EXPAND_LIMIT_BYTES,
    actions_outside: ActionsOutside = "refuse",
    action_range: tuple[ArrayLike, ArrayLike] | None = None,
) -> Dataset:
    """The transitions that `qlearning_dataset` gives, as trajectories.

    `reward_shift` is added to the rewards (default: −1 for antmaze, else 0). `terminals_end` says whether a
    terminal row is its trajectory's last (default: not in antmaze and maze2d). `max_episode_steps` is the
    environment's limit, needed for files without `timeouts`. `jump_limit` is how far a maze's x or y may
    move in a step (default: found from the data). A file that astro-rl wrote brings its own answers.

    Trajectories of one row have no transition; D4RL has some, its own reader leaves them out without a word,
    and here they are counted in `info` (`drop_short=False` refuses them).
    """
    with open_hdf5(path) as file:
        arrays = leaves(file)
        own = {name: arrays.pop(name) for name in list(arrays) if name.startswith(f"{OWN_GROUP}/")}
        check_claimed_size(claimed_bytes(arrays), expand_limit_bytes, path)
        columns, squeezed = _read_columns(arrays, path)
        facts = _metadata(arrays, columns)
        saved = _own_answers(own, path, rows=len(columns["terminals"]))
    conventions = d4rl_ends.conventions_of(
        path.stem, {name: column.shape for name, column in columns.items()}
    )
    if saved is None:
        shift = conventions.reward_shift if reward_shift is None else reward_shift
        if terminals_end is not None:
            conventions = d4rl_ends.Conventions(shift, terminals_end, conventions.position_columns)
        ends, found = _ends(path, columns, conventions, max_episode_steps, jump_limit)
    else:
        shift = saved["reward_shift"] if reward_shift is None else reward_shift
        ends, found = saved["ends"], {}
    dtypes = {name: str(columns[name].dtype) for name in ("terminals", "timeouts") if name in columns}
    info = {
        **(saved["info"] if saved else {}),
        "source": "d4rl",
        "source_file": path.name,
        "reward_shift": shift,
        "d4rl": {"dtypes": dtypes, "squeezed": squeezed, "ends": found, **facts},
    }
    known = saved is None or saved["rewards_known"]
    laid_out, offsets = _lay_out(path, columns, ends, saved or {}, shift if known else None, info, drop_short)
    options = BuildOptions(actions_outside=actions_outside, action_range=action_range, source=path)
    return assemble({name: Column.of(column) for name, column in laid_out.items()}, offsets, info, options)


def _own_answers(own: dict[str, h5py.Dataset], path: Path, rows: int) -> dict[str, Any] | None:
    """What astro-rl noted beside D4RL's columns, if it wrote the file."""
    if f"{OWN_GROUP}/info" not in own or f"{OWN_GROUP}/ends" not in own:
        return None
    answers = {name.removeprefix(f"{OWN_GROUP}/"): array[()] for name, array in own.items()}
    try:
        answers.update(json.loads(answers.pop("info")))
        fits = all(
            answers[name].shape == (rows,) for name in ("ends", "truncated", "flags") if name in answers
        )
        if fits and answers["ends"][-1] and {"info", "reward_shift", "rewards_known"} <= set(answers):
            return answers
    except (ValueError, TypeError):
        pass
    raise DataError(
        "What astro-rl noted in the file does not fit its rows.",
        file=path,
        field=OWN_GROUP,
        fix=f"delete the group {OWN_GROUP!r} if the file was edited; it is then read as any D4RL file",
    )


def _read_columns(arrays: dict[str, h5py.Dataset], path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """Every column with a row a step. (rows, 1) flags and rewards become (rows,), as d4rl makes them."""
    for name in REQUIRED:
        if name not in arrays:
            raise DataError(
                "A column that every D4RL file has is missing.",
                file=path,
                field=name,
                found=", ".join(arrays) or "an empty file",
                expected=", ".join(REQUIRED),
                fix="read it as a plain HDF5 file (format='plain-hdf5') if it is not D4RL's",
            )
    rows = len(arrays["observations"]) if arrays["observations"].shape else 0
    if rows < 2:
        raise DataError(
            "The file holds no transition.", file=path, found=f"{rows} rows", expected="two or more"
        )
    columns, squeezed = {}, []
    for name, array in arrays.items():
        aligned = bool(array.shape) and len(array) == rows and not name.startswith("metadata/")
        if not aligned and (name in RESERVED or name == "next_observations"):
            raise DataError(
                "Columns have different lengths.",
                file=path,
                field=name,
                found=f"shape {array.shape}",
                expected=f"{rows} rows, as observations",
            )
        if aligned:
            floats = name in ("observations", "actions", "next_observations")
            columns[name] = (read_floats if floats else read_numbers)(array, path, name)
            if name in ("rewards", "terminals", "timeouts") and columns[name].shape == (rows, 1):
                columns[name] = columns[name][:, 0]
                squeezed.append(name)
    if columns["rewards"].dtype not in (np.float32, np.float64):
        columns["rewards"] = columns["rewards"].astype(np.float32)
    for name, axes in (
        ("observations", 2),
        ("actions", 2),
        ("rewards", 1),
        ("terminals", 1),
        ("timeouts", 1),
    ):
        if name in columns and columns[name].ndim != axes:
            raise DataError(
                "A column has the wrong number of axes.",
                file=path,
                field=name,
                found=f"shape {columns[name].shape}",
                expected=f"{axes} axes",
            )
    if "next_observations" in columns and columns["next_observations"].shape != columns["observations"].shape:
        raise DataError(
            "Observations and next observations have different shapes.",
            file=path,
            field="next_observations",
            found=str(columns["next_observations"].shape),
            expected=str(columns["observations"].shape),
        )
    return columns, squeezed


def _metadata(arrays: dict[str, h5py.Dataset], columns: dict[str, np.ndarray]) -> dict[str, Any]:
    """Scalars as JSON-able facts; what is neither a scalar nor a column is named, so that its loss is
    known."""
    scalars, left_out = {}, []
    for name, array in arrays.items():
        if name in columns:
            continue
        value = array[()] if array.shape == () else None
        if isinstance(value, bytes | str):
            scalars[name] = {"value": value.decode(errors="replace") if isinstance(value, bytes) else value}
        elif value is not None and array.dtype.kind in "biuf":
            scalars[name] = {"value": value.item(), "dtype": str(array.dtype)}
        else:
            left_out.append(name)
    return {"metadata": scalars, "left_out": left_out}


def _ends(
    path: Path,
    columns: dict[str, np.ndarray],
    conventions: d4rl_ends.Conventions,
    max_episode_steps: int | None,
    jump_limit: float | None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Ends by D4RL's rules, and how many of each kind there were."""
    told = "timeouts" in columns or "next_observations" in columns or max_episode_steps is not None
    if not told and not conventions.position_columns:
        raise DataError(
            "The file does not say where trajectories were cut.",
            file=path,
            field="timeouts",
            found=f"{', '.join(columns)}",
            fix="give max_episode_steps, the environment's time limit (1000 for D4RL's MuJoCo tasks)",
        )
    jumps = d4rl_ends.find_jumps(columns, conventions.position_columns, jump_limit)
    ends = d4rl_ends.find_ends(columns, conventions, max_episode_steps, jumps)
    timeouts = columns["timeouts"].astype(bool) if "timeouts" in columns else np.zeros(len(ends), dtype=bool)
    counts: dict[str, Any] = {
        "timeouts": int(timeouts.sum()),
        "jumps": int(jumps.sum()),
        "all": int(np.count_nonzero(ends)),
    }
    return ends, counts


def _lay_out(
    path: Path,
    columns: dict[str, np.ndarray],
    ends: np.ndarray,
    saved: dict[str, Any],
    shift: float | None,
    info: dict[str, Any],
    drop_short: bool,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Lay the file's rows out with an end row for each trajectory. `shift` None: the file's rewards mean
    nothing."""
    stops = np.flatnonzero(ends)
    after = ends[stops] == ENDS_AFTER
    sizes = np.diff(stops, prepend=-1) + after
    long_enough = sizes >= 2
    if not drop_short and not long_enough.all():
        raise short_trajectories(np.flatnonzero(~long_enough), sizes, path)
    if not long_enough.any():
        raise DataError(
            "No trajectory in the file has a transition.",
            file=path,
            found=f"{len(stops)} trajectories of one row",
            fix="check timeouts, terminals_end and max_episode_steps",
        )
    info["d4rl"]["dropped_rows"] = int((~long_enough).sum())
    repeats = 1 + (ends == ENDS_AFTER)
    rows = np.repeat(np.arange(len(ends)), repeats)
    made = np.zeros(len(rows), dtype=bool)
    made[np.cumsum(repeats)[ends == ENDS_AFTER] - 1] = True
    keep = np.repeat(long_enough, sizes)
    rows, made, sizes = rows[keep], made[keep], sizes[long_enough]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    end_rows = offsets[1:] - 1

    taken = {name: column[rows] for name, column in columns.items()}
    terminals = taken.pop("terminals").astype(bool)
    timeouts = taken.pop("timeouts").astype(bool) if "timeouts" in taken else np.zeros(len(rows), dtype=bool)
    has_next = "next_observations" in columns
    if has_next:
        taken[NEXT] = taken.pop("next_observations")
    taken["observations"][made] = columns["next_observations" if has_next else "observations"][rows[made]]
    for name, column in taken.items():
        if name != "observations":
            column[made] = 0
    rewards = taken.pop("rewards")
    if shift:
        rewards[~made] += np.asarray(shift, dtype=rewards.dtype)
    terminated = terminals.copy()
    terminated[end_rows] = False
    truncated = cut_flags(terminated, made, end_rows)
    if "truncated" in saved:
        truncated = saved["truncated"].astype(bool)[rows]
    flags = (TERMINAL * (terminals & ~made) + TIMEOUT * (timeouts & ~made) + MADE * made).astype(np.uint8)
    if "flags" in saved:
        taken[FLAGS] = saved["flags"][rows]
    elif (flags[end_rows] != TIMEOUT).any():
        taken[FLAGS] = flags
    taken.update(terminated=terminated, truncated=truncated)
    if shift is not None:
        taken["rewards"] = rewards
    return taken, offsets
