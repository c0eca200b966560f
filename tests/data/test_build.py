"""Datasets from arrays, trajectories and transitions."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.data import from_arrays, from_trajectories, from_transitions
from astro_rl.data.assemble import dataset_of
from astro_rl.errors import ConfigError, DataError

from .strategies import assert_same, plans, small


def test_three_ways_of_saying_where_trajectories_end_agree() -> None:
    expected = small(lengths=(3, 1))
    columns = expected.observations, expected.actions
    terminals = np.array([0, 0, 0, 1, 0, 1], dtype=np.float32)
    ways: list[dict[str, Any]] = [{"offsets": [0, 4, 6]}, {"ends": [4, 6]}, {"terminals": terminals}]
    for way in ways:
        assert_same(from_arrays(*columns, rewards=expected.rewards, **way), expected)


def test_without_flags_the_last_transition_is_truncated() -> None:
    dataset = small(lengths=(3, 1))
    assert dataset.truncated.tolist() == [False, False, True, False, True, False]
    assert not dataset.terminated.any()


def test_a_terminated_last_transition_is_not_truncated_too() -> None:
    dataset = from_arrays(np.zeros((3, 1)), np.zeros((3, 1)), ends=[3], terminated=[0, 1, 0])
    assert dataset.terminated.tolist() == [False, True, False]
    assert not dataset.truncated.any()


def test_arrays_that_need_no_change_are_not_copied() -> None:
    observations = np.zeros((3, 2), np.float32)
    assert from_arrays(observations, np.zeros((3, 1)), ends=[3]).observations is observations


def test_where_trajectories_end_is_said_once() -> None:
    with pytest.raises(ConfigError, match="offsets and ends"):
        from_arrays(np.zeros((3, 1)), np.zeros((3, 1)), ends=[3], offsets=[0, 3])
    with pytest.raises(ConfigError, match="has to be said once"):
        from_arrays(np.zeros((3, 1)), np.zeros((3, 1)))


def test_integer_rewards_are_cast_and_told() -> None:
    dataset = from_arrays(np.zeros((3, 1)), np.zeros((3, 1)), ends=[3], rewards=[0, 1, 0])
    assert dataset.rewards is not None
    assert dataset.rewards.dtype == np.float32
    assert dataset.rewards.tolist() == [0, 1, 0]
    assert dataset.info["changes"] == ["rewards: int64 cast to float32"]


def test_padding_on_end_rows_becomes_zero_and_is_told() -> None:
    actions = np.array([[0.5], [0.25], [np.nan]])
    dataset = from_arrays(np.zeros((3, 1)), actions, ends=[3])
    assert dataset.actions.tolist() == [[0.5], [0.25], [0.0]]
    assert dataset.info["changes"] == ["actions: values that are not finite on end rows set to zero"]
    assert np.isnan(actions[2, 0])


@settings(deadline=None, max_examples=25)
@given(plans())
def test_taking_trajectories_apart_and_together_again(plan: dict[str, Any]) -> None:
    dataset = from_arrays(**plan)
    again = from_trajectories(dataset)
    rows = dataset.transition_rows()
    for name, column in dataset.columns().items():
        kept = slice(None) if name in ("observations", *dataset.extras) else rows
        np.testing.assert_array_equal(again.columns()[name][kept], column[kept])
    np.testing.assert_array_equal(again.offsets, dataset.offsets)


@settings(deadline=None, max_examples=25)
@given(plans())
def test_no_transition_crosses_an_end(plan: dict[str, Any]) -> None:
    dataset = from_arrays(**plan)
    rows, owner = dataset.transition_rows(), dataset.trajectory_of_row()
    np.testing.assert_array_equal(owner[rows], owner[rows + 1])
    assert len(rows) == dataset.n_transitions == dataset.lengths.sum()


@settings(deadline=None, max_examples=40)
@given(plans(), st.booleans())
def test_flat_transitions_give_the_trajectories_back(plan: dict[str, Any], by_jumps: bool) -> None:
    """Where trajectories end is told by timeouts, or by nothing but the next observation."""
    dataset = from_arrays(**plan)
    rows = dataset.transition_rows()
    last = np.zeros(dataset.n_rows, dtype=bool)
    last[dataset.end_rows - 1] = True
    again = from_transitions(
        dataset.observations[rows],
        dataset.actions[rows],
        dataset.observations[rows + 1],
        None if dataset.rewards is None else dataset.rewards[rows],
        dataset.terminated[rows],
        None if by_jumps else last[rows],
        terminals_end=False,
        extras={name: column[rows] for name, column in dataset.extras.items()},
    )
    np.testing.assert_array_equal(again.offsets, dataset.offsets)
    np.testing.assert_array_equal(again.observations, dataset.observations)
    np.testing.assert_array_equal(again.terminated, dataset.terminated)
    np.testing.assert_array_equal(again.actions[rows], dataset.actions[rows])
    assert not again.actions[again.end_rows].any()


@settings(deadline=None, max_examples=25)
@given(plans(), st.randoms(use_true_random=False))
def test_the_digest_notices_one_changed_bit_and_not_info(plan: dict[str, Any], random: Random) -> None:
    dataset = from_arrays(**plan)
    columns = {name: column.copy() for name, column in dataset.columns().items()}
    name = random.choice(sorted(set(columns) - {"terminated", "truncated"}))
    content = columns[name].reshape(-1).view(np.uint8)
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    assert dataset_of(columns, dataset.offsets, {}).digest() != dataset.digest()
    assert replace(dataset, info={"other": 1}).digest() == dataset.digest()


def test_without_next_observations_the_last_row_becomes_the_end_row() -> None:
    observations = np.arange(5.0)[:, None]
    dataset = from_transitions(observations, np.zeros((5, 1)), timeouts=[0, 0, 1, 0, 0])
    assert dataset.offsets.tolist() == [0, 3, 5]
    assert dataset.observations.tolist() == observations.tolist()
    # The mark on the row that became an end row moves to the transition that leads there.
    assert dataset.truncated.tolist() == [False, True, False, False, False]
    assert "made_up_end_rows" not in dataset.info


def test_a_terminal_last_row_keeps_its_transition_and_its_reward() -> None:
    dataset = from_transitions(
        np.arange(5.0)[:, None],
        np.full((5, 1), 0.5),
        rewards=[0.0, 0.0, 7.0, 0.0, 0.0],
        terminals=[0, 0, 1, 0, 0],
        timeouts=[0, 0, 0, 0, 1],
    )
    assert dataset.offsets.tolist() == [0, 4, 6]
    assert dataset.observations[:, 0].tolist() == [0, 1, 2, 2, 3, 4]
    assert dataset.terminated.tolist() == [False, False, True, False, False, False]
    assert dataset.rewards is not None
    assert dataset.rewards[2] == 7.0
    assert dataset.info["made_up_end_rows"] == 1


def test_episodes_may_go_on_after_a_terminal() -> None:
    observations = np.arange(4.0)[:, None]
    dataset = from_transitions(
        observations, np.zeros((4, 1)), observations + 1, terminals=[0, 1, 1, 0], terminals_end=False
    )
    assert dataset.n_trajectories == 1
    assert dataset.terminated.tolist() == [False, True, True, False, False]


def test_a_jump_ends_a_trajectory_and_a_rounding_error_does_not() -> None:
    observations = np.array([[0.0], [1.0], [2.0], [9.0]])
    following = np.array([[1.0 + 5e-7], [2.0], [3.0], [10.0]])
    dataset = from_transitions(observations, np.zeros((4, 1)), following)
    assert dataset.lengths.tolist() == [3, 1]
    assert dataset.observations[:, 0].tolist() == [0, 1, 2, 3, 9, 10]


def test_jumps_are_found_where_chunks_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astro_rl.data.columns.CHUNK_BYTES", 24)
    observations = np.arange(12.0)[:, None]
    following = observations + 1
    for jump in range(11):
        jumped = following.copy()
        jumped[jump] = 100
        dataset = from_transitions(observations, np.zeros((12, 1)), jumped)
        assert dataset.lengths.tolist() == [jump + 1, 11 - jump]


def test_nothing_that_says_where_trajectories_end() -> None:
    with pytest.raises(DataError, match="Nothing says where trajectories end"):
        from_transitions(np.zeros((4, 1)), np.zeros((4, 1)))


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        (
            {"observations": np.zeros((3, 1)), "actions": np.zeros((3, 1))},
            "T actions needs T \\+ 1 observations",
        ),
        ({"observations": np.zeros((3, 1))}, "Trajectory 1 has no actions"),
        ({"observations": np.zeros((3, 1)), "actions": np.zeros((2, 1)), "reward": [0, 0]}, "mean 'rewards'"),
        ({"observations": np.zeros((3, 2)), "actions": np.zeros((2, 1))}, "different shapes or types"),
        (
            {"observations": np.zeros((3, 1)), "actions": np.zeros((2, 1)), "rewards": [0.0, 0.0]},
            "different fields",
        ),
    ],
)
def test_trajectories_that_do_not_fit_are_named(trajectory: dict, message: str) -> None:
    first = {"observations": np.zeros((3, 1)), "actions": np.zeros((2, 1))}
    with pytest.raises(DataError, match=message):
        from_trajectories([first, trajectory])
