"""D4RL's six antmaze-v2 environments as gymnasium environments, without d4rl, old gym or mujoco-py.

`docs/d4rl-antmaze.md` says what was matched, against what it was checked, and what cannot be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.envs.d4rl_model import FRAME_SKIP, maze_xml
from astro_rl.errors import AstroError, MissingDependency
from astro_rl.tasks.d4rl import GOAL_RADIUS, GOAL_SPREAD, MAZES

try:
    import gymnasium
    import mujoco
    from gymnasium.envs.registration import EnvSpec
except ModuleNotFoundError as missing:
    raise MissingDependency(missing.name or "mujoco", "d4rl", "A D4RL antmaze environment") from missing

_mujoco: Any = mujoco  # its type stubs lack most of its names

RESET_NOISE = 0.1


class D4rlAntMaze(gymnasium.Env[np.ndarray, np.ndarray]):
    """An ant that starts at the origin and has to come within 0.5 of a goal, which ends the episode.

    Observations are D4RL's 29 numbers: 15 positions (x and y in the maze's own coordinates first) and 14
    velocities. The reward is D4RL's own, 1 on arrival and 0 before; `info["success"]` says the same. Each
    reset draws a goal, as v2 does. All randomness comes from `reset(seed=...)`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (gymnasium declares it so)

    def __init__(self, env_id: str, render_mode: str | None = None, width: int = 480, height: int = 480):
        self.maze = MAZES[env_id]
        self.model = _mujoco.MjModel.from_xml_string(maze_xml(self.maze))
        self.data = _mujoco.MjData(self.model)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = width, height
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (29,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (8,), np.float32)
        self.render_mode = render_mode
        self.goal = np.array(self.maze.goal_center)
        self._size = (height, width)
        self._renderer: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, "29"], dict[str, Any]]:
        """A new goal, and the ant at the origin with noise on every position and velocity.

        `options={"goal": (x, y)}` sets the goal instead of drawing it.
        """
        super().reset(seed=seed)
        self.set_goal((options or {}).get("goal", self._draw_goal()))
        _mujoco.mj_resetData(self.model, self.data)
        qpos = self.model.qpos0 + self.np_random.uniform(-RESET_NOISE, RESET_NOISE, self.model.nq)
        qvel = RESET_NOISE * self.np_random.standard_normal(self.model.nv)
        # Noise falls on the quaternion too. The MuJoCo of D4RL's time normalised it in place, today's leaves
        # it.
        _mujoco.mj_normalizeQuat(self.model, qpos)
        self.set_state(qpos, qvel)
        return self._observation(), self._info()

    def step(
        self, action: Float[np.ndarray, "8"]
    ) -> tuple[Float[np.ndarray, "29"], float, bool, bool, dict[str, Any]]:
        """Five simulation steps under one action. Success is judged after them."""
        self.data.ctrl[:] = np.clip(action, -1.0, 1.0)
        _mujoco.mj_step(self.model, self.data, nstep=FRAME_SKIP)
        info = self._info()
        return self._observation(), info["success"], bool(info["success"]), False, info

    def set_goal(self, goal: Float[np.ndarray, "2"] | tuple[float, float]) -> None:
        """Moves the goal, its mark in pictures included."""
        self.goal = np.array(goal, dtype=np.float64)
        self.model.site("goal").pos[:2] = self.goal

    def set_state(self, qpos: Float[np.ndarray, "15"], qvel: Float[np.ndarray, "14"]) -> None:
        """Puts the simulator into a state, for example one that `tasks.state_of` read off an observation."""
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        _mujoco.mj_forward(self.model, self.data)

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The maze from above as an image, or nothing where no render mode was asked for."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = _mujoco.Renderer(self.model, *self._size)
        camera = _mujoco.MjvCamera()
        columns, rows = len(self.maze.rows[0]), len(self.maze.rows)
        camera.lookat[:] = (2.0 * (columns - 3), 2.0 * (rows - 3), 0.0)
        camera.distance, camera.elevation = 5.0 * max(columns, rows), -90.0
        self._renderer.update_scene(self.data, camera=camera)
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _draw_goal(self) -> np.ndarray:
        return np.array(self.maze.goal_corner) + sum(
            self.np_random.uniform(0.0, spread, 2) for spread in GOAL_SPREAD
        )

    def _observation(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel])

    def _info(self) -> dict[str, Any]:
        xy = self.data.qpos[:2].copy()
        success = float(np.linalg.norm(xy - self.goal) <= GOAL_RADIUS)
        return {"success": success, "xy": xy, "goal": self.goal.copy()}


def make(env_id: str, **kwargs: Any) -> gymnasium.Env[np.ndarray, np.ndarray]:
    """A D4RL antmaze by its name, with D4RL's time limit. Nothing is registered with gymnasium."""
    if env_id not in MAZES:
        raise AstroError(
            "This D4RL environment is not one that can be evaluated here.",
            found=env_id,
            expected=f"one of {', '.join(MAZES)}",
            fix="v0 and v1 are v2 with a goal drawn once instead of every episode; use v2",
        )
    spec = EnvSpec(
        id=env_id,
        entry_point="astro_rl.envs.d4rl_antmaze:D4rlAntMaze",
        max_episode_steps=MAZES[env_id].max_episode_steps,
        disable_env_checker=True,
        kwargs={"env_id": env_id},
    )
    return gymnasium.make(spec, **kwargs)
