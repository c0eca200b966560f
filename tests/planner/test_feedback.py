"""δ, eq. (11), by hand: what is compared with what, at which noise level, and how the planner is told."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.planner.feedback import FLOOR, Deviation, Feedback
from tests.dynamics.stub_networks import StubNetwork, sums_of_actions
from tests.planner.stub_planner import HALF, flags, one, rows

PERFECT = StubNetwork(sums_of_actions)
LINE = Dynamics(4, 1, 1, predicts="clean")


def test_equation_11_by_hand() -> None:
    """From 0, actions 1, 2, 3 lead to 0, 1, 3, 6; wanted are 0, 1, 1, 2, the third state masked.

    known: (0² + 4²) / 2 = 8. full: (0² + 2² + 4²) / 3 = 20/3. The first state is given and does not count.
    """
    states, actions, noisy = rows(0, 1, 1, 2), rows(1, 2, 3, 9), rows(7, 7, 7, 7)
    found = Feedback().measure(LINE, PERFECT, states, flags(1, 1, 0, 1), actions, noisy, one(1))
    assert float(found.total[0]) == pytest.approx(8.0)
    np.testing.assert_allclose(found.residual[0, :, 0], [0, 0, 0, 4])
    np.testing.assert_allclose(found.rolled[0, :, 0], [0, 1, 3, 6])
    full = Feedback().measure(LINE, PERFECT, states, flags(1, 1, 1, 1), actions, noisy, one(1))
    assert float(full.total[0]) == pytest.approx(20 / 3)


def test_the_dynamics_model_is_asked_with_the_noisy_states_at_their_own_level() -> None:
    """A network that answers 10·(noisy state) + level: from 5, 6 at level 0.25 it says 50.25, 60.25."""
    network = StubNetwork(lambda p, steps, level, extras: 10 * steps[:, :, :1] + level[:, None, None])
    found = Feedback().measure(
        Dynamics(3, 1, 1, predicts="clean"),
        network,
        rows(1, 2, 3),
        flags(1, 1, 1),
        rows(0, 0, 0),
        rows(4, 5, 6),
        one(0.25),
    )
    np.testing.assert_allclose(found.rolled[0, :, 0], [1, 50.25, 60.25])


def test_the_gradient_of_delta_reaches_the_actions() -> None:
    """δ = (a₀ − s₁)²: its slope at a₀ = 3, s₁ = 1 is 4."""

    def delta(action: jax.Array) -> jax.Array:
        line = Dynamics(2, 1, 1, predicts="clean")
        tried = jnp.stack([action, jnp.zeros(())])[None, :, None]
        return Feedback().measure(
            line, PERFECT, rows(0, 1), flags(1, 1), tried, rows(0, 0), one(1)
        ).total[0]  # fmt: skip

    assert float(jax.grad(delta)(jnp.asarray(3.0))) == pytest.approx(4.0)


def test_at_the_default_level_training_sees_pure_noise_as_inference_does() -> None:
    states = jnp.full((2000, 2, 1), 50.0)
    noisy, level = Feedback().noisy_states(LINE, PERFECT, states, jnp.zeros((2000, 2, 1)), jax.random.key(0))
    assert (np.asarray(level) == 1.0).all()
    assert float(noisy.mean()) == pytest.approx(0.0, abs=0.05)
    assert float(noisy.std()) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("own_share", "places"), [(0.0, {30.0}), (1.0, {50.0}), (0.5, {30.0, 50.0})])
def test_noisy_states_come_from_real_states_or_from_the_models_own_estimate(
    own_share: float, places: set[float]
) -> None:
    """Real states stand at 30, the model says 50. (τ_t − √(1 − ᾱ) z) / √ᾱ gives one of them back, up to noise."""
    count = 1000
    says_50 = StubNetwork(lambda p, steps, level, extras: 0 * steps[:, :, :1] + 50.0)
    dynamics = Dynamics(2, 1, 1, predicts="clean", schedule=HALF)
    feedback = Feedback(levels=(0.2, 0.4), self_generated=own_share)
    noisy, level = feedback.noisy_states(
        dynamics, says_50, jnp.full((count, 2, 1), 30.0), jnp.zeros((count, 2, 1)), jax.random.key(0)
    )
    assert 0.2 <= float(level.min()) < 0.21 and 0.39 < float(level.max()) <= 0.4
    scaled = np.asarray(noisy[:, 1, 0] / jnp.sqrt(HALF.alpha_bar(level)))
    nearest = np.where(np.abs(scaled - 30) < np.abs(scaled - 50), 30.0, 50.0)
    assert set(nearest) == places
    assert (np.abs(scaled - nearest) < 5).all()
    assert np.mean(nearest == 50) == pytest.approx(own_share, abs=0.05)


def test_at_inference_the_level_of_delta_falls_with_the_planners() -> None:
    np.testing.assert_allclose(
        Feedback(levels=(0.2, 0.8)).level_at(jnp.asarray([0.0, 0.5, 1.0])), [0.2, 0.5, 0.8]
    )


def told(
    kind: str, total: float, residual: list[list[float]], present: float
) -> tuple[np.ndarray, np.ndarray]:
    values = jnp.asarray(residual, jnp.float32)[None]
    feedback = Feedback(kind=kind)  # type: ignore[arg-type]
    whole, steps = feedback.shown(Deviation(one(total), values, values), one(present))
    assert steps.shape[-1] == feedback.step_channels(values.shape[-1])
    return np.asarray(whole[0]), np.asarray(steps[0])


def test_delta_is_told_on_a_log_scale_with_a_flag_that_there_is_one() -> None:
    """δ = 0 is 0, δ = 1 − 1e-4 is 1, and δ = 0.0099 is (log 0.01 − log 0.0001) / −log 0.0001 = 1/2."""
    for delta, size in ((0.0, 0.0), (1 - FLOOR, 1.0), (0.01 - FLOOR, 0.5)):
        whole, steps = told("scalar", delta, [[1.0], [2.0]], 1.0)
        np.testing.assert_allclose(whole, [size, 1.0], atol=1e-4)
        assert steps.shape == (2, 0)


def test_per_step_feedback_by_hand() -> None:
    """Residual (0.1, 0.1) has the mean square 0.01: (log 0.0101 − log 0.0001) / −log 0.0001 = 0.5011. One of 5 is cut
    at 3."""
    _, steps = told("steps", 0.5, [[0.0, 0.0], [0.1, 0.1]], 1.0)
    assert steps.shape == (2, 1)
    np.testing.assert_allclose(steps[:, 0], [0.0, math.log(101) / math.log(10_000)], atol=1e-4)
    _, steps = told("residual", 0.5, [[0.0, -0.2], [5.0, -5.0]], 1.0)
    np.testing.assert_allclose(steps, [[0.0, -0.2], [3.0, -3.0]])


@pytest.mark.parametrize("kind", ["none", "scalar", "steps", "residual"])
def test_without_a_delta_yet_nothing_is_told(kind: str) -> None:
    whole, steps = told(kind, 0.5, [[1.0], [2.0]], 0.0)
    assert not whole.any() and not steps.any()


def test_feedback_that_is_off_tells_nothing_ever() -> None:
    whole, steps = told("none", 0.5, [[1.0], [2.0]], 1.0)
    assert not whole.any() and steps.shape == (2, 0)


def test_levels_out_of_order_are_refused() -> None:
    for levels in ((0.0, 0.5), (0.6, 0.5), (0.5, 1.1)):
        with pytest.raises(ConfigError, match="Levels of feedback"):
            Feedback(levels=levels)
