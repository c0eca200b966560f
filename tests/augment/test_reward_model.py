"""The learned reward: its loss by hand, what it makes of data whose reward is known, where it needs no network."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augment.reward_model import RewardLearner, RewardSettings, features, fit_reward_model
from astro_rl.data import from_arrays
from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.nets.mlp import MLP
from tests.augment.stub_completer import numbered, plain

SMALL = RewardSettings(hidden=(32,), steps=500, batch_size=128)


def walk() -> Dataset:
    """Random places in [−1, 1]; reward 3 and an end where the state entered is above 0.5, else −2."""
    generator = np.random.default_rng(0)
    places = generator.uniform(-1, 1, (2000, 1)).astype(np.float32)
    inside = (np.roll(places[:, 0], -1) > 0.5) & (np.arange(2000) % 100 < 99)
    rewards = np.where(inside, 3.0, -2.0).astype(np.float32)
    return from_arrays(
        places,
        generator.uniform(-1, 1, (2000, 1)).astype(np.float32),
        offsets=np.arange(0, 2001, 100),
        rewards=rewards,
        terminated=inside,
    )


def test_the_loss_by_hand() -> None:
    """A network that says (0.5, log 3), which is p = ¾: rewards 1 and 0, ends 1 and 0.

    (0.25 + 0.25) / 2 + (−log ¾ − log ¼) / 2
    """
    network = MLP.init(jax.random.key(0), 3, (), 2, layer_norm=False)
    network = eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias),
        network,
        (jnp.zeros((3, 2)), jnp.asarray([0.5, math.log(3)])),
    )
    loss, info = RewardLearner(SMALL).loss(
        network, jnp.ones((2, 3)), jnp.asarray([1.0, 0.0]), jnp.asarray([1.0, 0.0])
    )
    assert float(info["reward_mse"]) == pytest.approx(0.25)
    assert float(loss) == pytest.approx(0.25 - (math.log(0.75) + math.log(0.25)) / 2, rel=1e-5)


def test_states_are_normalised_and_actions_are_not() -> None:
    normaliser = Normaliser(*(np.asarray([v], np.float32) for v in (10.0, 2.0, 2.0)))
    one = np.asarray([[14.0]], np.float32)
    assert features(normaliser, one, 0 * one + 0.3, one - 6).tolist() == [[2.0, pytest.approx(0.3), -1.0]]


def test_a_known_reward_is_learned_and_what_it_is_worth_is_measured() -> None:
    dataset = walk()
    told: list[tuple[int, int]] = []
    model = fit_reward_model(
        dataset, fit_normaliser(dataset.observations), SMALL, progress=lambda *at: told.append(at)
    )
    assert told == [(500, 500)]
    entered = np.asarray([[0.9], [-0.5], [0.7]], np.float32)
    rewards, ended = model(0 * entered, 0 * entered, entered)
    np.testing.assert_allclose(rewards, [3, -2, 3], atol=0.5)
    assert ended.tolist() == [True, False, True]
    assert rewards.min() >= -2 and rewards.max() <= 3, "rewards stay within those seen"
    assert set(model.quality) == {"reward_rmse", "reward_std", "terminated_recall", "terminated_precision"}
    assert model.quality["reward_rmse"] < 0.5 * model.quality["reward_std"]
    assert model.quality["terminated_recall"] > 0.8 and model.quality["terminated_precision"] > 0.8


def test_one_seed_gives_one_model() -> None:
    dataset = walk()
    normaliser = fit_normaliser(dataset.observations)
    settings = dataclasses.replace(SMALL, steps=20)
    entered = np.linspace(-1, 1, 7, dtype=np.float32)[:, None]
    one, same, other = (
        fit_reward_model(dataset, normaliser, settings, seed=seed)(entered, entered, entered)[0]
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_reward_that_never_varies_and_an_end_that_never_comes_are_exact() -> None:
    dataset = dataclasses.replace(numbered(50, 50), rewards=np.full(100, -1.0, np.float32))
    model = fit_reward_model(dataset, plain(1), dataclasses.replace(SMALL, steps=1))
    rewards, ended = model(*[np.zeros((5, 1), np.float32)] * 3)
    assert (rewards == -1.0).all() and not ended.any()
    assert "terminated_recall" not in model.quality


def test_data_without_rewards_and_settings_without_sense_are_refused() -> None:
    with pytest.raises(DataError) as refused:
        fit_reward_model(dataclasses.replace(numbered(9), rewards=None), plain(1))
    assert refused.value.field == "rewards"
    for change in ({"steps": 0}, {"hidden": (32, 0)}, {"learning_rate": 0.0}):
        with pytest.raises(ConfigError, match="reward model"):
            RewardSettings(**change)  # type: ignore[arg-type]
