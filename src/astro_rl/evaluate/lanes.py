"""Environments that live in one process, stepped together: what a worker runs, and what `workers=0` runs in
place.

This file is imported by worker processes: no JAX here, and nothing that imports it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt

from astro_rl.errors import AstroError, UnavailableError

EnvironmentFactory = str | Callable[[], Any]
"""An environment id for `astro_rl.envs.build.make_env`, or a function of a module that returns an
environment.
"""

IDLE, STEP, RESET = 0, 1, 2
"""What a lane does in a round. A reset takes a round of its own, in which other lanes go on stepping."""

RUNNING, ENDED = 0, 1
UNREPORTED = -1
"""In the place of a success: the environment's `info` has no such key."""


@dataclass(frozen=True)
class Spaces:
    """What the environments look like from outside."""

    name: str
    observation_dim: int
    action_dim: int


class Outcome(NamedTuple):
    """What a round gave, a row a lane. Rows of idle lanes mean nothing."""

    observations: Float[np.ndarray, "lanes obs"]
    rewards: Float[np.ndarray, "lanes"]
    ended: Int[np.ndarray, "lanes"]
    successes: Int[np.ndarray, "lanes"]


class LaneGroup:
    """Some lanes, each with an environment of its own that is built when the lane is first used, and then
    kept.
    """

    def __init__(self, factory: EnvironmentFactory, *, draws_globally_in_step: bool) -> None:
        self._factory, self._draws_globally_in_step = factory, draws_globally_in_step
        self.name = factory_name(factory)
        self._environments: dict[int, Any] = {}
        environment = self._environment(0)
        self.spaces = Spaces(self.name, *check_spaces(environment, self.name))
        self._action_dtype = environment.action_space.dtype

    def advance(
        self,
        commands: Int[np.ndarray, "lanes"],
        seeds: UInt[np.ndarray, "lanes"],
        actions: Float[np.ndarray, "lanes act"],
    ) -> Outcome:
        """Do one round. `seeds` are read where a lane resets, `actions` where it steps."""
        lanes = len(commands)
        outcome = Outcome(
            observations=np.zeros((lanes, self.spaces.observation_dim), np.float32),
            rewards=np.zeros(lanes, np.float64),
            ended=np.zeros(lanes, np.int8),
            successes=np.full(lanes, UNREPORTED, np.int8),
        )
        actions = actions.astype(self._action_dtype, copy=False)
        for lane in np.flatnonzero(commands):
            environment = self._environment(int(lane))
            if commands[lane] == RESET:
                observation, _ = environment.reset(seed=int(seeds[lane]))
            else:
                observation, reward, terminated, truncated, info = environment.step(actions[lane])
                outcome.rewards[lane] = reward
                outcome.ended[lane] = ENDED if terminated or truncated else RUNNING
                if "success" in info:
                    outcome.successes[lane] = bool(info["success"])
            outcome.observations[lane] = observation
        return outcome

    def close(self) -> None:
        for environment in self._environments.values():
            environment.close()
        self._environments.clear()

    def _environment(self, lane: int) -> Any:
        if lane not in self._environments:
            from astro_rl.envs.seeding import SeededEnv

            environment = build(self._factory)
            # None: SeededEnv looks for itself whether steps draw.
            self._environments[lane] = SeededEnv(
                environment, draws_in_step=self._draws_globally_in_step or None
            )
        return self._environments[lane]


def build(factory: EnvironmentFactory) -> Any:
    """One environment, from an id or from a function."""
    if isinstance(factory, str):
        from astro_rl.envs.build import make_env

        return make_env(factory)
    return factory()


def factory_name(factory: EnvironmentFactory) -> str:
    if isinstance(factory, str):
        return factory
    inner = getattr(factory, "func", factory)
    return str(getattr(inner, "__qualname__", inner))


def check_spaces(environment: Any, name: str) -> tuple[int, int]:
    """The sizes of observation and action; refuses what no learner here can act in, and says why."""
    from gymnasium import spaces

    seen, done = environment.observation_space, environment.action_space
    if isinstance(seen, spaces.Dict | spaces.Tuple):
        raise UnavailableError(
            f"{name} gives observations in several parts; learners here read one vector.",
            field="observation_space",
            found=seen,
            expected="a one-dimensional Box",
            fix="wrap it in gymnasium.wrappers.FlattenObservation, with the parts in the dataset's order",
        )
    if isinstance(seen, spaces.Box) and len(seen.shape) == 3:
        raise UnavailableError(
            f"{name} gives pixels; learners here read state vectors.",
            field="observation_space",
            found=seen,
            expected="a one-dimensional Box",
            fix="use the environment's state-based variant",
        )
    if not isinstance(seen, spaces.Box) or len(seen.shape) != 1:
        raise UnavailableError(
            f"{name} does not give observations as one vector.",
            field="observation_space",
            found=seen,
            expected="a one-dimensional Box",
        )
    if not isinstance(done, spaces.Box) or len(done.shape) != 1:
        raise UnavailableError(
            f"{name} does not take one vector of continuous actions; learners here give nothing else.",
            field="action_space",
            found=done,
            expected="a one-dimensional Box within [-1, 1]",
        )
    if not (np.all(done.low == -1) and np.all(done.high == 1)):
        raise UnavailableError(
            f"{name} takes actions on another scale; policies here act within [-1, 1].",
            field="action_space",
            found=done,
            expected="bounds of -1 and 1",
            fix="wrap it in gymnasium.wrappers.RescaleAction(env, -1, 1); scale the dataset's actions alike",
        )
    return seen.shape[0], done.shape[0]


def failure_of(error: Exception, name: str, doing: str) -> AstroError:
    """Any exception as one that names the environment; ours pass as they are."""
    if isinstance(error, AstroError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].name}, line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    return AstroError(
        f"The environment {name} failed while {doing}.", found=f"{type(error).__name__}: {error}{place}"
    )
