"""Q(s, π(s)) of a learner whose critic adds up what it is given."""

import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.data import from_arrays
from astro_rl.errors import DataError
from astro_rl.quality.values import policy_values, run_values
from astro_rl.run.policy import Policy
from tests.training.stubs import Regressor, SumState


def policy(*weights: float, dims: int = 2) -> Policy:
    """π(s) = clip(weight · sum of s), a weight a seed; Q(s, a) = sum of s + a."""
    seeds = len(weights)
    stacked = jnp.broadcast_to(jnp.array(weights)[:, None, None], (seeds, dims, 1))
    states = SumState(stacked, jnp.zeros((seeds, dims)), jnp.zeros(seeds, jnp.int32))
    return Policy(Regressor(), states, tuple(range(seeds)), dims, 1)


# Cells of side 1 over x in [0, 2]: two states left of 1, two right of it.
DATA = from_arrays(
    np.array([(0.0, 0), (0.5, 0), (1.5, 0), (2.0, 0)], np.float32),
    np.zeros((4, 1), np.float32),
    offsets=[0, 4],
)


def test_each_seed_is_asked_about_its_own_actions() -> None:
    q = policy_values(policy(0.0, 1.0), np.asarray(DATA.observations))
    np.testing.assert_allclose(q[0], [0, 0.5, 1.5, 2.0])
    np.testing.assert_allclose(q[1], [0, 0.5 + 0.5, 1.5 + 1.0, 2.0 + 1.0], err_msg="actions end at 1")


def test_q_mean_is_over_states_and_seeds_of_all_an_arms_runs() -> None:
    found = run_values("after", [policy(0.0), policy(1.0)], DATA, xy=(0, 1), across=2)
    assert (found.seeds, found.states) == (2, 4)
    assert found.q_mean == pytest.approx((4.0 + 6.5) / 8)
    assert found.q_std == pytest.approx((6.5 / 4 - 1.0) / 2)
    assert found.map is not None and found.map.side == 1.0
    # Cells [0, 1), [1, 2) and, at its upper end, [2, 3).
    assert found.map.x == (0.5, 1.5, 2.5) and found.map.y == (0.5, 0.5, 0.5)
    assert found.map.states == (2, 1, 1)
    np.testing.assert_allclose(found.map.q, [(0.25 + 0.5) / 2, 2.0, 2.5])


def test_runs_of_other_data_are_refused() -> None:
    with pytest.raises(DataError, match="another size"):
        run_values("after", [policy(1.0, dims=3)], DATA)
