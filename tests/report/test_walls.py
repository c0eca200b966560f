"""The mazes' walls against the environments'."""

import numpy as np
import pytest

from astro_rl.report.walls import OGBENCH_MAPS, walls_of
from astro_rl.tasks import get_task


@pytest.mark.parametrize("maze", ["medium", "large", "giant"])
def test_walls_are_those_that_ogbench_builds(maze: str) -> None:
    pytest.importorskip("ogbench")
    from astro_rl.envs.build import make_env

    environment = make_env(get_task(f"pointmaze-{maze}-stitch-task1").env_id)
    built = np.asarray(environment.unwrapped.maze_map)  # pyright: ignore[reportAttributeAccessIssue]
    environment.close()
    ours = np.array([[mark == "#" for mark in row] for row in OGBENCH_MAPS[maze]])
    np.testing.assert_array_equal(ours, built == 1)


def test_no_wall_stands_on_a_goal() -> None:
    task = get_task("antmaze-large-stitch-task1")
    walls = walls_of(task)
    assert walls is not None
    goal = np.array(task.rewards.goal)  # pyright: ignore[reportAttributeAccessIssue]
    inside = (walls.corners <= goal).all(1) & (goal < walls.corners + walls.size).all(1)
    assert not inside.any()
