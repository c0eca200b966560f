"""Networks: shapes, initial spread, order of operations, and the short cuts against the plain computation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.nets import MLP, Critic, LayerNorm, Linear, MeanPolicy, NoisePolicy, Value, VectorField
from astro_rl.nets.normaliser import Normaliser

KEY = jax.random.key(0)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_linear_starts_with_xaviers_spread() -> None:
    layer = Linear.init(KEY, 300, 100)
    bound = (6 / 400) ** 0.5
    assert np.abs(layer.weight).max() <= bound
    assert float(layer.weight.std()) == pytest.approx(bound / 3**0.5, rel=0.02)
    assert not layer.bias.any()


def test_a_gain_scales_the_variance() -> None:
    wide, narrow = Linear.init(KEY, 300, 100), Linear.init(KEY, 300, 100, gain=0.01)
    assert np.allclose(narrow.weight, 0.1 * wide.weight, rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(-3, 3))
def test_layer_norm_gives_mean_0_and_variance_1(seed: int, spread: float, shift: float) -> None:
    x = shift + spread * np.random.default_rng(seed).standard_normal((3, 64)).astype(np.float32)
    y = np.asarray(LayerNorm.init(64)(jnp.asarray(x)))
    assert np.allclose(y.mean(-1), 0, atol=1e-3)
    assert np.allclose(y.var(-1), 1, atol=5e-3)


def test_layer_norm_of_a_constant_row_is_its_shift() -> None:
    norm = LayerNorm(jnp.full(4, 2.0), jnp.full(4, 7.0))
    assert np.allclose(norm(jnp.full((1, 4), 1e3)), 7.0, atol=1e-2)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_mlp_is_dense_gelu_norm_then_dense(layer_norm: bool) -> None:
    network = MLP.init(KEY, 3, (8, 8), 2, layer_norm=layer_norm)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    by_hand = x
    for layer in network.layers[:-1]:
        by_hand = gelu(by_hand @ np.asarray(layer.weight) + np.asarray(layer.bias))
        if layer_norm:
            centred = by_hand - by_hand.mean(-1, keepdims=True)
            by_hand = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    by_hand = by_hand @ np.asarray(network.layers[-1].weight)
    assert np.allclose(network(jnp.asarray(x)), by_hand, atol=2e-5)


def test_critic_members_are_different_networks_that_share_nothing() -> None:
    critic = Critic.init(KEY, 3, 2, (8,), layer_norm=True)
    observations, actions = jnp.ones((4, 3)), jnp.zeros((4, 2))
    q = critic(observations, actions)
    assert q.shape == (2, 4)
    assert not np.allclose(q[0], q[1])
    # One member's value has no gradient in the other's weights.
    gradient = jax.grad(lambda critic: critic(observations, actions)[0].sum())(critic)
    for leaf in jax.tree.leaves(gradient):
        assert not leaf[1].any()


def test_first_critic_is_the_first_member() -> None:
    critic = Critic.init(KEY, 3, 2, (8,), layer_norm=True)
    observations = jax.random.normal(KEY, (4, 3))
    actions = jax.random.normal(KEY, (4, 2))
    assert np.allclose(critic.first(observations, actions), critic(observations, actions)[0], atol=1e-6)


def test_value_and_policies_have_one_row_a_state() -> None:
    observations, actions = jnp.ones((4, 3)), jnp.ones((4, 2))
    assert Value.init(KEY, 3, (8,), layer_norm=True)(observations).shape == (4,)
    assert MeanPolicy.init(KEY, 3, 2, (8,), squash=False)(observations).shape == (4, 2)
    assert NoisePolicy.init(KEY, 3, 2, (8,))(observations, actions).shape == (4, 2)


def test_a_squashed_policy_is_the_tanh_of_the_plain_one_and_starts_near_0() -> None:
    observations = jax.random.normal(KEY, (64, 3))
    plain, squashed = (
        MeanPolicy.init(KEY, 3, 2, (64,), squash=squash)(observations) for squash in (False, True)
    )
    assert np.allclose(squashed, np.tanh(plain), atol=1e-6)
    assert np.abs(plain).max() < 0.3


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_flow_is_eulers_method(steps: int) -> None:
    field = VectorField.init(KEY, 3, 2, (8, 8))
    observations, noise = jax.random.normal(KEY, (4, 3)), 0.3 * jax.random.normal(jax.random.key(1), (4, 2))
    x = noise
    for number in range(steps):
        x = x + field(observations, x, jnp.full(4, number / steps)) / steps
    assert np.allclose(field.flow(observations, noise, steps), np.clip(x, -1, 1), atol=1e-5)


def test_flow_ends_within_the_action_bounds() -> None:
    field = VectorField.init(KEY, 3, 2, (8,))
    assert np.abs(field.flow(jnp.ones((4, 3)), jnp.full((4, 2), 9.0), 2)).max() == 1.0


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.floats(-100, 100), st.floats(0.01, 100))
def test_normaliser_has_the_moments_of_all_rows_seen(
    batches: int, seed: int, shift: float, scale: float
) -> None:
    rows = shift + scale * np.random.default_rng(seed).standard_normal((batches, 32, 3)).astype(np.float32)
    normaliser = Normaliser.init(3)
    for batch in rows:
        normaliser = normaliser.include(jnp.asarray(batch, jnp.float32))
    flat = rows.reshape(-1, 3)
    assert np.allclose(normaliser.mean, flat.mean(0), atol=1e-4 * (abs(shift) + scale))
    assert np.allclose(normaliser.variance, flat.var(0), rtol=1e-2, atol=1e-3 * scale**2)


def test_normalised_rows_have_mean_0_and_deviation_1() -> None:
    rows = 50.0 + 4.0 * jax.random.normal(KEY, (256, 3))
    normalised = np.asarray(Normaliser.init(3).include(rows)(rows))
    assert np.allclose(normalised.mean(0), 0, atol=1e-3)
    assert np.allclose(normalised.std(0), 1, atol=1e-3)


def test_a_fresh_normaliser_changes_nothing_much() -> None:
    assert np.allclose(Normaliser.init(2)(jnp.array([[1.0, -2.0]])), [[1, -2]], rtol=2e-3)
