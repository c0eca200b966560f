"""Environments that show what an evaluation must not depend on. Imported by worker processes too."""

import os
import signal
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

BUILT_HERE = 0


class Drifting(gymnasium.Env):
    """Starts at random, moves by action and noise, lives for a random number of steps, succeeds on the way or
    not.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    draws_globally_in_step = False

    def __init__(self) -> None:
        global BUILT_HERE
        BUILT_HERE += 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = np.array([*self.np_random.normal(size=2), np.random.normal()])
        self.left = int(self.np_random.integers(2, 12))
        return self.state.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert action.shape == (2,) and action.dtype == np.float32
        noise = np.random.normal() if self.draws_globally_in_step else self.np_random.normal()
        self.state[:2] += action
        self.state[2] += 0.1 * noise
        self.left -= 1
        info = {"success": bool(self.state[0] > 0.5)}
        return self.state.copy(), float(self.state.sum()), self.left == 0, False, info


class DriftingGlobally(Drifting):
    draws_globally_in_step = True


class Told(Drifting):
    """Two steps with rewards 1 and 2; success in the first step only, or never told."""

    tells = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = super().reset(seed=seed)
        self.count = 0
        return observation, info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.count += 1
        info = {"success": self.count == 1} if self.tells else {}
        return self.state, float(self.count), False, self.count == 2, info


class Untold(Told):
    tells = False


class Endless(Drifting):
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return self.state, 0.0, False, False, {}


class Dying(Drifting):
    """Takes its process along in the second step."""

    count = 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.count += 1
        if self.count == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Exiting(Drifting):
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        os._exit(3)


class Raising(Drifting):
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        raise EOFError("the simulator has no more frames")


class RaisingWhenBuilt(Drifting):
    def __init__(self) -> None:
        raise RuntimeError("no such model file")


class NotANumber(Drifting):
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return np.array([0.0, np.nan, 0.0]), 0.0, False, False, {}


class Confessing(Drifting):
    """Its observation says whether JAX is loaded in its process, and how many threads BLAS may use there."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        threads = float(os.environ.get("OMP_NUM_THREADS", "0"))
        return np.array([float("jax" in sys.modules), threads, 0.0]), {}


class Slow(Drifting):
    """Waits a little in each step, without using the processor."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        time.sleep(0.02)
        return super().step(action)


class Pixels(Drifting):
    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)


class Parts(Drifting):
    observation_space = spaces.Dict({"achieved_goal": spaces.Box(-1.0, 1.0, (2,))})


class Buttons(Drifting):
    action_space = spaces.Discrete(4)


class Wide(Drifting):
    action_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
