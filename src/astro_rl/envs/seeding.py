"""An environment episode that depends on its seed and on nothing else.

OGBench draws from three generators. Robots' joints come from `env.np_random`, which `reset(seed=...)` does
pin down. Maze positions, goals, teleports and the scripted controllers come from NumPy's *global*
generator, and the few random steps before a goal observation from `env.action_space`: neither is touched by
`reset(seed=...)`. Here all three follow from one seed, and the caller's own use of the global generator is
left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np

_GLOBAL_STREAM = 1
"""Keeps the global stream apart from `env.np_random`'s, which gymnasium seeds with the bare number."""


def global_state_for(seed: int) -> dict[str, Any]:
    """A state of NumPy's global generator that follows from `seed`."""
    bits = np.random.MT19937(np.random.SeedSequence([seed, _GLOBAL_STREAM]))
    return np.random.RandomState(bits).get_state(legacy=False)


@contextmanager
def numpy_globals(seed: int) -> Iterator[None]:
    """NumPy's global generator seeded inside the block, and as it was after it."""
    callers = np.random.get_state(legacy=False)
    np.random.set_state(global_state_for(seed))
    try:
        yield
    finally:
        np.random.set_state(callers)


def reset_seeded(
    env: gymnasium.Env, seed: int, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Resets so that the initial state, the goal and the goal observation follow from `seed` alone.

    Enough for environments whose steps draw nothing; :class:`SeededEnv` also covers those that do.
    """
    env.action_space.seed(seed)
    with numpy_globals(seed):
        return env.reset(seed=seed, options=options)


def draws_globally_in_step(env: gymnasium.Env) -> bool:
    """Whether steps draw from NumPy's global generator: OGBench's teleport mazes choose the exit with it."""
    return getattr(env.unwrapped, "_teleport_info", None) is not None


class SeededEnv(gymnasium.Wrapper):
    """An environment with a global generator of its own, swapped in for resets and, where needed, for steps.

    Swapping costs about 0.1 ms, which is why steps are only wrapped where they draw: pointmaze steps take
    as long.
    """

    def __init__(self, env: gymnasium.Env, *, draws_in_step: bool | None = None) -> None:
        super().__init__(env)
        self.draws_in_step = draws_globally_in_step(env) if draws_in_step is None else draws_in_step
        self._state: dict[str, Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """With a seed: that seed's episode. Without: the next one of the stream begun by the last seed."""
        if seed is None and self._state is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self.env.action_space.seed(seed)
            self._state = global_state_for(seed)
        with self._own_global_state():
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if not self.draws_in_step:
            observation, reward, terminated, truncated, info = self.env.step(action)
        else:
            with self._own_global_state():
                observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, bool(terminated), bool(truncated), info

    @contextmanager
    def _own_global_state(self) -> Iterator[None]:
        callers = np.random.get_state(legacy=False)
        if self._state is not None:
            np.random.set_state(self._state)
        try:
            yield
        finally:
            self._state = dict(np.random.get_state(legacy=False))
            np.random.set_state(callers)
