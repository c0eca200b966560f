"""The dynamics model's figures by hand, and over held-out data whose answer is known."""

import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.data.normaliser import Normaliser
from astro_rl.dynamics.metrics import compare, rollout_error, window_batches
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import sequence_data
from tests.dynamics.stub_networks import PLAIN, StubNetwork, sums_of_actions, walks


def test_errors_by_hand() -> None:
    """Two sequences of three states in two dimensions; real states are all 0, so the error is the prediction.

    first sequence 0 | (3, 4) | (1, 0), second 0 | (0, 0) | (0, 2). Spread (2, 1), typical step (1, 2).
    normalised MSE over steps 1 and 2: (9 + 16 + 1 + 0 + 0 + 0 + 0 + 4) / 8 = 3.75; at step 1: 25 / 4, at 2: 5 / 4
    plane, in units: step 1 |(6, 4)| = 7.2111 and 0, median 3.6056; step 2 |(2, 0)| = 2 and |(0, 2)| = 2, median 2
    changes in typical steps: (3, 2), (−2, −2), (0, 0), (0, 1): (9 + 4 + 4 + 4 + 1) / 8 = 2.75
    """
    predicted = np.asarray([[[0, 0], [3, 4], [1, 0]], [[0, 0], [0, 0], [0, 2]]], np.float32)
    normaliser = Normaliser(*(np.asarray(v, np.float32) for v in ([5, 5], [2, 1], [2, 1])))
    found = compare(
        predicted, np.zeros((2, 3, 2), np.float32), normaliser, np.asarray([1, 2], np.float32), (0, 1), (1, 2)
    )
    assert found.sequences == 2
    assert found.normalised_mse == pytest.approx(30 / 8)
    assert found.mse_at == pytest.approx((25 / 4, 5 / 4))
    assert found.xy == pytest.approx((np.sqrt(52) / 2, 2.0))
    assert found.step_mse == pytest.approx(22 / 8)
    assert compare(predicted, predicted, normaliser, np.ones(2, np.float32), None, (1,)).xy is None


def test_a_perfect_model_has_no_error_and_a_still_one_errs_by_the_distance_walked() -> None:
    """Walks at ±0.5: a model that says "nothing moves" is off by 0.5·k at step k."""
    held_out = walks((0.5, -0.5), 10)
    dynamics = Dynamics(6, 1, 1, predicts="clean")
    settings = {"xy": None, "at": (2, 5), "sequences": 8, "batch": 4}
    exact = rollout_error(dynamics, StubNetwork(sums_of_actions), held_out, PLAIN, **settings)  # type: ignore[arg-type]
    assert exact.sequences == 8
    assert exact.mse_at == pytest.approx((0, 0), abs=1e-8)
    still = StubNetwork(lambda p, steps, level, extras: steps[:, :, 1:2])
    found = rollout_error(dynamics, still, held_out, PLAIN, **settings)  # type: ignore[arg-type]
    assert found.mse_at == pytest.approx((1.0, 6.25))
    assert found.normalised_mse == pytest.approx(0.25 * (1 + 4 + 9 + 16 + 25) / 5)
    assert found.step_mse == pytest.approx(1.0)


def test_one_seed_draws_the_same_windows_for_every_model() -> None:
    data = sequence_data(walks((0.5, -0.5), 10), PLAIN, 6)
    drawn = [np.asarray(batch) for batch in window_batches(data, 10, 4, seed=3)]
    assert [len(batch) for batch in drawn] == [4, 4, 4]
    again = list(window_batches(data, 10, 4, seed=3))
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert set(np.concatenate(drawn).tolist()) <= set(np.asarray(data.starts).tolist())
    assert not np.array_equal(drawn[0], np.asarray(next(window_batches(data, 10, 4, seed=4))))
    assert data.observations.dtype == jnp.float32
