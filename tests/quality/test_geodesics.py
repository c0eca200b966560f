"""Shortest paths, worked by hand and against a grid search."""

import heapq
import math

import numpy as np
import pytest

from astro_rl.errors import UnavailableError
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.tasks import get_task


def walls(drawing: str) -> np.ndarray:
    return np.array([[mark == "#" for mark in line] for line in drawing.split()])


# Cell (i, j) has its centre at x = j, y = i.
PILLAR = """
#####
#...#
#.#.#
#...#
#####
"""
TOUCHING = """
####
#.##
##.#
####
"""


def one(grid: MazeGrid, a: tuple[float, float], b: tuple[float, float]) -> float:
    return float(grid.distance(np.array([a], float), np.array([b], float))[0])


def test_a_path_bends_round_the_corners_of_a_pillar() -> None:
    grid = MazeGrid.of_walls(walls(PILLAR))
    assert len(grid.corners) == 4
    assert one(grid, (1, 1), (3, 1)) == pytest.approx(2.0), "in sight: straight"
    # From (1, 2) to (3, 2): to the corner (1.5, 1.5), along the wall to (2.5, 1.5), to the end.
    assert one(grid, (1, 2), (3, 2)) == pytest.approx(2 * math.hypot(0.5, 0.5) + 1, abs=1e-5)
    # From (1, 1) to (3, 3): round one corner, (2.5, 1.5) or its mirror image.
    assert one(grid, (1, 1), (3, 3)) == pytest.approx(2 * math.hypot(1.5, 0.5), abs=1e-5)


def test_units_and_origin_scale_and_shift() -> None:
    grid = MazeGrid.of_walls(walls(PILLAR), unit=4.0, origin=(-4.0, -4.0))
    assert one(grid, (0, 4), (8, 4)) == pytest.approx(4 * (2 * math.hypot(0.5, 0.5) + 1), abs=1e-4)


def test_nothing_passes_between_walls_that_touch_or_out_of_a_wall() -> None:
    grid = MazeGrid.of_walls(walls(TOUCHING))
    assert math.isinf(one(grid, (1, 1), (2, 2)))
    assert math.isinf(one(grid, (1, 1), (2, 1))), "an end inside a wall"


def test_separated_means_that_the_straight_line_meets_a_wall() -> None:
    grid = MazeGrid.of_walls(walls(PILLAR))
    a = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 1.0], [1.0, 1.4], [1.0, 1.6]])
    b = np.array([[3.0, 1.0], [3.0, 2.0], [3.0, 3.0], [3.0, 1.4], [3.0, 1.6]])
    assert grid.separated_by_wall(a, b).tolist() == [False, True, True, False, True]


def test_points_are_a_grid_over_the_free_cells() -> None:
    points = MazeGrid.of_walls(walls(PILLAR), resolution=0.5).points()
    assert len(points) == 8 * 4
    assert {tuple(p) for p in points[:4]} == {(0.75, 0.75), (1.25, 0.75), (0.75, 1.25), (1.25, 1.25)}


def grid_distances(grid: MazeGrid, start: int) -> np.ndarray:
    """Dijkstra over `points()` with eight neighbours: never shorter than the truth, nor 8.24 % longer plus one
    cell of the grid for every turn."""
    points, step = grid.points(), grid.unit * grid.resolution
    place = {tuple(np.round(p / step * 2).astype(int)): k for k, p in enumerate(points)}
    found = np.full(len(points), np.inf)
    found[start], waiting = 0.0, [(0.0, start)]
    while waiting:
        so_far, at = heapq.heappop(waiting)
        if so_far > found[at]:
            continue
        x, y = np.round(points[at] / step * 2).astype(int)
        for dx in (-2, 0, 2):
            for dy in (-2, 0, 2):
                sides = [(x + dx, y), (x, y + dy), (x + dx, y + dy)]
                if not all(side in place for side in sides):
                    continue
                near, length = place[sides[2]], so_far + step * math.hypot(dx / 2, dy / 2)
                if length < found[near]:
                    found[near] = length
                    heapq.heappush(waiting, (length, near))
    return found


def test_distances_agree_with_a_search_over_the_grid_of_a_real_maze() -> None:
    grid = MazeGrid.of_task(get_task("pointmaze-medium-stitch"), resolution=0.25)
    points = grid.points()
    assert np.allclose(points.min(axis=0), -1.5)
    assert one(grid, (0.0, 0.0), (20.0, 20.0)) == pytest.approx(one(grid, (20.0, 20.0), (0.0, 0.0)))
    for start in (0, 150, 300):
        exact = grid.distance(np.repeat(points[[start]], len(points), axis=0), points)
        searched = grid_distances(grid, start)
        assert np.isfinite(exact).all()
        assert (searched >= exact - 1e-4).all()
        assert (searched <= 1.0824 * exact + 8 * grid.unit * grid.resolution).all()
        in_sight = ~grid.separated_by_wall(np.repeat(points[[start]], len(points), axis=0), points)
        assert 0.1 < in_sight.mean() < 0.9
        np.testing.assert_allclose(
            exact[in_sight], np.linalg.norm(points - points[start], axis=-1)[in_sight], atol=1e-9
        )


def test_d4rl_mazes_have_shortest_paths_and_tables_have_none() -> None:
    grid = MazeGrid.of_task(get_task("antmaze-umaze-v2"))
    # U-shaped: from the start (0, 0) round both corners of the wall's end at (6, ±2) to the goal's cell (0, 8).
    corner = math.hypot(6.0, 2.0)
    assert one(grid, (0.0, 0.0), (0.0, 8.0)) == pytest.approx(2 * corner + 4, abs=1e-4)
    with pytest.raises(UnavailableError, match="not set in a maze"):
        MazeGrid.of_task(get_task("scene-play"))
