"""Five small problems with known answers, in order of what has to work for them (after rejax's probes).

1. one state, one reward          the critic regresses
2. reward is the state            it sees observations
3. two steps, reward at the end   it bootstraps, discounts and stops at terminations
4. reward is 1 + action           the policy improves
5. reward is 1 + action · state   both at once

Data actions are uniform in [−1, 1]; states, where there are two, are −1 and 1. Rewards that depend on the action stay
positive because three policies divide by mean |Q|: around Q = 0 that gradient explodes and Adam remembers it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astro_rl.agents import FQL, IQL, TD3BC, AnyLearner, LinkedBatch, ReBRAC
from tests.agents.loops import actions_of, rows_of, train, values_of

GAMMA, ROWS, STEPS = 0.8, 512, 1000
SMALL: dict[str, Any] = {
    "hidden": (32,),
    "batch_size": 64,
    "learning_rate": 3e-3,
    "discount": GAMMA,
    "tau": 0.05,
}
LEARNERS: dict[str, AnyLearner] = {
    "iql-awr": IQL(**SMALL, alpha=4.0),
    "iql-ddpgbc": IQL(**SMALL, actor="ddpgbc", alpha=0.05),
    "fql": FQL(**SMALL, alpha=0.1),
    "td3bc": TD3BC(**SMALL, alpha=10.0),
    "rebrac": ReBRAC(**SMALL, alpha_actor=0.1, alpha_critic=0.0),
}
DRAW = np.random.default_rng(0)
ACTIONS = DRAW.uniform(-1, 1, (ROWS, 1))
SIDES = DRAW.choice([-1.0, 1.0], (ROWS, 1))
HERE = np.ones((ROWS, 1))


@pytest.fixture(params=LEARNERS.values(), ids=list(LEARNERS))
def learner(request: pytest.FixtureRequest) -> AnyLearner:
    return request.param


def learned(learner: AnyLearner, rows: LinkedBatch, states: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """V and the policy's mean action in each of the states."""
    state = train(learner, rows, STEPS)
    asked = np.array(states)[:, None]
    return values_of(learner, state, asked), actions_of(learner, state, asked, draws=64).mean(axis=0)[:, 0]


def test_one_state_one_reward(learner: AnyLearner) -> None:
    values, _ = learned(learner, rows_of(HERE, ACTIONS, 1.0), [1.0])
    assert values == pytest.approx([1.0], abs=0.05)


def test_reward_is_the_state(learner: AnyLearner) -> None:
    values, _ = learned(learner, rows_of(SIDES, ACTIONS, SIDES[:, 0]), [-1.0, 1.0])
    assert values == pytest.approx([-1.0, 1.0], abs=0.1)


def test_two_steps(learner: AnyLearner) -> None:
    """State −1 leads to 1 without a reward; leaving 1 earns 1 and ends."""
    first = SIDES < 0
    rows = rows_of(
        SIDES,
        ACTIONS,
        np.where(first, 0.0, 1.0)[:, 0],
        masks=np.where(first, 1.0, 0.0)[:, 0],
        # What lies beyond a termination must not matter, so let it be somewhere absurd.
        next_observations=np.where(first, 1.0, 5.0),
    )
    values, _ = learned(learner, rows, [-1.0, 1.0])
    assert values == pytest.approx([GAMMA, 1.0], abs=0.08)


def check_best_action(learner: AnyLearner, value: float, action: float) -> None:
    """What each learner makes of uniform actions a that earn 1 + a.

    IQL's V is 1 + m, m the actions' 0.9 expectile: 0.9 ∫ₘ¹ (a − m) da = 0.1 ∫₋₁ᵐ (m − a) da, so
    (1 − m) / (1 + m) = 1/3 and m = 0.5. AWR's policy is their mean under exp(α a): coth α − 1/α. The others go to
    the best action and value that.
    """
    if isinstance(learner, IQL):
        assert value == pytest.approx(1.5, abs=0.15)
    else:
        assert value == pytest.approx(1.0 + action, abs=0.15)
    if isinstance(learner, IQL) and learner.actor == "awr":
        assert learner.alpha is not None
        assert action == pytest.approx(1.0 / math.tanh(learner.alpha) - 1.0 / learner.alpha, abs=0.1)
    else:
        assert action > 0.8


def test_reward_is_the_action(learner: AnyLearner) -> None:
    values, actions = learned(learner, rows_of(HERE, ACTIONS, 1.0 + ACTIONS[:, 0]), [1.0])
    check_best_action(learner, values[0], actions[0])


def test_reward_is_the_action_times_the_state(learner: AnyLearner) -> None:
    values, actions = learned(learner, rows_of(SIDES, ACTIONS, 1.0 + (ACTIONS * SIDES)[:, 0]), [-1.0, 1.0])
    check_best_action(learner, values[0], -actions[0])
    check_best_action(learner, values[1], actions[1])
