"""What a task knows of its observations: the simulator state behind one, and the nearest one that is
valid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from astro_rl.errors import UnavailableError
from astro_rl.tasks.states import NoState, StateMap
from astro_rl.tasks.task import Task


def state_of(task: Task) -> StateMap:
    """The map from an observation to `qpos` and `qvel`. An error that says why where there is none."""
    if isinstance(task.state, NoState):
        raise UnavailableError(
            f"No simulator state follows from an observation of {task.name}: {task.state.reason}.",
            fix="check dynamics with a learned model, or keep qpos and qvel beside the observations",
        )
    return task.state


def project(task: Task) -> Callable[[np.ndarray], np.ndarray]:
    """A function that maps observations, (…, obs), to the nearest valid ones, and valid ones to themselves.

    Rows of real data move by less than 1e-5, with one exception: OGBench's ant starts each episode from a
    quaternion that is not normalised (MuJoCo normalises it when it uses it), and so do its files; that row
    becomes unit as well.
    """
    if task.layout is None:
        return np.array
    return task.layout.project
