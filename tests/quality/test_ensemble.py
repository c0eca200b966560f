"""The judge without a simulator, on a system whose dynamics everybody knows: s' = s + a / 4."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError, DataError
from astro_rl.nets.mlp import MLP, Linear
from astro_rl.quality.ensemble import Ensemble, EnsembleLearner, EnsembleSettings, ensemble_report
from astro_rl.quality.neighbours import Units
from astro_rl.quality.parts import RealParts, marked, real_parts
from tests.fitted import ROWS, TRAJECTORIES, walks

TINY = EnsembleSettings(members=3, hidden=(32,), steps=1000, batch_size=128)


@lru_cache
def recordings() -> RealParts:
    """Many walks, so that others of their kind are where some have been."""
    every = [walks(seed) for seed in range(10, 16)]
    real = from_arrays(
        np.concatenate([each.observations for each in every]),
        np.concatenate([each.actions for each in every]),
        offsets=np.arange(6 * TRAJECTORIES + 1) * ROWS,
    )
    return real_parts(real, held_out=walks(1))


def with_actions(dataset: Dataset, actions: np.ndarray) -> Dataset:
    return from_arrays(dataset.observations, actions, offsets=dataset.offsets)


def test_right_transitions_pass_and_wrong_ones_are_flagged() -> None:
    real = recordings()
    right = walks(2)
    report = ensemble_report(marked(right), real, TINY)
    assert report.generated is not None
    assert report.generated.error_above < 0.06 and report.real.error_above < 0.06
    assert report.other_actions.error_above > 0.8, "the judge sees what actions do"
    wrong = ensemble_report(marked(with_actions(right, -right.actions)), real, TINY)
    assert wrong.generated is not None and wrong.generated.error_above > 0.95
    assert wrong.real == report.real and wrong.error_limit == report.error_limit


def test_members_disagree_where_nothing_was_recorded() -> None:
    real = recordings()
    moved = walks(2)
    far = from_arrays(np.asarray(moved.observations) + 200, moved.actions, offsets=moved.offsets)
    report = ensemble_report(marked(far), real, TINY)
    assert report.generated is not None
    assert report.generated.spread_above == 1.0
    assert report.generated.spread > 3 * report.real.spread


def test_only_transitions_with_a_generated_end_are_judged() -> None:
    right = walks(2)
    step = np.arange(right.n_rows, dtype=np.int32) % 201
    actions = np.array(right.actions)
    actions[step < 100] *= -1  # wrong, but recorded
    step[step >= 100] = -1
    mixed = from_arrays(right.observations, actions, offsets=right.offsets, extras={"source_step": step})
    report = ensemble_report(marked(mixed), recordings(), TINY)
    assert report.generated is not None
    assert report.generated.error_above < 0.06
    all_known = from_arrays(
        right.observations, actions, offsets=right.offsets, extras={"source_step": np.abs(step)}
    )
    assert ensemble_report(marked(all_known), recordings(), TINY).generated is None


def stacked(weights: list[jax.Array]) -> MLP:
    """One layer a member, without biases."""
    members = [MLP((Linear(weight, jnp.zeros(1)),), ()) for weight in weights]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)


def by_hand(*weights: float) -> MLP:
    """Members that answer weight · s, of one number each."""
    return stacked([jnp.array([[weight], [0.0]]) for weight in weights])


def test_the_loss_is_the_sum_of_each_members_mean_square() -> None:
    learner = EnsembleLearner(EnsembleSettings(members=2, hidden=(4,)))
    inputs = jnp.array([[[1.0, 9.0], [2.0, 9.0]], [[3.0, 9.0], [0.0, 9.0]]])
    changes = jnp.array([[[0.0], [0.0]], [[1.0], [2.0]]])
    # Member 1 answers 2 s: 2 and 4, misses 4 and 16, mean 10. Member 2 answers s: 3 and 0, misses 4 and 4, mean 4.
    loss, info = learner.loss(by_hand(2.0, 1.0), inputs, changes)
    assert float(loss) == pytest.approx(14.0)
    assert float(info["mse"]) == pytest.approx(7.0)


def test_error_and_spread_by_hand() -> None:
    # s = 0, 2, 0 and 2: mean 2/3, spread √(8/9), changes of 2, which are typical.
    observations = np.array([[0], [2], [0], [2]], np.float32)
    dataset = from_arrays(observations, np.array([[1], [-1], [1], [0]], np.float32), offsets=[0, 4])
    units = Units.of(dataset)
    judge = Ensemble(by_hand(3.0, 1.0), units)
    error, spread = judge.judge(dataset, np.array([1]), dataset.actions[[1]])
    scaled = (2 - 2 / 3) / np.sqrt(8 / 9)
    # Members say 3 s and s: mean 2 s, standard deviation s. The true change is −2, typical 2: −1.
    assert error == pytest.approx([2 * scaled + 1])
    assert spread == pytest.approx([scaled])


def test_members_learn_apart() -> None:
    """Each member's gradient comes from its own loss alone."""
    learner = EnsembleLearner(EnsembleSettings(members=2, hidden=(4,)))
    inputs, changes = jnp.ones((2, 3, 2)), jnp.zeros((2, 3, 1))

    def first_alone(weight: jax.Array) -> jax.Array:
        return learner.loss(stacked([weight, jnp.ones((2, 1))]), inputs, changes)[0]

    # d/dw (w · 1 + 0 · 1)² = 2 w for both inputs' weights.
    np.testing.assert_allclose(jax.grad(first_alone)(jnp.array([[3.0], [0.0]])), [[6.0], [6.0]])


def test_settings_that_cannot_judge_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot disagree"):
        EnsembleSettings(members=1)
    with pytest.raises(ConfigError, match="positive"):
        EnsembleSettings(steps=0)
    short = from_arrays(np.random.default_rng(0).normal(size=(6, 2)), np.zeros((6, 1)), offsets=[0, 6])
    with pytest.raises(DataError, match="Too few held-out"):
        ensemble_report(marked(short), real_parts(short, held_out=short), TINY)
