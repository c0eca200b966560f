"""Arms of an experiment: alone as among others, mixed half and half, each under its own rewards."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.agents.base import LinkedBatch
from astro_rl.agents.iql import IQL
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.training.arms import Arm, Member, Table, build_table, draw, members_of, train_arms
from astro_rl.training.loop import init_states
from tests.training.stubs import Regressor, counting_dataset

DATASETS = {"real": counting_dataset((9, 4, 6)), "made": counting_dataset((5, 5), start=50)}
"""Observation (trajectory, row in it): trajectories 0, 1, 2 and 50, 51."""
ARMS = [Arm("real", ("real",)), Arm("mixed", ("real", "made")), Arm("other goal", ("made",), labelling=1)]


def labels_of(dataset: Dataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labelling 0: rewards as recorded. Labelling 1: 1,000 more, and everything terminates."""
    assert dataset.rewards is not None
    return [
        (dataset.rewards, dataset.terminated),
        (dataset.rewards + 1000, np.ones(dataset.n_rows, bool)),
    ]


def table() -> tuple[Table, dict[str, tuple[int, int]]]:
    return build_table(DATASETS, {name: labels_of(dataset) for name, dataset in DATASETS.items()})


def train(learner: Any, arms: list[Arm], seeds: tuple[int, ...], chunks: tuple[int, ...]) -> tuple[Any, Any]:
    rows, ranges = table()
    members, keys = members_of(arms, ranges, seeds)
    states, step, info = init_states(learner, keys, 2, 1), 0, {}
    for steps in chunks:
        states, info = train_arms(learner, states, keys, step, rows, members, steps)
        step += steps
    return states, info


def assert_close(a: Any, b: Any) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


LEARNERS = [Regressor(), IQL(hidden=(8, 8), batch_size=16)]


@pytest.mark.parametrize("learner", LEARNERS, ids=["regressor", "iql"])
def test_an_arm_alone_is_the_arm_in_a_table_of_arms(learner: Any) -> None:
    """Members stand arm by arm, seeds within: arm 1 with the seeds 3 and 4 are members 2 and 3."""
    together, info = train(learner, ARMS, (3, 4), (6,))
    for number, arm in enumerate(ARMS):
        alone, own = train(learner, [arm], (3, 4), (6,))
        here = slice(2 * number, 2 * number + 2)
        assert_close(jax.tree.map(lambda leaf: leaf[here], together), alone)  # noqa: B023
        assert_close({name: value[here] for name, value in info.items()}, own)
    one, _ = train(learner, [ARMS[1]], (4,), (6,))
    assert_close(jax.tree.map(lambda leaf: leaf[3:4], together), one)


def test_stopping_between_chunks_changes_nothing() -> None:
    assert_close(train(Regressor(), ARMS, (0,), (7,))[0], train(Regressor(), ARMS, (0,), (3, 4))[0])


def test_arms_differ_in_their_data_alone() -> None:
    """The same arm twice gives the same learner twice: a seed's key does not depend on its arm."""
    twice = [Arm("one", ("real",)), Arm("two", ("real",)), Arm("mixed", ("real", "made"))]
    states, _ = train(Regressor(), twice, (0,), (5,))
    seen = np.asarray(states.seen)
    assert np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[0], seen[2])


def drawn(arm: Arm, batch_size: int, count: int = 400, *, linked: bool = False) -> Any:
    """`count` batches of one arm, stacked."""
    rows, ranges = table()
    members, _ = members_of([arm], ranges, (0,))
    member = Member(*(part[0] for part in members))
    keys = jax.random.split(jax.random.key(1), count)
    return jax.vmap(lambda key: draw(key, rows, member, batch_size, linked=linked))(keys)


@pytest.mark.parametrize(("size", "first"), [(8, 4), (7, 4)])
def test_a_mixture_takes_half_of_each_batch_from_either(size: int, first: int) -> None:
    batch = drawn(ARMS[1], size)
    is_made = np.asarray(batch.observations[..., 0]) >= 50
    assert (is_made == (np.arange(size) >= first)).all()


def test_all_transitions_of_a_dataset_are_drawn_alike_and_none_across_an_end() -> None:
    """19 transitions of `real`: of 400 · 10 draws each gets about 210."""
    batch = drawn(Arm("real", ("real",)), 10)
    here, after = (np.asarray(part).reshape(-1, 2) for part in (batch.observations, batch.next_observations))
    assert (after == here + np.asarray([0, 1])).all()
    found, counts = np.unique(here, axis=0, return_counts=True)
    expected = [(k, row) for k, length in enumerate((9, 4, 6)) for row in range(length)]
    assert [tuple(place) for place in found.astype(int).tolist()] == expected
    assert counts.min() > 140 and counts.max() < 290


def test_each_arm_is_trained_under_its_own_labels() -> None:
    """Rewards are row numbers: in labelling 1 a thousand more, with every transition terminating."""
    as_recorded, other = drawn(Arm("a", ("made",)), 6), drawn(ARMS[2], 6)
    assert np.array_equal(as_recorded.observations, other.observations), "the same key draws the same rows"
    np.testing.assert_array_equal(other.rewards, as_recorded.rewards + 1000)
    row = (np.asarray(as_recorded.observations) * [0, 1]).sum(axis=-1)
    second = np.asarray(as_recorded.observations[..., 0]) == 51
    np.testing.assert_array_equal(as_recorded.rewards, row + 6 * second)
    # Labelling 0: the last of each trajectory's five transitions terminates.
    np.testing.assert_array_equal(as_recorded.masks, (row != 4).astype(np.float32))
    assert not np.asarray(other.masks).any()


def test_a_linked_batch_knows_the_next_action_and_where_there_is_none() -> None:
    batch = drawn(Arm("made", ("made",)), 6, linked=True)
    assert isinstance(batch, LinkedBatch)
    last = np.asarray(batch.observations[..., 1]) == 4
    np.testing.assert_array_equal(batch.next_known, (~last).astype(np.float32))
    source = np.asarray(DATASETS["made"].actions, np.float32)
    row = np.asarray(batch.observations[..., 1] + 6 * (batch.observations[..., 0] == 51)).astype(int)
    np.testing.assert_array_equal(batch.next_actions, source[row + 1])


def test_labels_that_do_not_fit_the_datasets_are_refused() -> None:
    whole = {name: labels_of(dataset) for name, dataset in DATASETS.items()}
    for broken in ({"real": whole["real"]}, {**whole, "made": whole["made"][:1]}):
        with pytest.raises(ConfigError, match="one pair of rewards and ends"):
            build_table(DATASETS, broken)
    assert table()[0].rewards.shape == (2, 34) == table()[0].masks.shape
    assert jnp.array_equal(
        table()[0].masks[0], 1 - jnp.asarray(np.concatenate([d.terminated for d in DATASETS.values()]))
    )
