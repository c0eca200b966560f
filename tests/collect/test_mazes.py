"""Cells, distances and sub-goals, against mazes drawn by hand and against OGBench's own search."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.collect.mazes import SubgoalTable, cells_at, free_cells, steps_from, vertex_cells
from astro_rl.envs.build import make_env

#  0123456
CORRIDORS = """
#######
#.....#
###.###
###.#.#
#######
"""


def walls(drawing: str) -> np.ndarray:
    return np.array([[mark == "#" for mark in line] for line in drawing.split()])


def test_vertices_are_free_cells_that_are_no_corridor() -> None:
    assert vertex_cells(walls(CORRIDORS)) == [(1, 1), (1, 3), (1, 5), (3, 3), (3, 5)]
    assert len(free_cells(walls(CORRIDORS))) == 8


def test_steps_count_moves_through_free_cells() -> None:
    steps = steps_from(walls(CORRIDORS), (1, 1))
    assert steps[1].tolist() == [-1, 0, 1, 2, 3, 4, -1]
    assert steps[3, 3] == 4
    assert steps[3, 5] == -1, "walled in"
    assert cells_at(walls(CORRIDORS), (1, 1), 4) == [(1, 5), (3, 3)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=4, max_size=4), st.data())
def test_neighbours_of_reached_cells_are_one_move_nearer_or_further(inside, data) -> None:
    maze = np.pad(np.array(inside), 1, constant_values=True)
    free = free_cells(maze)
    if not free:
        return
    steps = steps_from(maze, data.draw(st.sampled_from(free)))
    for i, j in free:
        near = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        for cell in near:
            if not maze[cell]:
                assert abs(steps[cell] - steps[i, j]) == 1 or steps[cell] == steps[i, j] == -1
        if steps[i, j] > 0:
            assert any(steps[cell] == steps[i, j] - 1 for cell in near)


@pytest.mark.parametrize("maze_type", ["medium", "large", "giant", "teleport"])
def test_table_gives_ogbench_subgoal_from_every_cell(maze_type: str) -> None:
    maze: Any = make_env(f"pointmaze-{maze_type}-v0").unwrapped
    table = SubgoalTable(maze)
    rng = np.random.default_rng(0)
    cells = [(i, j) for i in range(maze.maze_map.shape[0]) for j in range(maze.maze_map.shape[1])]
    goals = free_cells(maze.maze_map == 1)
    for goal in [goals[k] for k in rng.choice(len(goals), size=min(12, len(goals)), replace=False)]:
        for start in cells:
            xy, goal_xy = (
                np.array(maze.ij_to_xy(cell)) + rng.uniform(-1.9, 1.9, 2) for cell in (start, goal)
            )
            expected, _ = maze.get_oracle_subgoal(xy, goal_xy)
            assert table.subgoal(xy, goal_xy) == tuple(expected)
