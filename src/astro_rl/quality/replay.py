"""What the simulator makes of a state and an action: the judge of every generated transition.

Only for tasks whose observation holds the whole state (`astro_rl.tasks.state_of`). Each row stands alone: the solver's
warm start, which no observation holds, is cleared, so that the answer follows from the row and not from what was
replayed before it, nor from the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import reset_seeded
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.workers import Progress, run_jobs
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import Task
from astro_rl.tasks.valid import state_of

JOB_STEPS = 500
"""Simulator steps in one job of a worker: a fraction of a second, so that the last one is not waited for long."""


class Simulator:
    """An environment that can be put into any state."""

    def __init__(self, env_id: str, state: StateMap) -> None:
        import mujoco

        self._base: Any = make_env(env_id).unwrapped
        reset_seeded(self._base, seed=0)  # a maze's step asks for the goal, which a reset sets
        self._state = state
        self._mujoco: Any = mujoco

    @property
    def environment(self) -> Any:
        return self._base

    def put(self, observation: np.ndarray) -> None:
        qpos, qvel = self._state.to_qpos_qvel(observation)
        self._base.data.qacc_warmstart[:] = 0.0
        self._base.set_state(qpos, qvel)

    def step(self, action: np.ndarray) -> np.ndarray:
        """The next observation, in double precision."""
        return np.asarray(self._base.step(np.asarray(action, np.float64))[0], np.float64)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Impossible states make MuJoCo warn, into a file in the working folder. Here they are what is measured."""
        before = self._mujoco.get_mju_user_warning()
        self._mujoco.set_mju_user_warning(lambda text: None)
        try:
            yield
        finally:
            self._mujoco.set_mju_user_warning(before)


@cache
def simulator(env_id: str, state: StateMap) -> Simulator:
    """One a process: building takes a second."""
    return Simulator(env_id, state)


def replay_steps(
    task: Task,
    observations: Float[np.ndarray, "rows obs"],
    actions: Float[np.ndarray, "rows act"],
    *,
    workers: int | None = 0,
    progress: Progress | None = None,
) -> Float[np.ndarray, "rows obs"]:
    """The next observation of each row. `workers`: processes; None is one a core, 0 this process."""
    state = checked_state(task, observations, actions)
    parts = [slice(start, start + JOB_STEPS) for start in range(0, len(observations), JOB_STEPS)]
    given = [(task.env_id, state, observations[part], actions[part]) for part in parts]
    answers = run_jobs(f"{__name__}:step_rows", given, workers, progress)
    return np.concatenate([np.zeros((0, observations.shape[1])), *answers])


def open_loop(
    task: Task, start: Float[np.ndarray, "obs"], actions: Float[np.ndarray, "steps act"]
) -> Float[np.ndarray, "steps_plus_1 obs"]:
    """All observations from the start on when the actions are applied one after the other."""
    return open_loops(task, start[None], [actions])[0]


def open_loops(
    task: Task,
    starts: Float[np.ndarray, "sequences obs"],
    actions: Sequence[Float[np.ndarray, "_ act"]],
    *,
    workers: int | None = 0,
    progress: Progress | None = None,
) -> list[np.ndarray]:
    """The same for many sequences, of any lengths: (steps + 1, obs) each."""
    for steps in actions:
        checked_state(task, starts, steps)
    state = state_of(task)
    steps_each = max([len(steps) for steps in actions], default=1)
    size = max(1, JOB_STEPS // max(steps_each, 1))
    given = [
        (task.env_id, state, starts[first : first + size], list(actions[first : first + size]))
        for first in range(0, len(starts), size)
    ]
    answers = run_jobs(f"{__name__}:step_sequences", given, workers, progress)
    return [sequence for answer in answers for sequence in answer]


def checked_state(task: Task, observations: np.ndarray, actions: np.ndarray) -> StateMap:
    """The task's state map. Refuses what cannot be replayed, before any simulator is built."""
    state = state_of(task)
    if task.draws_globally_in_step:
        raise UnavailableError(
            f"A step of {task.name} is drawn by chance (teleports), so it cannot be compared with a replay.",
            fix="choose a task without teleports",
        )
    for name, array, width in (
        ("observations", observations, task.observation_dim),
        ("actions", actions, task.action_dim),
    ):
        if array.shape[-1] != width:
            raise DataError(
                f"These are no {name} of {task.name}.",
                field=name,
                found=f"{array.shape[-1]} numbers a row",
                expected=f"{width} numbers a row",
                fix="choose a task of the environment the data comes from",
            )
        bad = ~np.isfinite(np.atleast_2d(array)).all(axis=-1)
        if bad.any():
            raise DataError(
                "The simulator cannot be put into a state that is not finite.",
                field=name,
                found=f"{int(bad.sum())} of {bad.size} rows are not finite",
                fix="`astro-rl data check` names the rows",
            )
    return state


def step_rows(env_id: str, state: StateMap, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """A worker's job."""
    world = simulator(env_id, state)
    found = np.empty(observations.shape)
    with world.quiet():
        for row in range(len(observations)):
            world.put(observations[row])
            found[row] = world.step(actions[row])
    return found


def step_sequences(
    env_id: str, state: StateMap, starts: np.ndarray, actions: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """A worker's job."""
    world = simulator(env_id, state)
    found = []
    with world.quiet():
        for start, steps in zip(starts, actions, strict=True):
            world.put(start)
            found.append(np.array([np.asarray(start, np.float64), *(world.step(action) for action in steps)]))
    return found
