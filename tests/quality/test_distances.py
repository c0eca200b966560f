"""Learned distances against the truth: speed, errors and ranks by hand, and who wins where walls stand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.distances import (
    agreements,
    best_line,
    calibration_of,
    distance_report,
    spearman,
    travel_speed,
)
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.tasks import get_task

# Two corridors (y = 1 and y = 3) behind one wall, joined at the right end only: places opposite each other are 2 apart
# as the crow flies, and up to 20 on foot.
DRAWING = """
############
#..........#
##########.#
#..........#
############
"""
WALLS = np.array([[mark == "#" for mark in line] for line in DRAWING.split()])
GRID = MazeGrid.of_walls(WALLS)
TASK = replace(get_task("pointmaze-medium-stitch"), xy_indices=(0, 1))
PACE = 0.05


def corridor_walks(count: int = 40, rows: int = 60, seed: int = 0) -> Dataset:
    """Walks along either corridor at `PACE` a step; every fourth trajectory stays where it is."""
    generator = np.random.default_rng(seed)
    walks = []
    for number in range(count):
        start, way = generator.uniform(1, 7), PACE * np.arange(rows) * (number % 4 > 0)
        walks.append(np.stack([start + way, np.full(rows, generator.choice([1.0, 3.0]))], axis=1))
    observations = np.concatenate(walks).astype(np.float32)
    return from_arrays(
        observations, np.zeros((len(observations), 1), np.float32), offsets=np.arange(count + 1) * rows
    )


class Oracle:
    """Knows the maze: true steps, all too long by a factor."""

    def __init__(self, factor: float = 1.0, far: float = np.inf) -> None:
        self.factor, self.far = factor, far

    def steps(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.minimum(self.factor * GRID.distance(a[:, :2], b[:, :2]) / PACE, self.far)

    def saturated(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean(self.steps(a, b) >= self.far))


class Straight:
    """Sees no walls."""

    def steps(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.norm(a - b, axis=-1) / PACE

    def saturated(self, a: np.ndarray, b: np.ndarray) -> float:
        return 0.0


def test_speed_is_that_of_windows_on_their_way() -> None:
    speed = travel_speed(corridor_walks(), GRID, [0, 1], np.random.default_rng(0))
    assert speed.path == pytest.approx(PACE, rel=1e-3)
    assert speed.progress == pytest.approx(PACE, rel=1e-3)
    assert speed.moving == pytest.approx(0.75, abs=0.01), "one trajectory in four rests"


def test_zigzags_lengthen_the_path_and_not_the_progress() -> None:
    """Steps of 0.04 along x and ±0.03 along y: 0.05 of path, 0.04 of progress."""
    there = np.stack([1.2 + 0.04 * np.arange(50), 1.0 + 0.03 * (np.arange(50) % 2)], axis=1)
    walk = from_arrays(there.astype(np.float32), np.zeros((50, 1), np.float32), offsets=[0, 50])
    speed = travel_speed(walk, GRID, [0, 1], np.random.default_rng(0))
    assert speed.path == pytest.approx(0.05, rel=1e-3)
    assert speed.progress == pytest.approx(0.04, rel=1e-3)


def test_who_knows_the_maze_agrees_and_euclid_does_not_behind_walls() -> None:
    report = distance_report(Oracle(), corridor_walks(), TASK, pairs=2_000, grid=GRID)
    found = report.agreement["training"]
    assert found["all"]["learned"].rank_correlation == pytest.approx(1.0, abs=1e-6)
    assert found["all"]["learned"].relative_error == pytest.approx(0.0, abs=0.01)
    behind = found["walled"]["euclidean"]
    assert behind.rank_correlation is not None
    assert behind.rank_correlation < 0.5
    assert behind.relative_error is not None
    assert behind.relative_error > 0.15
    in_sight = found["in_sight"]["euclidean"].rank_correlation
    assert in_sight is not None
    assert in_sight > 0.99
    counts = report.counts["training"]
    assert counts["walled"] + counts["in_sight"] == counts["all"]
    assert counts["all"] + counts["left_out"] == 2_000


def test_a_learned_distance_that_sees_no_walls_is_no_better_than_euclid() -> None:
    behind = distance_report(Straight(), corridor_walks(), TASK, pairs=1_000, grid=GRID).agreement["training"]
    learned, euclidean = behind["walled"]["learned"], behind["walled"]["euclidean"]
    assert learned.rank_correlation == pytest.approx(euclidean.rank_correlation, abs=1e-3)
    assert learned.relative_error is not None
    assert learned.relative_error > 0.5


def test_a_scale_that_is_off_is_an_error_and_a_fitted_line_takes_it_away() -> None:
    found = distance_report(Oracle(1.3), corridor_walks(), TASK, pairs=1_000, grid=GRID).agreement["training"]
    assert found["all"]["learned"].ratio == pytest.approx(1.3, rel=0.01)
    assert found["all"]["learned"].relative_error == pytest.approx(0.3, abs=0.01)
    assert found["all"]["learned"].rank_correlation == pytest.approx(1.0, abs=1e-6)
    assert found["all"]["learned_fitted"].relative_error == pytest.approx(0.0, abs=0.01)


def test_held_out_trajectories_saturation_and_json() -> None:
    report = distance_report(
        Oracle(far=150.0),
        corridor_walks(),
        TASK,
        pairs=500,
        held_out=corridor_walks(count=8, seed=5),
        grid=GRID,
    )
    assert set(report.agreement) == {"training", "held_out"}
    assert 0 < report.saturated["training"] < 1
    saved = json.loads(json.dumps(report.to_json()))
    walled = saved["agreement"]["held_out"]["walled"]
    assert walled["learned"]["rank_correlation"] > walled["euclidean"]["rank_correlation"]
    again = distance_report(Oracle(far=150.0), corridor_walks(), TASK, pairs=500, grid=GRID)
    assert again.agreement["training"] == report.agreement["training"], "the same seed draws the same pairs"


def test_errors_by_hand() -> None:
    """Truth 10, 20, 200; measured 11, 15, 100: errors 0.1, 0.25, 0.5. Near ones: the first two, median 0.175."""
    truth, measured = np.array([10.0, 20.0, 200.0]), np.array([11.0, 15.0, 100.0])
    found = agreements(measured, truth, truth, {"all": np.ones(3, bool), "none": np.zeros(3, bool)})
    learned = found["all"]["learned"]
    assert learned.relative_error == pytest.approx(0.25)
    assert learned.near_relative_error == pytest.approx(0.175)
    assert learned.ratio == pytest.approx(0.75)
    assert found["none"]["learned"].relative_error is None


def test_ranks_share_ties_and_lines_resist_outliers() -> None:
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / √(4.5 · 5)
    assert spearman(np.array([1.0, 2.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(
        4.5 / (4.5 * 5) ** 0.5
    )
    assert spearman(np.ones(4), np.arange(4.0)) is None
    measured = np.linspace(1, 10, 50)
    truth = 3 * measured + 2
    spoiled = truth.copy()
    spoiled[::10] *= 2
    np.testing.assert_allclose(best_line(measured, spoiled), truth, rtol=0.02)


def test_calibration_counts_every_pair_once() -> None:
    truth = np.array([5.0, 30.0, 60.0, 150.0, 1000.0])
    table = calibration_of(2 * truth, truth)
    assert sum(row["pairs"] for row in table) == 5
    assert [row["median"] / row["true"] for row in table] == pytest.approx([2.0] * 5)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(UnavailableError, match="not set in a maze"):
        distance_report(Oracle(), corridor_walks(), get_task("scene-play"))
    idle = from_arrays(np.ones((60, 2), np.float32), np.zeros((60, 1), np.float32), offsets=[0, 60])
    with pytest.raises(DataError, match="stays where it is"):
        distance_report(Oracle(), idle, TASK, grid=GRID)
    with pytest.raises(DataError, match="long enough"):
        distance_report(Oracle(), corridor_walks(rows=10), TASK, grid=GRID)
