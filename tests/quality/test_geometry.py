"""Appendix C's two equations on paths whose angles can be read off."""

import numpy as np
import pytest

from astro_rl.data import from_arrays
from astro_rl.errors import ConfigError
from astro_rl.quality.geometry import curvature, dataset_geometry, direction_changes, path_geometry


def test_turns_are_signed_angles_between_consecutive_steps() -> None:
    # East, north (a quarter to the left), east again (a quarter to the right), then straight on, then back.
    path = np.array([(0, 0), (1, 0), (1, 1), (2, 1), (5, 1), (4, 1)], float)
    assert direction_changes(path) == pytest.approx([np.pi / 2, -np.pi / 2, 0.0, np.pi])
    diagonal = np.array([(0, 0), (1, 0), (2, 1)], float)
    assert direction_changes(diagonal) == pytest.approx([np.pi / 4])
    assert direction_changes(diagonal * [1, -1]) == pytest.approx([-np.pi / 4])


def test_turning_back_is_half_a_circle_to_the_left_whatever_the_direction() -> None:
    for heading in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        path = np.array([(0.0, 0.0), heading, (0.0, 0.0)])
        assert direction_changes(path) == pytest.approx([np.pi])


def test_curvature_is_the_second_difference_over_the_squared_steps() -> None:
    # (0,0) (1,0) (1,2): second difference (−1, 2), norm √5; steps 1 and 2, squares 1 + 4.
    assert curvature(np.array([(0, 0), (1, 0), (1, 2)], float)) == pytest.approx([np.sqrt(5) / 5])
    # Straight at even speed: 0. Straight at uneven speed is not: (0) (1) (3) has |1| / (1 + 4).
    assert curvature(np.array([(0, 0), (2, 0), (4, 0)], float)) == pytest.approx([0.0])
    assert curvature(np.array([(0, 0), (1, 0), (3, 0)], float)) == pytest.approx([0.2])
    # Back and forth with steps of ½: ‖−1‖ / (¼ + ¼) = 2 = 1 / step, the most that even steps can have.
    assert curvature(np.array([(0, 0), (0.5, 0), (0, 0)], float)) == pytest.approx([2.0])


def test_who_stands_still_has_no_heading() -> None:
    path = np.array([(0, 0), (0, 0), (1, 0), (1, 0), (1, 0)], float)
    assert np.isnan(direction_changes(path)).all()
    # κ needs only one of the two steps to have a length: 1 / 1.
    np.testing.assert_allclose(curvature(path), [1.0, 1.0, np.nan])


def test_many_paths_at_once_are_each_alone() -> None:
    paths = np.random.default_rng(0).normal(size=(4, 3, 9, 2))
    together = direction_changes(paths), curvature(paths)
    assert together[0].shape == together[1].shape == (4, 3, 7)
    np.testing.assert_array_equal(together[0][2, 1], direction_changes(paths[2, 1]))
    np.testing.assert_array_equal(together[1][2, 1], curvature(paths[2, 1]))


def test_single_precision_far_from_the_origin_is_as_good_as_its_digits() -> None:
    """κ of a straight line of steps of 2⁻⁴ at x = 2¹²: exact in float32, and still 0."""
    path = np.stack([2**12 + np.arange(9) / 16, np.zeros(9)], axis=1).astype(np.float32)
    assert not curvature(path).any()


def test_a_datasets_figures_are_means_of_each_trajectory_and_cross_no_end() -> None:
    corner = [(0, 0), (1, 0), (1, 1)]
    straight = [(5, 5), (6, 5), (7, 5), (8, 5)]
    still = [(2, 2), (2, 2), (2, 2)]
    rows = np.array([*corner, *straight, *still], np.float32)
    observations = np.concatenate([np.full((10, 1), 7.0, np.float32), rows], axis=1)
    dataset = from_arrays(observations, np.zeros((10, 1), np.float32), offsets=[0, 3, 7, 10])
    found = dataset_geometry(dataset, (1, 2))
    np.testing.assert_allclose(found.turning, [np.pi / 2, 0.0, np.nan])
    # (0,0) (1,0) (1,1): ‖(−1, 1)‖ / 2.
    np.testing.assert_allclose(found.bending, [np.sqrt(2) / 2, 0.0, np.nan])
    assert found.still == pytest.approx(1 / 4), "one of four places stands still"
    told = found.summary()
    assert told.paths == 3
    assert told.turning == pytest.approx(np.pi / 4) and told.turning_std == pytest.approx(np.pi / 4)
    assert told.bending == pytest.approx(np.sqrt(2) / 4)


def test_only_the_places_asked_for_count() -> None:
    path = np.array([(0, 0), (1, 0), (1, 1), (1, 2), (0, 2)], float)  # turns at rows 1 and 3
    among = [np.array([True, True, True, False, False])]
    assert path_geometry([path], among=among).turning == pytest.approx([np.pi / 4])
    assert path_geometry([path]).turning == pytest.approx([np.pi / 3])


def test_a_longer_stride_sees_where_a_swaying_path_heads() -> None:
    x = np.arange(40.0)
    swaying = np.stack([x, 0.5 * (x % 2)], axis=1)
    assert path_geometry([swaying]).turning[0] > 0.9
    assert path_geometry([swaying], stride=2).turning[0] == 0.0
    with pytest.raises(ConfigError, match="less than a step"):
        path_geometry([swaying], stride=0)


def test_nothing_moves() -> None:
    told = path_geometry([np.zeros((5, 2)), np.zeros((2, 2))]).summary()
    assert told.turning is None and told.bending is None and told.still == 1.0
