"""Walls of the mazes that tasks are set in, so that a picture needs no environment.

OGBench's maps are copied as facts; a test builds the environments and compares. D4RL's stand in `tasks.d4rl`.
"""

from __future__ import annotations

import numpy as np

from astro_rl.report.story import Walls
from astro_rl.tasks.d4rl import MAZE_SCALE, MAZES
from astro_rl.tasks.goals import MAZE_UNIT, cell_center
from astro_rl.tasks.task import Task

OGBENCH_MAPS: dict[str, tuple[str, ...]] = {
    "arena": (
        "########",
        "#......#",
        "#......#",
        "#......#",
        "#......#",
        "#......#",
        "#......#",
        "########",
    ),
    "medium": (
        "########",
        "#..##..#",
        "#..#...#",
        "##...###",
        "#..#...#",
        "#.#..#.#",
        "#...#..#",
        "########",
    ),
    "large": (
        "############",
        "#....#.....#",
        "#.##.#.#.#.#",
        "#......#...#",
        "#.####.###.#",
        "#..#.#.....#",
        "##.#.#.#.###",
        "#..#...#...#",
        "############",
    ),
    "giant": (
        "################",
        "#.#......##....#",
        "#.#.##.#.#..##.#",
        "#...#..#...#...#",
        "#.###.######.#.#",
        "#...#...#....#.#",
        "###.#.#..#.#.###",
        "#...#..#...#...#",
        "#.#.#.######.#.#",
        "#.###...#...##.#",
        "#.....#...#....#",
        "################",
    ),
}
"""Rows run along y, columns along x; `#` is a wall."""


def walls_of(task: Task) -> Walls | None:
    """The walls of a task's maze; None where it has none, or none that we know."""
    if task.suite == "d4rl":
        maze = MAZES.get(task.name)
        return None if maze is None else _walls([maze.center(cell) for cell in maze.walls], MAZE_SCALE)
    parts = task.env_id.split("-")
    rows = OGBENCH_MAPS.get(parts[1]) if len(parts) > 1 and task.xy_indices is not None else None
    if rows is None:
        return None
    cells = [(i, j) for i, row in enumerate(rows) for j, mark in enumerate(row) if mark == "#"]
    return _walls([cell_center(cell) for cell in cells], MAZE_UNIT)


def _walls(centers: list[tuple[float, float]], size: float) -> Walls:
    return Walls(np.array(centers, np.float64) - size / 2, size)
