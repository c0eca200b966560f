"""Facts of D4RL's antmazes: maps, starts, where goals are drawn, labels, and how returns become scores.

D4RL draws a new goal for every episode of a v2 evaluation, from a square of 1.5 units at the goal cell. The
rewards in its files were computed for *one* such draw per file, which no file records. So a task's goal here
is the square's centre, and `with_labelled_goal` finds the draw behind a file's own labels where there are
any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, DataError
from astro_rl.tasks.rewards import Reach
from astro_rl.tasks.task import Task

MAZE_SCALE = 4.0
GOAL_RADIUS = 0.5
GOAL_SPREAD = (1.0, 0.5)
"""A goal is its cell's centre plus a uniform draw from [0, 1] plus another from [0, 0.5], in x and in y."""


@dataclass(frozen=True)
class Maze:
    """`#` is a wall, `R` the start and the origin of coordinates, `G` the goal's cell."""

    rows: tuple[str, ...]
    max_episode_steps: int

    def cell(self, mark: str) -> tuple[int, int]:
        """Row and column of the only cell with this mark."""
        return next((i, row.index(mark)) for i, row in enumerate(self.rows) if mark in row)

    def center(self, cell: tuple[int, int]) -> tuple[float, float]:
        """x and y of a cell's centre."""
        start_row, start_column = self.cell("R")
        return (cell[1] - start_column) * MAZE_SCALE, (cell[0] - start_row) * MAZE_SCALE

    @property
    def goal_corner(self) -> tuple[float, float]:
        """The lower corner of the square that goals are drawn from."""
        return self.center(self.cell("G"))

    @property
    def goal_center(self) -> tuple[float, float]:
        x, y = self.goal_corner
        return x + sum(GOAL_SPREAD) / 2, y + sum(GOAL_SPREAD) / 2

    @property
    def walls(self) -> list[tuple[int, int]]:
        return [(i, j) for i, row in enumerate(self.rows) for j, mark in enumerate(row) if mark == "#"]


_UMAZE = Maze(("#####", "#R..#", "###.#", "#G..#", "#####"), 700)
_MEDIUM = Maze(
    (
        "########",
        "#R.##..#",
        "#..#...#",
        "##...###",
        "#..#...#",
        "#.#..#.#",
        "#...#.G#",
        "########",
    ),
    1000,
)
_LARGE = Maze(
    (
        "############",
        "#R...#.....#",
        "#.##.#.#.#.#",
        "#......#...#",
        "#.####.###.#",
        "#..#.#.....#",
        "##.#.#.#.###",
        "#..#...#.G.#",
        "############",
    ),
    1000,
)

MAZES: Mapping[str, Maze] = MappingProxyType(
    {
        "antmaze-umaze-v2": _UMAZE,
        "antmaze-umaze-diverse-v2": _UMAZE,
        "antmaze-medium-play-v2": _MEDIUM,
        "antmaze-medium-diverse-v2": _MEDIUM,
        "antmaze-large-play-v2": _LARGE,
        "antmaze-large-diverse-v2": _LARGE,
    }
)
"""The evaluation maze of each dataset. Play and diverse differ in their data only."""

# Returns of a random and of an expert policy, as D4RL publishes them; scores run from 0 to 100 between the
# two.
_REFERENCES = {
    "antmaze": (0.0, 1.0),
    "halfcheetah": (-280.178953, 12135.0),
    "hopper": (-20.272305, 3234.3),
    "walker2d": (1.629008, 4592.3),
    "ant": (-325.6, 3879.7),
    "kitchen": (0.0, 4.0),
    "pen": (96.262799, 3076.8331017826877),
    "hammer": (-274.856578, 12794.134825156867),
    "door": (-56.512833, 2880.5693087298737),
    "relocate": (-6.425911, 4233.877797728884),
    "maze2d-open": (0.01, 20.66),
    "maze2d-umaze": (23.85, 161.86),
    "maze2d-medium": (13.13, 277.39),
    "maze2d-large": (6.7, 273.99),
    "maze2d-open-dense": (11.17817, 27.166538620695782),
    "maze2d-umaze-dense": (68.537689, 193.66285642381482),
    "maze2d-medium-dense": (44.264742, 297.4552547777125),
    "maze2d-large-dense": (30.569041, 303.4857382709002),
}


def normalised_score(name: str, episode_return: float) -> float:
    """D4RL's score of an undiscounted return, in percent.

    The return is the environment's own: in antmaze 1 for an episode that arrives and 0 otherwise, not the
    shifted reward − 1 that learners train on.
    """
    parts = name.split("-")
    for length in range(len(parts), 0, -1):
        reference = _REFERENCES.get("-".join(parts[:length]))
        if reference is not None:
            low, high = reference
            return 100.0 * (episode_return - low) / (high - low)
    raise AstroError(
        "D4RL publishes no reference returns for this name.",
        field="name",
        found=name,
        expected=f"a name that begins with one of {', '.join(sorted(_REFERENCES))}",
    )


def with_labelled_goal(task: Task, dataset: Dataset) -> Task:
    """The task with the goal that the dataset's own labels were made for, found from which states were
    rewarded.

    A transition is labelled by the state it enters. The goal is the point of the goal square that contradicts
    the fewest labels: rewarded states lie within its radius, all others outside.
    """
    if not isinstance(task.rewards, Reach) or task.name not in MAZES:
        raise AstroError("Only D4RL antmazes have a goal to be found.", found=task.name)
    steps = dataset.transition_rows()
    entered = np.asarray(dataset.observations[steps + 1][:, list(task.rewards.xy_indices)], dtype=np.float64)
    rewarded = np.asarray(dataset.terminated[steps])
    if not rewarded.any():
        raise DataError(
            "No state of this dataset is labelled as a success, so its goal cannot be found.",
            field="terminated",
            expected="at least one terminated transition",
            fix="use the task's own goal, the centre of the square that D4RL draws goals from",
        )
    corner = np.array(MAZES[task.name].goal_corner)
    # Only states that some goal of the square could reward can tell one goal from another.
    near = np.all(
        np.abs(entered - corner - sum(GOAL_SPREAD) / 2) < sum(GOAL_SPREAD) / 2 + GOAL_RADIUS, axis=1
    )
    goal, width = corner + sum(GOAL_SPREAD) / 2, sum(GOAL_SPREAD) / 2
    for _ in range(8):
        offsets = np.linspace(-width, width, 13)
        candidates = goal + np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
        wrong = [_wrong_labels(candidate, entered[near], rewarded[near]) for candidate in candidates]
        # Many candidates may tie; their mean is the safest of them.
        goal, width = candidates[np.array(wrong) == min(wrong)].mean(axis=0), width / 3
    return replace(task, rewards=replace(task.rewards, goal=(float(goal[0]), float(goal[1]))))


def _wrong_labels(goal: np.ndarray, entered: np.ndarray, rewarded: np.ndarray) -> int:
    return int(np.sum((np.linalg.norm(entered - goal, axis=1) <= GOAL_RADIUS) != rewarded))
