"""Every loss against arithmetic worked by hand."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.agents.bc import imitation_loss
from astro_rl.agents.fql import aggregate, flow_loss, interpolate, one_step_loss
from astro_rl.agents.iql import awr_loss, ddpgbc_loss, value_loss
from astro_rl.agents.losses import (
    gaussian_log_prob,
    reciprocal_scale,
    smoothed,
    squared_distance,
    td_loss,
    td_target,
)
from astro_rl.agents.rebrac import penalised
from astro_rl.agents.rebrac import policy_loss as rebrac_policy_loss
from astro_rl.agents.td3bc import policy_loss as td3bc_policy_loss

LOG_2PI = math.log(2 * math.pi)


def floats(*values: float) -> jax.Array:
    return jnp.asarray(values, jnp.float32)


def test_td_target_discounts_and_stops_at_terminations() -> None:
    # 1 + 0.5 · 1 · 4 = 3;  −1 + 0.5 · 0 · 4 = −1
    assert td_target(floats(1, -1), floats(1, 0), floats(4, 4), 0.5).tolist() == [3, -1]


def test_td_loss_sums_members_and_averages_the_batch() -> None:
    # Q₁ − y = (1, −1), Q₂ − y = (2, 0): Σᵢ squares = (1 + 4, 1 + 0) = (5, 1), mean 3
    loss, info = td_loss(jnp.array([[4.0, 0.0], [5.0, 1.0]]), floats(3, 1))
    assert loss == 3
    # mean of 4, 0, 5, 1 is 2.5; mean of 3, 1 is 2
    assert (info["critic/q_mean"], info["critic/q_max"], info["critic/q_min"]) == (2.5, 5, 0)
    assert info["critic/target_mean"] == 2


def test_gaussian_log_prob() -> None:
    # a − μ = (0.5, −1): −½ (0.25 + 1) − 2 · ½ log 2π = −0.625 − log 2π
    log_prob = gaussian_log_prob(jnp.array([[0.5, 1.0]]), jnp.array([[1.0, 0.0]]))
    assert log_prob == pytest.approx(-0.625 - LOG_2PI)


def test_squared_distance_sums_dimensions() -> None:
    # (1 − 0)² + (2 − 4)² = 5
    assert squared_distance(jnp.array([[1.0, 2.0]]), jnp.array([[0.0, 4.0]])).tolist() == [5]


def test_reciprocal_scale_is_of_absolute_values() -> None:
    # mean of |−3|, |1| = 2
    assert reciprocal_scale(floats(-3, 1)) == 0.5


def test_smoothing_clips_noise_and_actions() -> None:
    actions = jnp.array([[0.9], [0.0], [-0.9]] * 1000)
    offsets = smoothed(actions, jax.random.key(0), noise=10.0, clip=0.5) - actions
    # Noise of deviation 10 is nearly always beyond the clip: ±0.5, or what the bound of 1 leaves.
    assert {round(float(x), 4) for x in np.quantile(offsets[1::3], [0.05, 0.95])} == {-0.5, 0.5}
    assert float(offsets[0::3].max()) == pytest.approx(0.1)
    assert float(offsets[2::3].min()) == pytest.approx(-0.1)


def test_smoothing_noise_has_the_given_deviation() -> None:
    offsets = smoothed(jnp.zeros((20_000, 1)), jax.random.key(1), noise=0.1, clip=0.9)
    assert float(offsets.std()) == pytest.approx(0.1, rel=0.03)


def test_iql_value_loss_weighs_a_value_too_low_by_the_expectile() -> None:
    # u = Q̄ − V = (2, −1): 0.9 · 4 = 3.6 and 0.1 · 1 = 0.1, mean 1.85
    loss, info = value_loss(floats(1, 3), floats(3, 2), 0.9)
    assert loss == pytest.approx(1.85)
    assert (info["value/v_mean"], info["value/v_max"], info["value/v_min"]) == (2, 3, 1)


def test_iql_awr_loss_weighs_log_probs_and_caps_the_weight() -> None:
    # A = (0.5, −0.5, 3), α = 2: exp → (e, 1/e, e⁶ = 403 → 100)
    # a − μ = (0, 1, 0): log π = −½ log 2π − (0, 0.5, 0)
    means, actions = jnp.array([[0.0], [0.0], [1.0]]), jnp.array([[0.0], [1.0], [1.0]])
    loss, info = awr_loss(means, actions, floats(0.5, -0.5, 3), 2.0, 100.0)
    half = LOG_2PI / 2
    weights = (math.e, 1 / math.e, 100)
    by_hand = (weights[0] * half + weights[1] * (half + 0.5) + weights[2] * half) / 3
    assert loss == pytest.approx(by_hand, rel=1e-6)
    assert info["actor/weight_mean"] == pytest.approx(sum(weights) / 3)
    assert info["actor/advantage_mean"] == pytest.approx(1)
    assert info["actor/log_prob"] == pytest.approx(-(3 * half + 0.5) / 3)
    assert info["actor/mse"] == pytest.approx(1 / 3)


def test_iql_ddpgbc_loss_climbs_normalised_q_and_imitates() -> None:
    # Q = (−3, 1): −mean / mean|Q| = 1 / 2.  a − μ = (1, 0): −log π = ½ log 2π + (0.5, 0), mean ½ log 2π + 0.25
    loss, info = ddpgbc_loss(jnp.array([[0.0], [0.0]]), jnp.array([[1.0], [0.0]]), floats(-3, 1), 0.1)
    assert info["actor/q_term"] == pytest.approx(0.5)
    assert info["actor/bc_term"] == pytest.approx(0.1 * (LOG_2PI / 2 + 0.25))
    assert loss == pytest.approx(0.5 + 0.1 * (LOG_2PI / 2 + 0.25))


@pytest.mark.parametrize(
    ("policy_loss", "slope"),
    [
        (lambda q, zeros: ddpgbc_loss(zeros, zeros, q, 0.1), -0.25),
        (lambda q, zeros: one_step_loss(zeros, zeros, q, 1.0, normalise_q=True), -0.25),
        (lambda q, zeros: td3bc_policy_loss(zeros, zeros, q, 2.0), -0.5),
        (lambda q, zeros: rebrac_policy_loss(zeros, zeros, q, 0.1), -0.25),
    ],
    ids=["ddpgbc", "fql", "td3bc", "rebrac"],
)
def test_the_scale_of_q_carries_no_gradient(policy_loss: Any, slope: float) -> None:
    # ∂/∂Qᵢ of −α mean(Q) · stop(1 / mean|Q|) at Q = (2, 2) is −α · ½ · ½; with the scale inside, it would be 0.
    gradient = jax.grad(lambda q: policy_loss(q, jnp.zeros((2, 1)))[0])(floats(2, 2))
    assert gradient.tolist() == [slope, slope]


def test_fql_aggregation() -> None:
    q = jnp.array([[1.0, 5.0], [3.0, 1.0]])
    assert aggregate(q, "mean").tolist() == [2, 3]
    assert aggregate(q, "min").tolist() == [1, 1]


def test_fql_path_runs_from_noise_to_action() -> None:
    source, actions = jnp.array([[4.0], [4.0], [4.0]]), jnp.array([[0.0], [0.0], [0.0]])
    # (1 − t) · 4 + t · 0 at t = 0, ¼, 1
    assert interpolate(source, actions, floats(0, 0.25, 1))[:, 0].tolist() == [4, 3, 0]


def test_fql_flow_loss_compares_with_the_lines_velocity() -> None:
    # a − z = (1 − 0.5, 0 − 1) = (0.5, −1); v − that = (0.5, 2): (0.25 + 4) / 2 = 2.125
    loss, _ = flow_loss(jnp.array([[1.0, 1.0]]), jnp.array([[0.5, 1.0]]), jnp.array([[1.0, 0.0]]))
    assert loss == 2.125


@pytest.mark.parametrize(("normalise", "q_term"), [(False, -2.0), (True, -2.0 / 3.0)])
def test_fql_one_step_loss(normalise: bool, q_term: float) -> None:
    # μ − x₁ = (0.5, −1): (0.25 + 1) / 2 = 0.625, times α = 4 is 2.5.  Q = (5, −1): mean 2, mean |Q| 3
    loss, info = one_step_loss(
        jnp.array([[0.5], [0.0]]), jnp.array([[0.0], [1.0]]), floats(5, -1), 4.0, normalise_q=normalise
    )
    assert info["actor/distillation"] == 0.625
    assert info["actor/q_term"] == pytest.approx(q_term)
    assert loss == pytest.approx(2.5 + q_term)


def test_bc_loss() -> None:
    # a − μ = (0.5, −1): ½ · 1.25 + log 2π
    loss, info = imitation_loss(jnp.array([[0.5, 1.0]]), jnp.array([[1.0, 0.0]]))
    assert loss == pytest.approx(0.625 + LOG_2PI)
    assert info["actor/mse"] == 0.625


def test_td3bc_policy_loss() -> None:
    # Q₁ = (−3, 1): mean −1, mean |Q| 2, so −2.5 · −1 / 2 = 1.25.  Squares (1, 0, 0, 4) average 1.25
    means, actions = jnp.array([[1.0, 0.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [0.0, 2.0]])
    loss, info = td3bc_policy_loss(means, actions, floats(-3, 1), 2.5)
    assert info["actor/q_term"] == 1.25
    assert info["actor/mse"] == 1.25
    assert loss == 2.5


def test_rebrac_policy_loss_sums_dimensions() -> None:
    # Q = (−3, 1): 1 / 2.  ‖·‖² = (1, 4): mean 2.5, times 0.2 is 0.5; averaged over the 2 dimensions too, 1.25
    means, actions = jnp.array([[1.0, 0.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [0.0, 2.0]])
    loss, info = rebrac_policy_loss(means, actions, floats(-3, 1), 0.2)
    assert (info["actor/q_term"], info["actor/bc_term"], info["actor/mse"]) == (0.5, 0.5, 1.25)
    assert loss == 1.0


def test_rebrac_target_pays_for_leaving_the_data_where_the_next_action_is_known() -> None:
    # ‖(1, 0) − (0, 2)‖² = 5: 3 − 0.1 · 5 = 2.5, and 3 where a trajectory ends
    ours, theirs = jnp.array([[1.0, 0.0]] * 2), jnp.array([[0.0, 2.0]] * 2)
    assert penalised(floats(3, 3), ours, theirs, floats(1, 0), 0.1).tolist() == [2.5, 3]
