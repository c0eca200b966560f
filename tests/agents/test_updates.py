"""Whole updates of networks that are constants, by hand: which network meets which loss, and which way each one moves.

Adam's first step moves a parameter by exactly the learning rate against the sign of its gradient.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from astro_rl.agents import FQL, IQL, TD3BC, AnyLearner, Batch, LinkedBatch, ReBRAC
from astro_rl.errors import ConfigError
from tests.agents.loops import constant, outputs_of, quick, rows_of

RATE = 0.01
SMALL: dict[str, Any] = {
    "hidden": (4,),
    "batch_size": 2,
    "learning_rate": RATE,
    "discount": 0.5,
    "tau": 0.25,
}
KEY = jax.random.key(0)


@lru_cache
def init(learner: AnyLearner) -> Any:
    return quick(lambda key: learner.init(key, 1, 1))(KEY)


@lru_cache
def updating(learner: AnyLearner) -> Callable[..., Any]:
    return quick(learner.update)


def update(learner: AnyLearner, state: Any, rows: Batch | LinkedBatch, key: Array) -> Any:
    return updating(learner)(state, rows, key)


def batch(actions: float = 0.5, masks: tuple[float, float] = (1.0, 0.0)) -> LinkedBatch:
    """Two transitions with reward 1, the second of them terminal."""
    return rows_of(
        [[0.0], [1.0]],
        [[actions], [actions]],
        1.0,
        masks=masks,
        next_observations=[[1.0], [0.0]],
        next_actions=[[-0.5], [-0.5]],
    )


def plain(rows: LinkedBatch) -> Batch:
    return Batch(*rows[:5])


def iql_state(learner: IQL) -> Any:
    state = init(learner)
    return state._replace(
        value=constant(state.value, 2.0),
        critic=constant(state.critic, [3.0, 1.0]),
        target_critic=constant(state.target_critic, [5.0, 4.0]),
        actor=constant(state.actor, 0.0),
    )


def test_iql_awr_update() -> None:
    learner = IQL(**SMALL, expectile=0.9, alpha=1.0)
    state, info = update(learner, iql_state(learner), plain(batch()), KEY)
    # min Q̄ = 4, V = 2: u = 2, 0.9 · 4 = 3.6
    assert info["value/loss"] == pytest.approx(3.6)
    # y = (1 + 0.5 · 2, 1 + 0) = (2, 1): (3 − 2)² + (1 − 2)² = 2 and (3 − 1)² + (1 − 1)² = 4, mean 3
    assert info["critic/loss"] == pytest.approx(3.0)
    # A = min(3, 1) − 2 = −1; μ = 0 and a = 0.5: e⁻¹ (0.125 + ½ log 2π)
    assert info["actor/advantage_mean"] == pytest.approx(-1.0)
    assert info["actor/loss"] == pytest.approx(np.exp(-1) * (0.125 + 0.5 * np.log(2 * np.pi)), rel=1e-5)
    # V climbs to 4, Q₁ = 3 falls to 1.5, Q₂ = 1 climbs to it, μ climbs to 0.5
    assert outputs_of(state.value) == pytest.approx(2.0 + RATE, abs=1e-5)
    assert outputs_of(state.critic)[:, 0] == pytest.approx([3.0 - RATE, 1.0 + RATE], abs=1e-5)
    assert outputs_of(state.actor) == pytest.approx(RATE, abs=1e-5)
    # ¼ · 2.99 + ¾ · 5 = 4.4975 and ¼ · 1.01 + ¾ · 4 = 3.2525
    assert outputs_of(state.target_critic)[:, 0] == pytest.approx([4.4975, 3.2525], abs=1e-5)
    assert int(state.step) == 1


def test_iql_value_falls_where_it_is_too_high() -> None:
    learner = IQL(**SMALL)
    state = iql_state(learner)._replace(value=constant(iql_state(learner).value, 6.0))
    state, info = update(learner, state, plain(batch()), KEY)
    # u = 4 − 6 = −2: 0.1 · 4
    assert info["value/loss"] == pytest.approx(0.4)
    assert outputs_of(state.value) == pytest.approx(6.0 - RATE, abs=1e-5)


def test_policy_losses_move_no_value() -> None:
    """Where V and Q already are what they are regressed to, only the policy moves."""
    # y = 1 + 0.5 · 2 = 2 everywhere, and V = Q = Q̄ = 2
    data = plain(batch(masks=(1.0, 1.0)))
    iql = IQL(**SMALL, alpha=1.0)
    state = iql_state(iql)._replace(
        value=constant(iql_state(iql).value, 2.0),
        critic=constant(iql_state(iql).critic, [2.0, 2.0]),
        target_critic=constant(iql_state(iql).critic, [2.0, 2.0]),
    )
    after, _ = update(iql, state, data, KEY)
    assert outputs_of(after.value) == pytest.approx(2.0, abs=1e-7)
    assert outputs_of(after.critic) == pytest.approx(2.0, abs=1e-7)
    assert outputs_of(after.actor) == pytest.approx(RATE, abs=1e-5)

    fql = FQL(**SMALL)
    state = init(fql)
    at_rest = constant(state.critic, [2.0, 2.0])
    after, _ = update(fql, state._replace(critic=at_rest, target_critic=at_rest), data, KEY)
    assert outputs_of(after.critic) == pytest.approx(2.0, abs=1e-7)


def critic_that_likes(critic: Any, slope: float) -> Any:
    """A critic with one linear path from the action: Qᵢ = slope · gelu(a + 3) ≈ slope · (a + 3)."""
    zeros = jax.tree.map(jnp.zeros_like, critic)
    first, last = zeros.members.layers
    return eqx.tree_at(
        lambda network: [
            network.members.layers[0].weight,
            network.members.layers[0].bias,
            network.members.layers[1].weight,
        ],
        zeros,
        [first.weight.at[:, 1, 0].set(1.0), first.bias.at[:, 0].set(3.0), last.weight.at[:, 0, 0].set(slope)],
    )


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_policies_climb_q(slope: float) -> None:
    """With imitation off or already satisfied, every policy gradient goes where Q grows."""
    data = batch(actions=0.0)
    iql = IQL(**SMALL, layer_norm=False, actor="ddpgbc", alpha=0.0)
    state = iql_state(iql)
    state, _ = update(iql, state._replace(critic=critic_that_likes(state.critic, slope)), plain(data), KEY)
    assert outputs_of(state.actor) == pytest.approx(slope * RATE, abs=1e-5)

    td3bc = TD3BC(**SMALL)
    state = init(td3bc)
    critic = critic_that_likes(state.critic, slope)
    state, _ = update(
        td3bc, state._replace(critic=critic, actor=constant(state.actor, 0.0)), plain(data), KEY
    )
    assert outputs_of(state.actor) == pytest.approx(slope * RATE, abs=1e-5)

    rebrac = ReBRAC(**SMALL, layer_norm=False, alpha_critic=0.0)
    state = init(rebrac)
    critic = critic_that_likes(state.critic, slope)
    state, _ = update(
        rebrac, state._replace(critic=critic, actor=constant(state.actor, 0.0)), plain(data), KEY
    )
    assert outputs_of(state.actor) == pytest.approx(slope * RATE, abs=1e-5)

    fql = FQL(**SMALL, layer_norm=False, alpha=0.0)
    state = init(fql)
    critic = critic_that_likes(state.critic, slope)
    state, _ = update(fql, state._replace(critic=critic, actor=constant(state.actor, 0.0)), plain(data), KEY)
    assert outputs_of(state.actor) == pytest.approx(slope * RATE, abs=1e-5)


@pytest.mark.parametrize(("how", "next_q"), [("mean", 4.5), ("min", 4.0)])
def test_fql_critic_update(how: Any, next_q: float) -> None:
    learner = FQL(**SMALL, q_aggregation=how)
    state = init(learner)
    state = state._replace(
        critic=constant(state.critic, [3.0, 1.0]), target_critic=constant(state.target_critic, [5.0, 4.0])
    )
    state, info = update(learner, state, plain(batch()), KEY)
    # y = (1 + 0.5 · next_q, 1)
    targets = (1 + 0.5 * next_q, 1)
    by_hand = np.mean([(3 - y) ** 2 + (1 - y) ** 2 for y in targets])
    assert info["critic/loss"] == pytest.approx(by_hand, rel=1e-6)
    # The policy climbs the mean whatever the aggregation: (3 + 1) / 2
    assert info["actor/policy_q"] == pytest.approx(2.0)
    # y averages above 1 and under 3: members close in on it
    assert outputs_of(state.critic)[:, 0] == pytest.approx([3.0 - RATE, 1.0 + RATE], abs=1e-5)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_fql_policy_follows_the_flow(side: float) -> None:
    learner = FQL(**SMALL, flow_steps=4)
    state = init(learner)
    # A velocity of ±20 carries any noise to the bound: x₁ = ±1.
    state = state._replace(
        critic=constant(state.critic, [0.0, 0.0]),
        flow=constant(state.flow, 20.0 * side),
        actor=constant(state.actor, 0.0),
    )
    state, info = update(learner, state, plain(batch()), KEY)
    assert info["actor/distillation"] == pytest.approx(1.0)
    assert outputs_of(state.actor) == pytest.approx(side * RATE, abs=1e-5)
    # No action is 20 away from its noise, so the flow slows down.
    assert outputs_of(state.flow) == pytest.approx(side * (20.0 - RATE), abs=1e-5)


def td3_state(learner: TD3BC | ReBRAC) -> Any:
    state: Any = init(learner)
    return state._replace(
        critic=constant(state.critic, [3.0, 1.0]),
        target_critic=constant(state.target_critic, [5.0, 4.0]),
        actor=constant(state.actor, 0.0),
        target_actor=constant(state.target_actor, 0.0),
    )


def test_td3bc_update() -> None:
    learner = TD3BC(**SMALL)
    state, info = update(learner, td3_state(learner), plain(batch()), KEY)
    # y = (1 + 0.5 · 4, 1) = (3, 1): (0 + 4) and (4 + 0), mean 4
    assert info["critic/loss"] == pytest.approx(4.0)
    # Q₁ against itself: −2.5 · 1, after a critic step of 0.01; (0 − 0.5)² = 0.25
    assert info["actor/q_term"] == pytest.approx(-2.5)
    assert info["actor/policy_q"] == pytest.approx(3.0 - RATE, abs=1e-5)
    assert info["actor/mse"] == pytest.approx(0.25)
    assert outputs_of(state.critic)[:, 0] == pytest.approx([3.0 - RATE, 1.0 + RATE], abs=1e-5)
    # A flat critic leaves imitation: μ = tanh(0) climbs to 0.5, and its target follows by a quarter.
    assert outputs_of(state.actor) == pytest.approx(RATE, abs=1e-5)
    assert outputs_of(state.target_actor) == pytest.approx(RATE / 4, abs=1e-5)
    assert outputs_of(state.target_critic)[:, 0] == pytest.approx([4.4975, 3.2525], abs=1e-5)


def test_rebrac_update() -> None:
    learner = ReBRAC(**SMALL, alpha_actor=1.0, alpha_critic=2.0, policy_noise=0.0, noise_clip=0.0)
    state, info = update(learner, td3_state(learner), batch(), KEY)
    # min Q̄ − 2 · (0 + 0.5)² = 3.5: y = (1 + 0.5 · 3.5, 1) = (2.75, 1)
    # (3 − 2.75)² + (1 − 2.75)² = 3.125 and 4 + 0, mean 3.5625
    assert info["critic/loss"] == pytest.approx(3.5625)
    # min(2.99, 1.01) / itself, and 1 · (0 − 0.5)²
    assert info["actor/q_term"] == pytest.approx(-1.0)
    assert info["actor/policy_q"] == pytest.approx(1.0 + RATE, abs=1e-5)
    assert info["actor/bc_term"] == pytest.approx(0.25)
    assert outputs_of(state.actor) == pytest.approx(RATE, abs=1e-5)


def test_rebrac_asks_for_next_actions_only_when_it_uses_them() -> None:
    learner = ReBRAC(**SMALL, alpha_critic=0.1)
    with pytest.raises(ConfigError, match="action taken next"):
        update(learner, td3_state(learner), plain(batch()), KEY)
    without = ReBRAC(**SMALL, alpha_critic=0.0)
    assert not without.needs_next_actions
    update(without, td3_state(without), plain(batch()), KEY)


@pytest.mark.parametrize("learner", [TD3BC(**SMALL), ReBRAC(**SMALL)], ids=["td3bc", "rebrac"])
def test_delayed_policies_and_targets_move_every_other_update(learner: Any) -> None:
    data = batch() if isinstance(learner, ReBRAC) else plain(batch())
    first, first_info = update(learner, td3_state(learner), data, KEY)
    second, second_info = update(learner, first, data, KEY)
    third, third_info = update(learner, second, data, KEY)
    for part in ("actor", "target_actor", "target_critic"):
        assert np.array_equal(outputs_of(getattr(first, part)), outputs_of(getattr(second, part)))
        assert not np.array_equal(outputs_of(getattr(second, part)), outputs_of(getattr(third, part)))
    assert not np.array_equal(outputs_of(first.critic), outputs_of(second.critic))
    # Between moves the policy's metrics are those of its last one.
    assert first_info["actor/mse"] == second_info["actor/mse"] != third_info["actor/mse"]
