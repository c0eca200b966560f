"""Episodes of OGBench's pointmaze and antmaze data: an expert that knows the way, with noisy actions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from astro_rl.collect.ant_expert import AntExpert
from astro_rl.collect.episodes import Columns, EpisodeRecorder
from astro_rl.collect.mazes import Cell, SubgoalTable, cells_at, free_cells, vertex_cells
from astro_rl.data.catalogue import Recipe
from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import numpy_globals

STITCH_CELLS = 4
"""A `stitch` episode ends this many cells from its start, so that no trajectory covers a whole task."""

EXPLORE_STEPS = 10
"""An `explore` episode turns to a random direction every so many steps."""


class MazeCollector:
    """`navigate` goes on to a new goal when one is reached, `stitch` stays there, `explore` has none."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._maze: Any = make_env(recipe.env_id, terminate_at_goal=False).unwrapped
        walls = self._maze.maze_map == 1
        self._starts, self._vertices, self._walls = free_cells(walls), vertex_cells(walls), walls
        self._subgoals = SubgoalTable(self._maze)
        self._expert = AntExpert() if recipe.agent == "ant" else None

    def episode(self, seed: int) -> Columns:
        maze, recipe = self._maze, self.recipe
        rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
        record = EpisodeRecorder(recipe.episode_rows)
        with numpy_globals(seed):
            start, goal = self._start_and_goal(rng)
            maze.action_space.seed(seed)
            observation, _ = maze.reset(seed=seed, options={"task_info": {"init_ij": start, "goal_ij": goal}})
            noise = rng.normal(0.0, recipe.noise, (recipe.episode_rows, maze.model.nu))
            direction = np.zeros(2)
            for step in range(recipe.episode_rows):
                if recipe.kind != "explore":
                    direction = self._towards_goal()
                elif step % EXPLORE_STEPS == 0:
                    direction = _unit(*rng.normal(size=2))
                action = np.clip(self._expert_action(direction) + noise[step], -1.0, 1.0)
                following, _, _, _, info = maze.step(action)
                record.add(
                    observations=observation, actions=action, qpos=info["prev_qpos"], qvel=info["prev_qvel"]
                )
                observation = following
                if recipe.kind == "navigate" and info["success"]:
                    self._set_goal(_choose(rng, self._vertices))
        return record.columns()

    def _start_and_goal(self, rng: np.random.Generator) -> tuple[Cell, Cell]:
        start = _choose(rng, self._starts)
        if self.recipe.kind != "stitch":
            return start, _choose(rng, self._vertices)
        ends = cells_at(self._walls, start, STITCH_CELLS)
        return start, _choose(rng, ends) if ends else start

    def _set_goal(self, goal: Cell) -> None:
        # By position: given a cell, OGBench's `set_goal` draws the same noise but moves the goal's marker
        # to NaN.
        self._maze.set_goal(goal_xy=self._maze.add_noise(self._maze.ij_to_xy(goal)))

    def _towards_goal(self) -> np.ndarray:
        xy = self._maze.get_xy()
        x, y = self._subgoals.subgoal(xy, self._maze.cur_goal_xy)
        return _unit(x - xy[0], y - xy[1])

    def _expert_action(self, direction: np.ndarray) -> np.ndarray:
        if self._expert is None:
            return direction
        # Read from the simulator and not from the last observation, which a teleport makes out of date.
        return self._expert(self._maze.get_ob(ob_type="states")[2:], direction)


def _unit(x: float, y: float) -> np.ndarray:
    length = math.hypot(x, y) + 1e-6
    return np.array([x / length, y / length])


def _choose(rng: np.random.Generator, cells: list[Cell]) -> Cell:
    return cells[int(rng.integers(len(cells)))]
