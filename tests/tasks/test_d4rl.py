"""D4RL's facts: scores, goal squares, and the goal behind a file's labels."""

import numpy as np
import pytest

from astro_rl.errors import AstroError, DataError
from astro_rl.tasks import get_task, normalised_score, relabel, with_labelled_goal
from astro_rl.tasks.d4rl import MAZES
from astro_rl.tasks.rewards import Reach
from tests.tasks.test_relabel import walks


def test_normalised_scores() -> None:
    assert normalised_score("antmaze-large-play-v2", 0.25) == 25.0
    assert normalised_score("hopper-medium-replay-v2", 3234.3) == pytest.approx(100.0)
    assert normalised_score("ant-medium-v2", -325.6) == pytest.approx(0.0)
    assert normalised_score("maze2d-umaze-dense-v1", 193.66285642381482) == pytest.approx(100.0)
    assert normalised_score("maze2d-umaze-v1", 161.86) == pytest.approx(100.0)
    with pytest.raises(AstroError, match="reference returns"):
        normalised_score("carla-lane-v0", 1.0)


def test_mazes_are_closed_and_their_goals_are_d4rls() -> None:
    """D4RL's goal cells lie at (0, 8), (20, 20) and (32, 24)."""
    corners = {
        "antmaze-umaze-v2": (0, 8),
        "antmaze-medium-play-v2": (20, 20),
        "antmaze-large-play-v2": (32, 24),
    }
    for name, corner in corners.items():
        maze = MAZES[name]
        assert maze.goal_corner == corner and maze.center(maze.cell("R")) == (0, 0)
        rows, columns = len(maze.rows), len(maze.rows[0])
        border = {
            (i, j) for i in range(rows) for j in range(columns) if i in (0, rows - 1) or j in (0, columns - 1)
        }
        assert border <= set(maze.walls)
        assert get_task(name).max_episode_steps == (700 if "umaze" in name else 1000)


@pytest.mark.parametrize("name", ["antmaze-umaze-v2", "antmaze-large-diverse-v2"])
def test_the_goal_behind_labels_is_found(name: str) -> None:
    task = get_task(name)
    rng = np.random.default_rng(0)
    corner = np.array(MAZES[name].goal_corner)
    goal = corner + np.array([1.31, 0.12])
    observations = np.zeros((4000, 29), dtype=np.float32)
    observations[:, :2] = corner + rng.uniform(-2, 3.5, (4000, 2))
    truth = Reach((0, 1), (float(goal[0]), float(goal[1])), 0.5)
    labelled = relabel(walks(observations, (2000, 2000)), task)
    entered = np.append(truth.success(observations)[1:], False)
    entered[labelled.end_rows] = False
    found = with_labelled_goal(task, labelled.with_rewards(entered - np.float32(1), entered))
    assert isinstance(found.rewards, Reach)
    assert np.linalg.norm(np.array(found.rewards.goal) - goal) < 0.02
    agree = np.mean(relabel(labelled, found).terminated == entered)
    assert agree > 0.999 > np.mean(labelled.terminated == entered)


def test_without_labels_there_is_no_goal_to_find() -> None:
    task = get_task("antmaze-umaze-v2")
    unlabelled = walks(np.zeros((10, 29), dtype=np.float32), (10,))
    with pytest.raises(DataError, match="its goal cannot be found"):
        with_labelled_goal(task, unlabelled)
    with pytest.raises(AstroError, match="Only D4RL"):
        with_labelled_goal(get_task("antmaze-large-stitch"), unlabelled)
