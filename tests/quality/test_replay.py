"""The simulator, put into the state of a recorded row, meets the next row, whoever else is replayed."""

from pathlib import Path

import numpy as np
import pytest

from astro_rl.data import Dataset
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.replay import open_loop, open_loops, replay_steps
from astro_rl.tasks import Task, get_task

Made = dict[str, tuple[Dataset, Task]]
NAMES = ("pointmaze-medium-stitch", "antmaze-medium-stitch")
# Worst of 3,000 rows: point 1.9e-6 (half of float32's spacing at 20), ant 3.7e-6, in velocities of about 10.
TOLERANCE = {"pointmaze-medium-stitch": 4e-6, "antmaze-medium-stitch": 2e-5}


@pytest.mark.parametrize("name", NAMES)
def test_real_rows_are_met(made: Made, name: str) -> None:
    dataset, task = made[name]
    rows = np.random.default_rng(0).permutation(dataset.transition_rows())[:300]
    rows = np.concatenate([dataset.offsets[:-1], rows])  # first rows hold quaternions that are not unit
    met = replay_steps(task, dataset.observations[rows], dataset.actions[rows])
    assert np.abs(met - dataset.observations[rows + 1]).max() < TOLERANCE[name]
    assert np.abs(met - dataset.observations[rows]).max() > 0.1, "the rows move"


def test_a_row_does_not_depend_on_what_was_replayed_before(made: Made) -> None:
    dataset, task = made["antmaze-medium-stitch"]
    rows = dataset.transition_rows()[:40]
    alone = replay_steps(task, dataset.observations[rows], dataset.actions[rows])
    backwards = replay_steps(task, dataset.observations[rows[::-1]], dataset.actions[rows[::-1]])
    np.testing.assert_array_equal(alone, backwards[::-1])


def test_processes_give_the_same_bytes(made: Made) -> None:
    dataset, task = made["pointmaze-medium-stitch"]
    rows = dataset.transition_rows()[:1200]
    here = replay_steps(task, dataset.observations[rows], dataset.actions[rows])
    told: list[tuple[int, int]] = []
    there = replay_steps(
        task,
        dataset.observations[rows],
        dataset.actions[rows],
        workers=2,
        progress=lambda done, total: told.append((done, total)),
    )
    np.testing.assert_array_equal(here, there)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_open_loop_follows_a_recording_and_any_lengths_go_together(made: Made) -> None:
    dataset, task = made["pointmaze-medium-stitch"]
    first, second = dataset[0], dataset[1]
    whole = open_loop(task, first.observations[0], first.actions)
    assert np.abs(whole - first.observations).max() < 1e-5, "200 steps: the point does not magnify rounding"
    starts = np.array([first.observations[0], second.observations[5]])
    both = open_loops(task, starts, [first.actions[:30], second.actions[5:6]])
    assert [len(found) for found in both] == [31, 2]
    np.testing.assert_array_equal(both[0], whole[:31])


def test_what_cannot_be_replayed_is_refused(made: Made) -> None:
    dataset, task = made["pointmaze-medium-stitch"]
    state, action = np.array(dataset.observations[:3]), np.array(dataset.actions[:3])
    with pytest.raises(DataError, match="2 numbers a row"):
        replay_steps(get_task("antmaze-medium-stitch"), state, np.zeros((3, 8)))
    state[1] = np.nan
    with pytest.raises(DataError, match="1 of 3 rows"):
        replay_steps(task, state, action)
    with pytest.raises(UnavailableError, match="heading"):
        replay_steps(get_task("humanoidmaze-medium-stitch"), np.zeros((1, 69)), np.zeros((1, 21)))


def test_a_state_that_blows_up_leaves_no_file_and_is_far_off(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, task = made["antmaze-medium-stitch"]
    monkeypatch.chdir(tmp_path)
    wild = np.array(dataset.observations[:2], np.float64)
    wild[0, 15:] = 1e9
    met = replay_steps(task, wild, dataset.actions[:2])
    assert np.abs(met[0] - wild[0]).max() > 1e3
    assert np.abs(met[1] - dataset.observations[2]).max() < 2e-5, "the next row is as if nothing had happened"
    assert list(tmp_path.iterdir()) == []
