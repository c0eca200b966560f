"""From completions to a dataset: units, bounds, real rows bit for bit, rewards, ends, lineage."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from astro_rl.augment.finish import LINEAGE_COLUMNS, Finisher, learned_bounds, projection, weights
from astro_rl.augment.layout import Laid, lay_anchored
from astro_rl.augment.limits import LEVELS, RealLimits
from astro_rl.augment.reward_model import RewardModel
from astro_rl.augment.verdicts import KEPT
from astro_rl.data import from_arrays
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.data.schema import Dataset
from astro_rl.nets.mlp import MLP
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import get_task
from astro_rl.tasks.layout import Layout, angle
from tests.augment.stub_completer import numbered, plain

SHAPE = ChainShape(pieces=2, segment=2, mask=2)
LIMITS = RealLimits("anchored", 10, (0.25,) * len(LEVELS), (1.0,) * len(LEVELS), (1.0,) * len(LEVELS), None)


def awkward() -> Dataset:
    """Float32 numbers that survive no arithmetic unchanged, and a constant dimension."""
    generator = np.random.default_rng(0)
    observations = generator.normal(1000, 3, (20, 3)).astype(np.float32)
    observations[:, 1] = np.float32(0.1)
    actions = generator.uniform(-1, 1, (20, 2)).astype(np.float32)
    return from_arrays(
        observations,
        actions,
        offsets=[0, 8, 20],
        rewards=generator.normal(size=20).astype(np.float32),
        terminated=np.arange(20) == 11,
    )


class AlwaysSeven(RewardModel):
    """Says 7, and "terminated" where the state that is entered is above a limit."""

    def __call__(self, observations: Any, actions: Any, following: Any) -> Any:
        assert len(observations) == len(actions) == len(following)
        self.quality["asked"] = self.quality.get("asked", 0) + len(observations)
        return np.full(len(observations), 7.0, np.float32), following[:, 0] > 1e6


def always_seven(dims: int) -> RewardModel:
    network = MLP.init(jax.random.key(0), 2, (), 2, layer_norm=False)
    return AlwaysSeven(plain(dims), network, 0.0, 1.0, -9.0, 9.0, True, {})


def finisher_of(dataset: Dataset, **changes: Any) -> Finisher:
    normaliser = changes.pop("normaliser", None) or fit_normaliser(dataset.observations)
    task = changes.get("task")
    return Finisher(dataset, normaliser, LIMITS, projection(dataset, task), **changes)


def laid_on(dataset: Dataset, starts: tuple[int, int], generated: np.ndarray, deviation: float = 0.5) -> Laid:
    """One chain with one gap: piece, the generated states 1 and 2 of `generated`, piece."""
    actions = np.full((1, 1, 5, dataset.action_dim), 0.5, dataset.actions.dtype)
    return lay_anchored(
        SHAPE,
        dataset,
        np.asarray([starts]),
        generated[None, None].astype(dataset.observations.dtype),
        actions,
        np.asarray([[deviation]], np.float32),
        np.asarray([[KEPT]]),
        tail=False,
    )


STATISTIC = np.asarray([1.5])


def test_normalisation_is_undone_and_constant_dimensions_are_exact() -> None:
    dataset = awkward()
    finisher = finisher_of(dataset)
    normalised = finisher.normaliser.normalise(dataset.observations)
    undone = finisher.observations(normalised)
    assert undone.dtype == np.float32
    np.testing.assert_allclose(undone, dataset.observations, rtol=1e-6)
    guessed = normalised + np.asarray([0.0, 123.0, 0.0], np.float32)
    assert (finisher.observations(guessed)[:, 1] == np.float32(0.1)).all()


def test_generated_states_stay_within_the_datas_own_bounds_where_no_layout_is_known() -> None:
    dataset = awkward()
    low, high = learned_bounds(dataset)
    assert np.array_equal(low, dataset.observations.min(axis=0))
    made = finisher_of(dataset).observations(np.asarray([[99.0, 0, -99.0], [-99.0, 0, 99.0]], np.float32))
    assert np.array_equal(made, [[high[0], high[1], low[2]], [low[0], low[1], high[2]]])


def test_a_tasks_layout_makes_states_valid() -> None:
    """Dimensions 0 and 1 are a direction: (3, 4) becomes (0.6, 0.8)."""
    task = dataclasses.replace(
        get_task("pointmaze-medium-stitch-v0"), layout=Layout(2, unit_vectors=(angle(0),))
    )
    dataset = from_arrays(np.eye(2, dtype=np.float32), np.zeros((2, 1), np.float32), offsets=[0, 2])
    made = finisher_of(dataset, normaliser=plain(2), task=task).observations(
        np.asarray([[3.0, 4.0]], np.float32)
    )
    np.testing.assert_allclose(made, [[0.6, 0.8]], rtol=1e-5)


def test_actions_are_clipped_and_of_the_datas_type() -> None:
    made = finisher_of(awkward()).actions(np.asarray([[-1.5, 0.25], [1.0, 7.0], [np.nan, 0.0]]))
    assert made.tolist() == [[-1.0, 0.25], [1.0, 1.0], [0.0, 0.0]]
    assert made.dtype == np.float32


def test_real_rows_are_the_sources_bit_for_bit() -> None:
    """Observations, and actions and rewards of the transitions between two of them; the rest is not."""
    dataset = awkward()
    generated = np.full((5, 3), 1000.0)
    made = finisher_of(dataset, reward_model=always_seven(3)).finish(
        laid_on(dataset, (3, 14), generated), STATISTIC
    )
    rows, places = np.asarray([3, 4, 14, 15]), np.asarray([0, 1, 4, 5])
    assert made.observations[places].tobytes() == dataset.observations[rows].tobytes()
    assert made.actions[[0, 4]].tobytes() == dataset.actions[[3, 14]].tobytes()
    assert made.rewards is not None and dataset.rewards is not None
    assert made.rewards[[0, 4]].tobytes() == dataset.rewards[[3, 14]].tobytes()
    assert (made.actions[[1, 2, 3]] == 0.5).all() and (made.actions[5] == 0.0).all()


def test_a_learned_reward_is_asked_for_generated_transitions_alone() -> None:
    """Rows 3 4 · · 10 11 of a source whose reward is twice the row: real transitions leave rows 3 and 10."""
    source, model = numbered(9, 9), always_seven(1)
    generated = np.arange(5.0)[:, None] + 100
    made = finisher_of(source, normaliser=plain(1), reward_model=model).finish(
        laid_on(source, (3, 10), generated), STATISTIC
    )
    assert made.rewards is not None
    assert made.rewards.tolist() == [6.0, 7.0, 7.0, 7.0, 20.0, 0.0]
    assert model.quality["asked"] == 3
    assert made.truncated.tolist() == [False] * 4 + [True, False]
    assert not made.terminated.any()


def test_ends_that_are_real_or_learned_are_kept_and_no_last_transition_has_two() -> None:
    """Transition 10 → 11 terminated in the source; it is the last one here, so nothing is truncated. A generated one
    that enters 2,000,000 terminates in the middle."""
    plain_source = numbered(9, 9)
    source = dataclasses.replace(plain_source, terminated=np.arange(18) == 10)
    generated = np.asarray([0.0, 100, 2e6, 0, 0])[:, None]
    made = finisher_of(source, normaliser=plain(1), reward_model=always_seven(1)).finish(
        laid_on(source, (3, 10), generated), STATISTIC
    )
    assert made.terminated.tolist() == [False, False, True, False, True, False]
    assert not made.truncated.any()


def test_a_source_without_rewards_gives_none() -> None:
    source = dataclasses.replace(numbered(9, 9), rewards=None)
    made = finisher_of(source, normaliser=plain(1)).finish(
        laid_on(source, (3, 10), np.zeros((5, 1))), STATISTIC
    )
    assert made.rewards is None


@pytest.mark.parametrize(
    ("timing", "rewards", "met"),
    [("pre", [-1, -1, 0, -1, -1, 0], [2]), ("post", [-1, 0, -1, -1, -1, 0], [1])],
)
def test_a_tasks_reward_is_that_of_the_generated_states(timing: str, rewards: list, met: list) -> None:
    """The goal (20, 20) is met, within 1, in the first generated state alone. Rewarded is the transition that leaves
    it (`pre`) or enters it (`post`). It terminates, and the trajectory is cut off at its end."""
    task = get_task("pointmaze-medium-stitch-v0")
    source = from_arrays(
        np.zeros((18, 2), np.float32),
        np.zeros((18, 2), np.float32),
        offsets=[0, 9, 18],
        rewards=np.full(18, 5.0, np.float32),
    )
    generated = np.asarray([[0, 0], [20.5, 20], [21.5, 20], [0, 0], [0, 0]], np.float32)
    finisher = finisher_of(source, normaliser=plain(2), task=task, timing=timing)
    made = finisher.finish(laid_on(source, (3, 10), generated), STATISTIC)
    assert made.rewards is not None
    assert made.rewards.tolist() == rewards
    assert np.flatnonzero(made.terminated).tolist() == met
    assert made.truncated.tolist() == [False] * 4 + [True, False]
    assert made.info["relabelled"]["success_timing"] == timing


def test_lineage_by_hand() -> None:
    """Rows 3, 4 are steps 3, 4 of trajectory 0 and rows 10, 11 steps 1, 2 of trajectory 1. δ = 0.5 against a median of
    0.25 on real windows: weight ½."""
    source = numbered(9, 9)
    made = finisher_of(source, normaliser=plain(1), reward_model=always_seven(1)).finish(
        laid_on(source, (3, 10), np.zeros((5, 1)), deviation=0.5), STATISTIC
    )
    assert set(made.extras) == set(LINEAGE_COLUMNS)
    assert made.extras["source_trajectory"].tolist() == [0, 0, -1, -1, 1, 1]
    assert made.extras["source_step"].tolist() == [3, 4, -1, -1, 1, 2]
    for name, value in (("deviation", 0.5), ("filter_statistic", 1.5), ("weight", 0.5)):
        assert made.extras[name].tolist() == [value] * 6


def test_augmented_data_as_a_source_passes_its_own_origin_on() -> None:
    source = numbered(9, 9)
    origin = {"source_trajectory": np.arange(18) - 1, "source_step": np.arange(18) + 100}
    second = dataclasses.replace(source, extras={name: v.astype(np.int32) for name, v in origin.items()})
    made = finisher_of(second, normaliser=plain(1), reward_model=always_seven(1)).finish(
        laid_on(second, (0, 10), np.zeros((5, 1))), STATISTIC
    )
    assert made.extras["source_trajectory"].tolist() == [-1, 0, -1, -1, 9, 10]
    assert made.extras["source_step"].tolist() == [100, 101, -1, -1, 110, 111]


def test_weights_by_hand() -> None:
    """The median of real windows is 0.25: what deviates less weighs 1, what deviates twice as much a half."""
    found = weights(np.asarray([0.0, 0.25, 0.5, 1.0]), LIMITS)
    assert found.tolist() == [1.0, 1.0, 0.5, 0.25]
    exact = dataclasses.replace(LIMITS, deviation=(0.0,) * len(LEVELS))
    assert weights(np.asarray([0.0]), exact).tolist() == [1.0], "as good as real data, whatever the scale"


def test_generated_rows_get_the_simulators_state_that_their_observations_tell() -> None:
    """A point: qpos is the place, and at rest. Recorded rows keep the recording's numbers, to the last digit."""
    plane = np.random.default_rng(0).uniform(0, 20, (20, 2))
    dataset = from_arrays(
        plane.astype(np.float32),
        np.zeros((20, 2), np.float32),
        offsets=[0, 8, 20],
        extras={"qpos": plane, "qvel": np.full((20, 2), 0.25)},
    )
    generated = np.asarray([[0.0, 0.0], [3.0, 4.0], [5.0, 6.0], [0.0, 0.0], [0.0, 0.0]])
    laid = laid_on(dataset, (2, 10), generated)
    made = finisher_of(dataset, task=get_task("pointmaze-medium-stitch")).finish(laid, STATISTIC)
    known = laid.source_rows >= 0
    np.testing.assert_array_equal(made.extras["qpos"][known], plane[laid.source_rows[known]])
    assert (made.extras["qvel"][known] == 0.25).all()
    np.testing.assert_allclose(made.extras["qpos"][~known], laid.observations[~known])
    assert (made.extras["qvel"][~known] == 0).all()

    without = finisher_of(dataset).finish(laid, STATISTIC)
    assert "qpos" not in without.extras, "without a task nobody knows what an observation means"
