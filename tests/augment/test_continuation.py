"""Imitation rolled on: a policy that learns what was done, and a loop of acting and looking worked by hand."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.augment.continuation import Continuation, ContinuationSettings, fit_policy
from astro_rl.data import from_arrays
from astro_rl.data.normaliser import fit_normaliser


@dataclass(frozen=True)
class Adding:
    """s_{t+1} = s_t + a_t, exactly."""

    horizon: int = 7
    action_dim: int = 1

    def rollout(self, network: Any, first: Any, actions: Any, key: Any, *, steps: int) -> jax.Array:
        moved = jnp.cumsum(actions, axis=1) - actions
        return first[:, None] + moved


class Halving(eqx.Module):
    """a = −s / 2: every step halves the state. With `way`, the noise's sign says where to."""

    way: bool = eqx.field(static=True, default=False)

    def flow(self, states: Any, noise: Any, steps: int) -> jax.Array:
        return jnp.sign(noise) if self.way else -states / 2


def continued(policy: Any, steps: int, first: np.ndarray, seed: int = 0) -> np.ndarray:
    rolled = Continuation(Adding(), None, policy, ContinuationSettings(), steps)
    return rolled(jax.random.key(seed), first)


def test_acting_on_what_is_seen_on_the_way_by_hand() -> None:
    """8 → 4 → 2 → 1: actions −4, −2, −1 follow from states that the actions before lead to."""
    first = np.array([[8.0], [-16.0]], np.float32)
    for steps, share in ((1, 0.5), (3, 0.125), (5, 1 / 32)):
        np.testing.assert_allclose(continued(Halving(), steps, first), first * share, rtol=1e-6)


def test_a_continuation_goes_one_way_and_others_go_others() -> None:
    ends = continued(Halving(way=True), 5, np.zeros((64, 1), np.float32))
    assert set(ends[:, 0].tolist()) == {-5.0, 5.0}, "never back and forth"
    other = continued(Halving(way=True), 5, np.zeros((64, 1), np.float32), seed=1)
    assert not np.array_equal(ends, other)


def test_the_policy_takes_one_of_the_ways_that_data_goes() -> None:
    """At every place half of the data goes left and half right; their mean, to stay, is what nobody does."""
    generator = np.random.default_rng(0)
    actions = np.sign(generator.normal(size=(400, 1))).astype(np.float32) * 0.8
    dataset = from_arrays(
        generator.normal(size=(400, 2)).astype(np.float32), actions, offsets=np.array([0, 200, 400])
    )
    settings = ContinuationSettings(hidden=(64,), steps=500, batch_size=128, learning_rate=3e-3)
    policy = fit_policy(dataset, fit_normaliser(dataset.observations), settings)
    noise = jax.random.normal(jax.random.key(0), (256, 1))
    taken = np.asarray(policy.flow(jnp.zeros((256, 2)), noise, 10))[:, 0]
    assert np.abs(taken).mean() > 0.4
    assert 0.3 < (taken > 0).mean() < 0.7
