"""Finding a task by any of the names people use for it."""

from __future__ import annotations

import difflib
import re
from functools import cache

from astro_rl.errors import AstroError
from astro_rl.tasks.table import ROWS, tasks_of_row
from astro_rl.tasks.task import Task

_FULL = re.compile(r"(?P<dataset>.+?)-singletask(?:-task(?P<goal>\d+))?-v0")
_SHORT = re.compile(r"(?P<dataset>.+?)(?:-task(?P<goal>\d+))?")


@cache
def all_tasks() -> tuple[Task, ...]:
    """Every task of the table, all goals, in its order: the paper's first."""
    return tuple(task for row in ROWS for task in tasks_of_row(row))


def paper_tasks() -> tuple[Task, ...]:
    """What the paper's table 1 is about: eight OGBench tasks with their default goals, and six D4RL
    antmazes."""
    return tuple(task for row in ROWS if row.from_paper for task in tasks_of_row(row) if task.is_default_goal)


def tasks_of_dataset(dataset: str) -> tuple[Task, ...]:
    """All tasks whose data this is, by its file stem (`antmaze-large-stitch-v0`); none for data we do not
    know."""
    return _by_dataset().get(dataset.removesuffix("-val"), ())


def get_task(name: str) -> Task:
    """One task by name.

    OGBench's names with or without a goal (`antmaze-large-stitch-singletask-task3-v0`, `…-singletask-v0` for
    the default goal), short ones (`antmaze-large-stitch-task3`, `antmaze-large-stitch`) and D4RL's
    (`antmaze-umaze-v2`) all work. Dataset types of a listed environment that the paper does not use
    (`navigate`, `explore`, `noisy`) are known too.
    """
    known = _by_dataset()
    for pattern in (_FULL, _SHORT):
        match = pattern.fullmatch(name)
        if match is None:
            continue
        stem, goal = match["dataset"], match["goal"]
        tasks = known.get(stem) or known.get(f"{stem}-v0")
        if tasks:
            return _pick_goal(tasks, name, None if goal is None else int(goal))
    near = difflib.get_close_matches(name, [*(task.name for task in all_tasks()), *known], n=3, cutoff=0.5)
    raise AstroError(
        f"No task is called {name!r}.",
        found=name,
        expected=f"a name such as {', '.join(near)}" if near else "a name from docs/tasks.md",
        fix="astro_rl.tasks.all_tasks() lists every task; data of your own needs no task, only a reward",
    )


def _pick_goal(tasks: tuple[Task, ...], name: str, goal: int | None) -> Task:
    for task in tasks:
        if task.goal == goal or (goal is None and task.is_default_goal):
            return task
    raise AstroError(
        f"The task {name!r} asks for a goal that this environment does not have.",
        found=f"goal {goal}",
        expected=f"a goal from 1 to {len(tasks)}",
    )


@cache
def _by_dataset() -> dict[str, tuple[Task, ...]]:
    found: dict[str, tuple[Task, ...]] = {}
    for row in ROWS:
        for data in (row.data, *row.other_data):
            tasks = tasks_of_row(row, data)
            found[tasks[0].dataset] = tasks
    return found
