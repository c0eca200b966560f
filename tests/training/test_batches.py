"""Batches: what may be in one, and in which shares."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.agents.base import LinkedBatch
from astro_rl.errors import ConfigError, DataError
from astro_rl.training import StreamData, device_data, draw_batch, mixture_counts
from tests.training.stubs import counting_dataset


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**31 - 1))
def test_no_transition_of_a_batch_crosses_a_trajectory_end(lengths: list[int], seed: int) -> None:
    data = device_data(counting_dataset(tuple(lengths)))
    batch = draw_batch(jax.random.key(seed), (data,), (32,))
    before, after = np.asarray(batch.observations), np.asarray(batch.next_observations)
    assert np.array_equal(before[:, 0], after[:, 0])
    assert np.array_equal(before[:, 1] + 1, after[:, 1])


def test_a_row_keeps_its_own_reward_and_mask() -> None:
    dataset = counting_dataset((3, 2))
    batch = draw_batch(jax.random.key(0), (device_data(dataset),), (64,))
    for observation, reward, mask in zip(
        *map(np.asarray, (batch.observations, batch.rewards, batch.masks)), strict=True
    ):
        row = int(dataset.offsets[int(observation[0])] + observation[1])
        assert dataset.rewards is not None
        assert reward == dataset.rewards[row]
        assert mask == 1.0 - dataset.terminated[row]


def test_every_transition_is_drawn_equally_often() -> None:
    data = device_data(counting_dataset((7, 1, 4)))
    batch = draw_batch(jax.random.key(1), (data,), (24_000,))
    _, counts = np.unique(np.asarray(batch.rewards), return_counts=True)
    assert len(counts) == 12
    # 2000 expected each; five standard deviations of a binomial draw.
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


def test_a_mixture_holds_each_source_in_its_share() -> None:
    sources = (device_data(counting_dataset((5,))), device_data(counting_dataset((5,), start=100)))
    counts = mixture_counts(10, (0.7, 0.3))
    batch = draw_batch(jax.random.key(0), sources, counts)
    assert counts == (7, 3)
    assert (np.asarray(batch.observations)[:, 0] >= 100).sum() == 3


@given(st.integers(32, 512), st.lists(st.floats(0.3, 1.0), min_size=1, max_size=4))
def test_mixture_counts_fill_the_batch_within_one_row_of_the_exact_share(
    size: int, shares: list[float]
) -> None:
    counts = mixture_counts(size, shares)
    assert sum(counts) == size
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - size * share / sum(shares)) < 1


def test_a_share_too_small_for_one_row_is_refused() -> None:
    with pytest.raises(ConfigError, match="no row of any batch"):
        mixture_counts(16, (0.99, 0.01))


def test_a_reward_free_dataset_is_refused_unless_the_learner_uses_none() -> None:
    from dataclasses import replace

    dataset = replace(counting_dataset((3,)), rewards=None)
    with pytest.raises(DataError, match="no rewards"):
        device_data(dataset)
    assert np.all(np.asarray(device_data(dataset, uses_rewards=False).rewards) == 0)


def test_a_linked_batch_knows_the_next_action_and_where_there_is_none() -> None:
    dataset = counting_dataset((3, 2))
    batch = draw_batch(jax.random.key(0), (device_data(dataset),), (64,), linked=True)
    assert isinstance(batch, LinkedBatch)
    next_rows = [int(dataset.offsets[int(o[0])] + o[1]) for o in np.asarray(batch.next_observations)]
    assert np.array_equal(np.asarray(batch.next_actions), dataset.actions[next_rows])
    assert np.array_equal(np.asarray(batch.next_known), ~np.isin(next_rows, dataset.end_rows))
    streamed = StreamData(dataset).gather(np.arange(5))
    assert np.array_equal(np.asarray(streamed.next_known), [1, 1, 0, 1, 0])
