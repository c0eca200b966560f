"""The expert that fills a gap in the simulator: from a state towards a place, in a number of steps that is given.

It is known how far a unit action carries the point, so its pace is set to arrive on time, and its last steps are
without noise, to arrive exactly. The ant's expert takes a direction and nothing else; it arrives when it arrives, in
whatever posture, so several attempts with other noise are made and the nearest arrival is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from astro_rl.collect.ant_expert import AntExpert
from astro_rl.collect.mazes import SubgoalTable
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.quality.replay import simulator
from astro_rl.tasks import goals
from astro_rl.tasks.states import StateMap

CLEARANCE = 1.0
"""A straight line counts as free when it stays so far off walls: the point's radius is 0.7, an ant's legs reach 0.9."""

POINT_REACH = 0.2
"""How far an action of length one carries the point in a step."""

QUIET_STEPS = 2
"""The point's last steps are without noise: one would leave a miss of the last action's size now and then."""


@dataclass(frozen=True)
class Driver:
    """Who drives, and what counts as having arrived."""

    env_id: str
    state: StateMap
    agent: Literal["point", "ant"]
    noise: float
    """Standard deviation of the Gaussian added to actions, as when data is made."""
    attempts: int
    jump: float
    jump_xy: float | None
    """Largest misses that are an arrival, in typical steps."""


class Gap(NamedTuple):
    """What is to be filled, and what it is held against."""

    start: Float[np.ndarray, "obs"]
    target: Float[np.ndarray, "obs"]
    seed: tuple[int, ...]


class Filled(NamedTuple):
    """All gaps of a job."""

    states: Float[np.ndarray, "gaps steps_plus_1 obs"]
    actions: Float[np.ndarray, "gaps steps act"]
    attempts: Int[np.ndarray, "gaps"]
    """How many were made."""


class Guide:
    """Which way to a place: straight where that is free, else over OGBench's oracle path from cell to cell."""

    def __init__(self, maze: Any) -> None:
        self._maze, self._subgoals = maze, SubgoalTable(maze)
        grid = MazeGrid.of_walls(
            np.asarray(maze.maze_map) == 1, unit=goals.MAZE_UNIT, origin=goals.cell_center((0, 0))
        )
        wider = np.array([-CLEARANCE, -CLEARANCE, CLEARANCE, CLEARANCE])
        self._grid = replace(grid, boxes=grid.boxes + wider)

    def towards(self, xy: np.ndarray, target: np.ndarray) -> tuple[float, float, bool]:
        """The next place to head for, and whether it is the target itself."""
        same_cell = self._maze.xy_to_ij(xy) == self._maze.xy_to_ij(target)
        if same_cell or not self._grid.separated_by_wall(xy[None], target[None])[0]:
            return float(target[0]), float(target[1]), True
        return *self._subgoals.subgoal(xy, target), False


@cache
def _guide(env_id: str, state: StateMap) -> Guide:
    return Guide(simulator(env_id, state).environment)


def fill_gaps(
    driver: Driver,
    gaps: list[Gap],
    steps: int,
    sigma: Float[np.ndarray, "obs"],
    plane: list[int],
    dtypes: Any,
) -> Filled:
    """A worker's job. `sigma`: the typical one-step change of each number, 0 where it never changes. Actions are
    rounded to the dataset's type before they are applied, so that they are what the data says."""
    world, guide = simulator(driver.env_id, driver.state), _guide(driver.env_id, driver.state)
    expert = AntExpert() if driver.agent == "ant" else None
    states_type, actions_type = dtypes
    states, actions, made = [], [], np.zeros(len(gaps), np.int64)
    with world.quiet():
        for number, gap in enumerate(gaps):
            best, kept = math.inf, None
            for attempt in range(driver.attempts):
                generator = np.random.default_rng([*gap.seed, attempt])
                tried = _drive(driver, world, guide, expert, gap, steps, plane, generator, actions_type)
                made[number] += 1
                miss = arrival_miss(driver, tried[0][-1] - gap.target, sigma, plane)
                if kept is None or miss < best:
                    best, kept = miss, tried
                if best <= 1:
                    break
            assert kept is not None
            states.append(kept[0])
            actions.append(kept[1])
    return Filled(np.array(states).astype(states_type), np.array(actions), made)


def arrival_miss(driver: Driver, missed: np.ndarray, sigma: np.ndarray, plane: list[int]) -> float:
    """The larger of both misses, as shares of their limits: the rule of `augment.verdicts`, at most 1 if arrived."""
    moving = sigma > 0
    jump = math.sqrt(np.square(missed[moving] / sigma[moving]).mean()) / max(driver.jump, 1e-12)
    if driver.jump_xy is None:
        return jump
    far = float(np.linalg.norm(missed[plane]) / np.linalg.norm(sigma[plane]))
    return max(jump, far / max(driver.jump_xy, 1e-12))


def _drive(
    driver: Driver,
    world: Any,
    guide: Guide,
    expert: AntExpert | None,
    gap: Gap,
    steps: int,
    plane: list[int],
    generator: np.random.Generator,
    actions_type: Any,
) -> tuple[np.ndarray, np.ndarray]:
    world.put(gap.start)
    target = np.asarray(gap.target, np.float64)[plane]
    noise = generator.normal(0.0, driver.noise, (steps, 2 if expert is None else 8))
    states, actions = [np.asarray(gap.start, np.float64)], []
    for step in range(steps):
        here = states[-1]
        x, y, in_sight = guide.towards(here[plane], target)
        away = np.array([x, y]) - here[plane]
        if expert is None:
            action = _point_action(away, in_sight, steps - step, noise[step])
        else:
            action = expert(here[2:], away / (np.linalg.norm(away) + 1e-6)) + noise[step]
        action = np.clip(action, -1.0, 1.0).astype(actions_type)
        actions.append(action)
        states.append(world.step(action))
    return np.array(states), np.array(actions)


def _point_action(away: np.ndarray, in_sight: bool, left: int, noise: np.ndarray) -> np.ndarray:
    """At full pace, or slower where the target is in sight and would be reached too early."""
    length = float(np.linalg.norm(away)) + 1e-12
    if left <= QUIET_STEPS and in_sight:
        return away / (POINT_REACH * left)  # the box allows more than length one on a diagonal
    pace = min(1.0, length / (POINT_REACH * left)) if in_sight else 1.0
    return away / length * pace + noise
