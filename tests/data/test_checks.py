"""Bad data: each kind has its own message, which names the field, the first row, how many, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astro_rl.data import check_dataset, from_arrays
from astro_rl.errors import ConfigError, DataError

from .strategies import small

OBSERVATIONS = np.zeros((6, 2), np.float32)
ACTIONS = np.zeros((6, 1), np.float32)


def refused(match: str, **changes: Any) -> str:
    arguments: dict[str, Any] = {"observations": OBSERVATIONS, "actions": ACTIONS, "ends": [4, 6], **changes}
    with pytest.raises(DataError, match=match) as error:
        from_arrays(**arguments, source="demo.npz")
    message = str(error.value)
    assert "demo.npz" in message
    return message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["observations", "actions", "rewards"])
def test_a_value_that_is_not_finite_is_found(field: str, value: float) -> None:
    columns = {"observations": OBSERVATIONS.copy(), "actions": ACTIONS.copy(), "rewards": np.zeros(6)}
    columns[field][4:5] = value
    columns[field][1:2] = value
    message = refused("not finite", **columns)
    values = 4 if field == "observations" else 2
    assert f"field:    {field}" in message
    assert f"{values} values in 2 of 6 rows; the first is {value} at row 1 (trajectory 0, step 1)" in message


def test_values_that_are_not_finite_are_found_beyond_the_first_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astro_rl.data.columns.CHUNK_BYTES", 8)
    observations = OBSERVATIONS.copy()
    observations[5, 1] = np.nan
    assert "row 5 (trajectory 1, step 1), position 1" in refused("not finite", observations=observations)


def test_simulator_state_has_to_be_finite_and_other_columns_need_not() -> None:
    state = np.zeros((6, 3))
    state[2, 2] = np.nan
    assert "qpos" in refused("not finite", extras={"qpos": state})
    dataset = from_arrays(OBSERVATIONS, ACTIONS, ends=[4, 6], extras={"lineage": state})
    assert np.isnan(dataset.extras["lineage"][2, 2])


def test_lengths_that_differ() -> None:
    assert "5 rows" in refused("different lengths", actions=ACTIONS[:5])
    assert "rewards" in refused("different lengths", rewards=np.zeros(7))
    assert "truncated" in refused("different lengths", truncated=np.zeros(5))
    assert "goal" in refused("different lengths", extras={"goal": np.zeros((4, 2))})


@pytest.mark.parametrize(
    ("field", "array", "message"),
    [
        ("actions", np.zeros((6, 1), np.int64), "discrete actions are not supported"),
        ("observations", np.zeros((6, 2), np.uint8), "image observations are not supported"),
        ("observations", np.zeros((6, 2), np.int32), "float32 or float64"),
        ("observations", np.zeros((6, 2), np.float16), "float32 or float64"),
        ("observations", np.zeros((6, 2), np.complex64), "does not hold real numbers"),
        ("actions", np.full((6, 1), "left"), "does not hold real numbers"),
        ("rewards", np.full(6, 1j), "does not hold real numbers"),
        ("observations", np.full((6, 2), None), "Python objects, which are never unpickled"),
        ("observations", [[1.0], [1.0, 2.0]], "not one array"),
        ("terminated", np.full(6, 2), "neither 0 nor 1"),
        ("truncated", np.full(6, np.nan), "neither 0 nor 1"),
    ],
)
def test_wrong_types(field: str, array: Any, message: str) -> None:
    assert f"field:    {field}" in refused(message, **{field: array})


@pytest.mark.parametrize(
    ("field", "shape", "fix"),
    [
        ("observations", (6,), "[:, None]"),
        ("rewards", (6, 1), "[:, 0]"),
        ("actions", (6, 0), "one dimension"),
    ],
)
def test_wrong_axes(field: str, shape: tuple[int, ...], fix: str) -> None:
    assert fix in refused("wrong number of axes", **{field: np.zeros(shape)})


def test_a_trajectory_without_a_transition_is_refused_by_its_number_or_dropped_and_counted() -> None:
    for ends, said in (([3, 4, 6], "trajectory 1 has one row"), ([3, 3, 6], "trajectory 1 has no rows")):
        assert said in refused("no transition", ends=ends)
        dataset = from_arrays(OBSERVATIONS, ACTIONS, ends=ends, drop_short=True, rewards=np.arange(6.0))
        assert dataset.lengths.tolist() == ([2, 1] if ends[1] == 4 else [2, 2])
        assert dataset.rewards is not None
        assert dataset.rewards.tolist() == ([0, 1, 2, 4, 5] if ends[1] == 4 else [0, 1, 2, 3, 4, 5])
        assert dataset.info["changes"] == ["dropped 1 of 3 trajectories, which had no transition"]


def test_one_transition_is_enough() -> None:
    assert from_arrays(OBSERVATIONS[:2], ACTIONS[:2], ends=[2]).lengths.tolist() == [1]


def test_nothing_is_left_after_dropping() -> None:
    with pytest.raises(DataError, match="nothing is left"):
        from_arrays(OBSERVATIONS, ACTIONS, ends=[1, 2, 3, 4, 5, 6], drop_short=True)


@pytest.mark.parametrize(
    ("offsets", "match"),
    [
        ([0, 4, 3, 6], "do not rise"),
        ([0, 4], "do not span the rows"),
        ([1, 6], "do not span the rows"),
        ([0.0, 6.0], "row numbers"),
        ([], "do not span|row numbers"),
    ],
)
def test_offsets_that_cannot_be(offsets: list[float], match: str) -> None:
    refused(match, ends=None, offsets=offsets)


def test_a_missing_last_terminal() -> None:
    terminals = [0, 0, 1, 0, 0, 0]
    message = refused("last trajectory is not closed", ends=None, terminals=terminals)
    assert "0 on the last row, 5; the trajectory starts at row 3" in message
    dataset = from_arrays(OBSERVATIONS, ACTIONS, terminals=terminals, close_last=True)
    assert dataset.offsets.tolist() == [0, 3, 6]


def test_a_flag_on_an_end_row() -> None:
    message = refused("end row is marked terminated", terminated=[0, 0, 0, 1, 0, 0])
    assert "row 3 (trajectory 0, step 3)" in message


def test_actions_outside_their_range() -> None:
    actions = np.array([[0.5], [1.5], [-3.0], [99.0], [0.0], [99.0]], np.float32)
    message = refused("outside \\[-1, 1\\]", actions=actions)
    # The 99s stand on end rows, whose actions mean nothing.
    assert "2 values in 2 of 6 rows; the first is 1.5 at row 1 (trajectory 0, step 1)" in message
    assert "from -3 to 1.5" in message


def test_actions_are_clipped_on_request_and_it_is_told() -> None:
    actions = np.array([[0.5], [1.5], [-3.0], [0.0], [0.25], [0.0]], np.float32)
    dataset = from_arrays(OBSERVATIONS, actions, ends=[4, 6], actions_outside="clip")
    assert dataset.actions[:, 0].tolist() == [0.5, 1.0, -1.0, 0.0, 0.25, 0.0]
    assert dataset.info["actions_clipped"] == 2
    assert "clipped 2 values" in dataset.info["changes"][0]


def test_actions_are_rescaled_from_the_range_given_and_can_be_had_back() -> None:
    rng = np.random.default_rng(0)
    low, high = np.array([-2.0, 0.0]), np.array([2.0, 10.0])
    actions = rng.uniform(low, high, size=(6, 2))
    dataset = from_arrays(
        OBSERVATIONS, actions, ends=[4, 6], actions_outside="rescale", action_range=(low, high)
    )
    np.testing.assert_allclose(dataset.actions, (actions - low) / (high - low) * 2 - 1, atol=1e-12)
    told = dataset.info["action_rescaling"]
    back = told["low"] + (dataset.actions + 1) / 2 * (np.array(told["high"]) - told["low"])
    np.testing.assert_allclose(back, actions, atol=1e-12)


def test_actions_are_rescaled_from_the_range_in_the_data_where_none_is_given() -> None:
    actions = np.array([[0.0, 7.0], [4.0, 7.0], [2.0, 7.0], [50.0, 7.0], [1.0, 7.0], [0.0, 7.0]])
    dataset = from_arrays(OBSERVATIONS, actions, ends=[4, 6], actions_outside="rescale")
    assert dataset.actions[:3].tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    assert dataset.info["action_rescaling"] == {"low": [0.0, 7.0], "high": [4.0, 7.0], "range": "data"}


def test_a_range_without_effect_or_without_width_is_refused() -> None:
    with pytest.raises(ConfigError, match="only with actions_outside"):
        from_arrays(OBSERVATIONS, ACTIONS, ends=[4, 6], action_range=(-1, 1))
    refused("empty or not finite", actions_outside="rescale", action_range=(1, 1))
    refused("does not fit", actions_outside="rescale", action_range=([0, 0, 0], [1, 1, 1]))


@pytest.mark.parametrize("name", ["offsets", "", "../up", "a b", "/root", "ends/"])
def test_names_that_cannot_be_columns(name: str) -> None:
    refused("name", extras={name: np.zeros(6)})


def test_names_that_would_share_a_file() -> None:
    refused("same file", extras={"a/b": np.zeros(6), "a__b": np.zeros(6)})


def test_a_dataset_changed_after_it_was_built_is_checked_again() -> None:
    dataset = small()
    rewards = np.full(dataset.n_rows, np.nan, np.float32)
    with pytest.raises(DataError, match="not finite"):
        check_dataset(dataset.with_rewards(rewards, np.zeros(dataset.n_rows, bool)))
