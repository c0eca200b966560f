"""A dataset under a task's reward, and how often a dataset solves which task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.tasks.task import SuccessTiming, Task

CHUNK_ROWS = 1 << 18
"""Rows scored at once: a memory-mapped dataset is never read whole."""

THRESHOLD = 1e-6
"""Rows nearer than this to a success threshold may fall on either side of it by rounding; they are
counted."""

Progress = Callable[[int, int], None]


def relabel(
    dataset: Dataset, task: Task, *, timing: SuccessTiming | None = None, progress: Progress | None = None
) -> Dataset:
    """The same trajectories with `rewards` and `terminated` as the task gives them, from observations alone.

    With timing `pre` a transition is rewarded for the state it leaves, with `post` for the one it enters. End
    rows get zero and false. What was done is recorded in `info["relabelled"]`.
    """
    check_width(dataset, task)
    timing = timing or task.success_timing
    rewards = np.zeros(dataset.n_rows, dtype=np.float32)
    success = np.zeros(dataset.n_rows, dtype=bool)
    for start in range(0, dataset.n_rows, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, dataset.n_rows))
        observations = np.asarray(dataset.observations[rows])
        rewards[rows] = task.rewards.reward(observations)
        success[rows] = task.rewards.success(observations)
        if progress is not None:
            progress(rows.stop, dataset.n_rows)
    if timing == "post":
        rewards[:-1], success[:-1] = rewards[1:], success[1:]
    rewards[dataset.end_rows], success[dataset.end_rows] = 0.0, False
    labelled = dataset.with_rewards(rewards, success)
    note = {"task": task.name, "success_timing": timing, "from": "observations"}
    return replace(labelled, info={**labelled.info, "relabelled": note})


@dataclass(frozen=True)
class Successes:
    """How often the states of a dataset meet one task's goal."""

    task: str
    rows: int
    """States in which the goal is met, end rows included."""
    trajectories: int
    """Trajectories that visit such a state."""
    near_threshold: int
    """Rows within 1e-6 of a threshold, where rounding decides."""


def successes(
    dataset: Dataset, tasks: Sequence[Task], *, progress: Progress | None = None
) -> list[Successes]:
    """Counts for each of the tasks, in one pass over the observations."""
    for task in tasks:
        check_width(dataset, task)
    rows_met, close = np.zeros(len(tasks), dtype=np.int64), np.zeros(len(tasks), dtype=np.int64)
    visited = np.zeros((len(tasks), dataset.n_trajectories), dtype=bool)
    for start in range(0, dataset.n_rows, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, dataset.n_rows)
        observations = np.asarray(dataset.observations[start:stop])
        for number, task in enumerate(tasks):
            met = task.rewards.success(observations)
            rows_met[number] += met.sum()
            close[number] += (_gap(task, observations) <= THRESHOLD).sum()
            trajectories = np.searchsorted(dataset.offsets, start + np.flatnonzero(met), side="right") - 1
            visited[number, trajectories] = True
        if progress is not None:
            progress(stop, dataset.n_rows)
    return [
        Successes(task.name, int(rows_met[k]), int(visited[k].sum()), int(close[k]))
        for k, task in enumerate(tasks)
    ]


def _gap(task: Task, observations: np.ndarray) -> np.ndarray:
    gap = getattr(task.rewards, "threshold_gap", None)
    return np.full(len(observations), np.inf) if gap is None else gap(observations)


def check_width(dataset: Dataset, task: Task) -> None:
    """Refuses a task of another environment than the data's."""
    if dataset.observation_dim != task.observation_dim:
        raise DataError(
            f"The observations of this dataset are not those of {task.name}.",
            field="observations",
            found=f"{dataset.observation_dim} numbers a row",
            expected=f"{task.observation_dim} numbers a row",
            fix="choose a task of the environment the data comes from",
        )
