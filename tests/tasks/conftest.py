"""Simulated rows of OGBench's environments, built once: stepped with random actions, and placed around each
goal."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import reset_seeded
from astro_rl.tasks import Task, get_task

SIMULATED = {
    "pointmaze-medium-stitch": 60,
    "antmaze-giant-stitch": 60,
    "humanoidmaze-medium-stitch": 60,
    "antsoccer-arena-stitch": 60,
    "cube-single-play": 40,
    "cube-double-play": 40,
    "scene-play": 60,
}
"""Short task names, and how many random steps are enough to leave the reset behind."""


@cache
def environment(env_id: str) -> Any:
    env = make_env(env_id)
    reset_seeded(env, seed=0)
    return env


@dataclass(frozen=True)
class Rows:
    """Rows as OGBench's files store them, in float32."""

    observations: np.ndarray
    qpos: np.ndarray
    button_states: np.ndarray | None
    starts: np.ndarray
    """Rows that an episode begins with."""


class Recorder:
    """Collects rows from an environment's present state, whatever robot is in it."""

    def __init__(self, env: Any) -> None:
        self.base = env.unwrapped
        self.buttons = hasattr(self.base, "_cur_button_states")
        self.rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def observe(self) -> np.ndarray:
        return self.base.get_ob() if hasattr(self.base, "get_ob") else self.base.compute_observation()

    def take(self) -> None:
        states = self.base._cur_button_states.copy() if self.buttons else np.zeros(0)
        self.rows.append((self.observe(), self.base.data.qpos.copy(), states))

    def place(self, qpos: np.ndarray, buttons: np.ndarray | None = None) -> None:
        qvel = np.zeros(self.base.model.nv)
        if self.buttons:
            self.base.set_state(qpos, qvel, self.base._cur_button_states if buttons is None else buttons)
        else:
            self.base.set_state(qpos, qvel)
        self.take()

    def finish(self, starts: list[int]) -> Rows:
        observations, qpos, buttons = (np.array(column) for column in zip(*self.rows, strict=True))
        return Rows(
            observations.astype(np.float32),
            qpos.astype(np.float32),
            buttons.astype(np.int64) if self.buttons else None,
            np.array(starts),
        )


@cache
def stepped_rows(short_name: str) -> Rows:
    """Two episodes of random actions that change every few steps, so that joints reach their limits."""
    env = environment(get_task(short_name).env_id)
    rng = np.random.default_rng(0)
    recorder, starts = Recorder(env), []
    for seed in range(2):
        reset_seeded(env, seed=seed)
        starts.append(len(recorder.rows))
        recorder.take()
        held = rng.choice([-1.0, 1.0], (SIMULATED[short_name] // 5, *env.action_space.shape))
        for action in np.repeat(held.astype(np.float32), 5, axis=0):
            env.unwrapped.step(action)
            recorder.take()
    return recorder.finish(starts)


@pytest.fixture(params=SIMULATED)
def simulated(request: pytest.FixtureRequest) -> tuple[Task, Rows]:
    """The default task of each kind of environment, and real rows of it."""
    return get_task(request.param), stepped_rows(request.param)


@pytest.fixture
def build() -> Callable[[str], Any]:
    return environment
