"""Temporal distances: the loss by hand, goals as in appendix B.2.3, steps and back, a line whose answer is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.errors import ConfigError
from astro_rl.temporal.encoder import Encoder, distance
from astro_rl.temporal.goals import sample_goals
from astro_rl.temporal.learning import TemporalData, TemporalLearner
from astro_rl.temporal.steps import distance_from_steps, is_saturated, steps_from_distance
from astro_rl.training.fit import fit_chunk


def linear_encoder(weight: list[list[float]]) -> Encoder:
    """ψ(s) = s·W, as an ensemble of one."""
    encoder = Encoder.init(jax.random.key(0), len(weight), (), len(weight[0]))
    exact = eqx.tree_at(lambda e: e.layers[0].weight, encoder, jnp.asarray(weight))
    return jax.tree.map(lambda leaf: leaf[None], exact)


def test_equation_3_by_hand() -> None:
    """ψ(s) = s on a line, γ = 0.9, expectile 0.95.

    s = 0, s' = 1, g = 3: V(s, g) = -3, V(s', g) = -2, error = -1 + 0.9·(-2) + 3 = 0.2: 0.95·0.04 = 0.038
    s = 0, s' = 1, g = 1: V(s, g) = -1, V(s', g) = 0,  error = -1 + 0 + 1 = 0:                              0
    s = 2, s' = 1, g = 4: V(s, g) = -2, V(s', g) = -3, error = -1 - 2.7 + 2 = -1.7: 0.05·2.89 = 0.1445
    mean = (0.038 + 0 + 0.1445) / 3
    """
    learner = TemporalLearner(members=1, discount=0.9, expectile=0.95)
    encoder = linear_encoder([[1.0]])
    s, s_next, g = (jnp.asarray(x)[:, None] for x in ([0.0, 0.0, 2.0], [1.0, 1.0, 1.0], [3.0, 1.0, 4.0]))
    loss, _ = learner.loss(encoder, encoder, s, s_next, g)
    np.testing.assert_allclose(float(loss), (0.038 + 0.0 + 0.1445) / 3, rtol=1e-4)


def test_equation_3_with_two_members_by_hand() -> None:
    """ψ₁(s) = s, ψ₂(s) = 2 s, γ = 0.9, expectile 0.95: each has its own error, both have one weight.

    s = 0, s' = 1, g = 3: V(s, g) = -3, -6, V(s', g) = -2, -4. Errors: -1 - 1.8 + 3 = 0.2 and -1 - 3.6 + 6 = 1.4.
    The weight goes by the smaller target value against the mean: -1 + 0.9·(-4) + 4.5 = -0.1 < 0: 0.05 for both,
    though either error alone is positive. Mean: 0.05·(0.04 + 1.96) / 2 = 0.05.
    """
    learner = TemporalLearner(members=2, discount=0.9, expectile=0.95)
    members = [linear_encoder([[weight]]) for weight in (1.0, 2.0)]
    encoder = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *members)
    s, s_next, g = (jnp.full((1, 1), x) for x in (0.0, 1.0, 3.0))
    loss, _ = learner.loss(encoder, encoder, s, s_next, g)
    np.testing.assert_allclose(float(loss), 0.05, rtol=1e-4)


def test_an_update_moves_the_target_by_its_rate_and_no_further() -> None:
    learner = TemporalLearner(hidden=(8,), latent=2, members=1, batch_size=4, target_rate=0.25)
    walk = jnp.arange(6.0)[:, None]
    data = TemporalData(walk, jnp.arange(5), jnp.full(6, 5))
    before = learner.init(jax.random.key(0), 1)
    after, _ = learner.update(before, data, jax.random.key(1))
    for old, online, target in zip(
        *map(jax.tree.leaves, (before.target, after.encoder, after.target)), strict=True
    ):
        np.testing.assert_allclose(target, 0.75 * old + 0.25 * online, rtol=1e-6, atol=1e-7)
    assert not np.array_equal(before.encoder.layers[0].weight, after.encoder.layers[0].weight)


def test_distance_is_symmetric_and_its_gradient_is_finite_at_zero() -> None:
    a, b = jnp.asarray([3.0, 0.0]), jnp.asarray([0.0, 4.0])
    assert float(distance(a, b)) == pytest.approx(5.0) == float(distance(b, a))
    assert np.isfinite(np.asarray(jax.grad(lambda x: distance(x, a))(a))).all()


@pytest.mark.parametrize(("steps", "read"), [(130, 72.9), (450, 98.9)])
def test_a_discounted_distance_saturates_as_the_design_says(steps: float, read: float) -> None:
    assert float(distance_from_steps(jnp.asarray(float(steps)), 0.99)) == pytest.approx(read, abs=0.1)


def test_steps_and_distance_undo_each_other_below_saturation_and_clamp_above() -> None:
    steps = jnp.asarray([0.0, 1.0, 18.0, 100.0, 400.0])
    np.testing.assert_allclose(
        steps_from_distance(distance_from_steps(steps, 0.99), 0.99), steps, rtol=1e-3, atol=1e-3
    )
    far = jnp.asarray([99.5, 200.0])
    assert bool(is_saturated(far, 0.99).all())
    assert np.isfinite(np.asarray(steps_from_distance(far, 0.99))).all()


def test_goals_are_never_the_state_itself_and_stay_in_the_future_or_anywhere() -> None:
    rows = jnp.tile(jnp.asarray([0, 5, 8, 12]), 5000)
    last = jnp.tile(jnp.asarray([9, 9, 9, 19]), 5000)
    goals = np.asarray(sample_goals(jax.random.key(0), rows, last, 20, discount=0.9, future_share=0.625))
    assert (goals != np.asarray(rows)).all()
    assert goals.min() >= 0
    assert goals.max() <= 19
    only_future = sample_goals(jax.random.key(0), rows, last, 20, discount=0.9, future_share=1.0)
    offset = np.asarray(only_future - rows)
    assert (offset >= 1).all()
    assert (np.asarray(only_future) <= np.asarray(last)).all()
    # P(offset = 1) of a geometric variable is 1 − γ; row 0 has room for nine.
    first = offset[np.asarray(rows) == 0]
    assert np.mean(first == 1) == pytest.approx(0.1, abs=0.02)
    assert np.mean(first == 2) == pytest.approx(0.09, abs=0.02)


def test_a_line_walked_back_and_forth_is_measured_in_steps() -> None:
    """States 0 … 10 in a row, walked from end to end and back: the shortest time is the distance along the line."""
    there = np.arange(11.0)
    walk = np.concatenate([there, there[::-1][1:]] * 3)[:, None].astype(np.float32)
    rows = len(walk)
    data = TemporalData(
        jnp.asarray((walk - 5) / 3), jnp.arange(rows - 1), jnp.full(rows, rows - 1, jnp.int32)
    )
    learner = TemporalLearner(
        hidden=(64, 64),
        latent=8,
        members=1,
        discount=0.95,
        batch_size=128,
        learning_rate=1e-3,
        target_rate=0.02,
    )
    state, info = fit_chunk(learner, learner.init(jax.random.key(0), 1), data, jax.random.key(1), 0, 3000)
    member = jax.tree.map(lambda leaf: leaf[0], state.encoder)
    latents = member(jnp.asarray((there[:, None] - 5) / 3, jnp.float32))
    measured = np.asarray(steps_from_distance(distance(latents[:, None], latents[None]), 0.95))
    truth = np.abs(there[:, None] - there[None])
    assert np.isfinite(float(info["loss"]))
    assert np.median(np.abs(measured - truth)[truth > 0] / truth[truth > 0]) < 0.15


def test_settings_out_of_range_are_refused() -> None:
    for change in ({"expectile": 0.4}, {"discount": 1.0}, {"future_share": 1.5}):
        with pytest.raises(ConfigError):
            TemporalLearner(**change)  # type: ignore[arg-type]
