"""Cells of OGBench's mazes: where episodes start and end, and which way an expert is sent."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

Cell = tuple[int, int]
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1))
"""In OGBench's order, which decides between two neighbours that are equally near."""


def free_cells(walls: Bool[np.ndarray, "rows columns"]) -> list[Cell]:
    return [(int(i), int(j)) for i, j in np.argwhere(~walls)]


def vertex_cells(walls: Bool[np.ndarray, "rows columns"]) -> list[Cell]:
    """Free cells that are no mere stretch of corridor: corners, junctions, dead ends. Goals lie there."""
    chosen = []
    for i, j in free_cells(walls):
        up, down, left, right = walls[i - 1, j], walls[i + 1, j], walls[i, j - 1], walls[i, j + 1]
        along_column = not up and not down and left and right
        along_row = not left and not right and up and down
        if not (along_column or along_row):
            chosen.append((i, j))
    return chosen


def steps_from(walls: Bool[np.ndarray, "rows columns"], start: Cell) -> Int[np.ndarray, "rows columns"]:
    """Moves from `start` to each cell through free cells; -1 for walls and what cannot be reached."""
    steps = np.full(walls.shape, -1)
    steps[start] = 0
    waiting = deque([start])
    while waiting:
        i, j = waiting.popleft()
        for di, dj in _NEIGHBOURS:
            cell = (i + di, j + dj)
            if _inside(walls, cell) and not walls[cell] and steps[cell] == -1:
                steps[cell] = steps[i, j] + 1
                waiting.append(cell)
    return steps


def cells_at(walls: Bool[np.ndarray, "rows columns"], start: Cell, distance: int) -> list[Cell]:
    return [(int(i), int(j)) for i, j in np.argwhere(steps_from(walls, start) == distance)]


class SubgoalTable:
    """OGBench's oracle sub-goal, the centre of the next cell on a shortest way: looked up and not searched.

    OGBench searches the maze breadth-first at every step, which takes half as long as a pointmaze step. The
    answer depends on two cells only, so it is worked out once for each goal cell.
    """

    def __init__(self, maze: Any) -> None:
        self._maze = maze
        self._walls: np.ndarray = maze.maze_map == 1
        self._next: dict[Cell, list[list[tuple[float, float]]]] = {}

    def subgoal(self, xy: Any, goal_xy: Any) -> tuple[float, float]:
        goal = self._maze.xy_to_ij(goal_xy)
        if goal not in self._next:
            self._next[goal] = self._centres_towards(goal)
        i, j = self._maze.xy_to_ij(xy)
        return self._next[goal][i][j]

    def _centres_towards(self, goal: Cell) -> list[list[tuple[float, float]]]:
        steps = steps_from(self._walls, goal)
        rows, columns = steps.shape
        return [
            [self._maze.ij_to_xy(self._next_cell(steps, (i, j))) for j in range(columns)] for i in range(rows)
        ]

    def _next_cell(self, steps: np.ndarray, cell: Cell) -> Cell:
        best = cell
        for di, dj in _NEIGHBOURS:
            near = (cell[0] + di, cell[1] + dj)
            if _inside(self._walls, near) and not self._walls[near] and steps[near] < steps[best]:
                best = near
        return best


def _inside(walls: np.ndarray, cell: Cell) -> bool:
    return 0 <= cell[0] < walls.shape[0] and 0 <= cell[1] < walls.shape[1]
