"""Episodes of OGBench's cube and scene datasets, made by OGBench's own scripted controllers."""

from __future__ import annotations

from typing import Any

import numpy as np

from astro_rl.collect.episodes import Columns, EpisodeRecorder
from astro_rl.data.catalogue import Recipe
from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import numpy_globals

NOISE_SMOOTHING = 0.5
"""Width, in steps, of the filter over a plan's noise (`play`)."""

MIN_NORM = 0.4
"""Shortest move the closed-loop controllers ask for (`noisy`)."""

NOISE_PER_ACTION = np.array([1.0, 1.0, 1.0, 3.0, 10.0])
"""`noisy` perturbs the yaw three times and the gripper ten times as much as the position."""

_STACKING = {
    "cube-single": (0.0, 0.0),
    "cube-double": (0.0, 0.25),
    "cube-triple": (0.05, 0.35),
    "cube-quadruple": (0.1, 0.5),
    "scene": (0.5, 0.5),
}
"""Range of the chance, drawn for each episode, that a cube is put on top of another one."""

_CUBE_RIGHT, _CUBE_LEFT, _DRAWER_FLOOR = 0.29, -0.3, (0.06, 0.08)


class ManipulationCollector:
    """`play` follows open-loop plans with smooth noise, `noisy` closed-loop controllers with white noise."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._scene: Any = make_env(recipe.env_id, terminate_at_goal=False, mode="data_collection").unwrapped
        self._controllers = _controllers(recipe, self._scene)
        self._has_buttons = hasattr(self._scene, "_cur_button_states")
        self._stacking = _STACKING[recipe.env_id.removesuffix("-v0")]

    def episode(self, seed: int) -> Columns | None:
        scene, recipe = self._scene, self.recipe
        rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
        record = EpisodeRecorder(recipe.episode_rows)
        with numpy_globals(seed):
            observation, info = scene.reset(seed=seed)
            stacking = rng.uniform(*self._stacking)
            noise = rng.uniform(0.0, recipe.noise) * NOISE_PER_ACTION
            controller = self._controllers[info["privileged/target_task"]]
            controller.reset(observation, info)
            for _ in range(recipe.episode_rows):
                action = self._action(rng, controller, observation, info, noise)
                following, _, _, _, info = scene.step(action)
                values = {
                    "observations": observation,
                    "actions": action,
                    "qpos": info["prev_qpos"],
                    "qvel": info["prev_qvel"],
                }
                if self._has_buttons:
                    values["button_states"] = info["prev_button_states"]
                record.add(**values)
                observation = following
                if controller.done:
                    seen, described = scene.set_new_target(p_stack=stacking)
                    controller = self._controllers[described["privileged/target_task"]]
                    controller.reset(seen, described)
        columns = record.columns()
        return columns if not self._has_buttons or cube_stays_visible(columns["qpos"]) else None

    def _action(
        self, rng: np.random.Generator, controller: Any, observation: Any, info: dict, noise: np.ndarray
    ) -> np.ndarray:
        if rng.random() < self.recipe.random_actions:
            return rng.uniform(-1.0, 1.0, noise.shape)
        action = np.asarray(controller.select_action(observation, info))
        if self.recipe.kind == "noisy":
            action = action + rng.normal(0.0, noise)
        return np.clip(action, -1.0, 1.0)


def cube_stays_visible(qpos: np.ndarray) -> bool:
    """OGBench's rule: the cube is never too far right, nor too far left and outside the drawer."""
    y, z = qpos[:, 15], qpos[:, 16]
    outside_drawer = (z < _DRAWER_FLOOR[0]) | (z > _DRAWER_FLOOR[1])
    return not ((y >= _CUBE_RIGHT).any() or ((y <= _CUBE_LEFT) & outside_drawer).any())


def _controllers(recipe: Recipe, scene: Any) -> dict[str, Any]:
    """One controller for each kind of target, by the name that the environment gives the target."""
    if recipe.kind == "play":
        from ogbench.manipspace.oracles.plan.button_plan import ButtonPlanOracle
        from ogbench.manipspace.oracles.plan.cube_plan import CubePlanOracle
        from ogbench.manipspace.oracles.plan.drawer_plan import DrawerPlanOracle
        from ogbench.manipspace.oracles.plan.window_plan import WindowPlanOracle

        classes = (CubePlanOracle, ButtonPlanOracle, DrawerPlanOracle, WindowPlanOracle)
        options: dict[str, Any] = {"noise": recipe.noise, "noise_smoothing": NOISE_SMOOTHING}
    else:
        from ogbench.manipspace.oracles.markov.button_markov import ButtonMarkovOracle
        from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle
        from ogbench.manipspace.oracles.markov.drawer_markov import DrawerMarkovOracle
        from ogbench.manipspace.oracles.markov.window_markov import WindowMarkovOracle

        classes = (CubeMarkovOracle, ButtonMarkovOracle, DrawerMarkovOracle, WindowMarkovOracle)
        options = {"min_norm": MIN_NORM}
    targets = ("cube", "button", "drawer", "window")
    return {target: oracle(env=scene, **options) for target, oracle in zip(targets, classes, strict=True)}
