"""What each term of a policy's loss is for, on problems of one or two steps. Flip a term's sign and one of
these fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from astro_rl.agents import BC, FQL, IQL, TD3BC, AnyLearner, LinkedBatch, ReBRAC
from tests.agents.loops import actions_of, rows_of, train, values_of
from tests.agents.test_probes import ACTIONS, DRAW, HERE, SMALL, STEPS

TWO_SIDES = np.where(np.arange(len(HERE)) % 2 == 0, -0.6, 0.6)[:, None]
STATES = DRAW.uniform(-1, 1, HERE.shape)
PEAK = rows_of(HERE, ACTIONS, 3.0 - 4.0 * np.square(ACTIONS - 0.5)[:, 0])
"""Uniform actions; the best is 0.5."""
ASKED = np.linspace(-0.8, 0.8, 5)[:, None]


def samples(learner: AnyLearner, rows: LinkedBatch) -> np.ndarray:
    """256 actions in the one state there is."""
    return actions_of(learner, train(learner, rows, STEPS), HERE[:1], draws=256)[:, 0, 0]


def test_bc_is_the_mean_of_the_data_as_a_function_of_the_state() -> None:
    rows = rows_of(STATES, 0.5 * STATES + 0.1 * DRAW.standard_normal(HERE.shape), 0.0)
    learner = BC(hidden=(32,), batch_size=64, learning_rate=3e-3)
    actions = actions_of(learner, train(learner, rows, STEPS), ASKED)[0]
    assert actions == pytest.approx(0.5 * ASKED, abs=0.08)


@pytest.mark.parametrize(("alpha", "mean"), [(0.0, float(ACTIONS.mean())), (4.0, 0.5)])
def test_awr_goes_from_imitation_to_the_best_action_with_alpha(alpha: float, mean: float) -> None:
    assert samples(IQL(**SMALL, alpha=alpha), PEAK).mean() == pytest.approx(mean, abs=0.1)


def test_awr_imitates_the_better_half() -> None:
    rows = rows_of(HERE, TWO_SIDES, np.where(TWO_SIDES > 0, 1.0, 0.0)[:, 0])
    assert samples(IQL(**SMALL, alpha=10.0), rows).mean() == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize(("expectile", "value"), [(0.5, 0.0), (0.7, 0.4), (0.9, 0.8)])
def test_expectiles_lie_between_mean_and_maximum(expectile: float, value: float) -> None:
    """Of −1 and 1 in equal parts: τ (1 − m) = (1 − τ) (m + 1), so m = 2 τ − 1."""
    learner = IQL(**SMALL, expectile=expectile)
    rows = rows_of(HERE, TWO_SIDES, np.sign(TWO_SIDES)[:, 0])
    # Adam's last steps shake a value by a tenth, hence four seeds.
    values = [values_of(learner, train(learner, rows, STEPS, seed), HERE[:1]) for seed in range(4)]
    assert np.mean(values) == pytest.approx(value, abs=0.1)


Climber = Callable[[float], AnyLearner]
CLIMBERS: dict[str, tuple[Climber, float, float]] = {
    "iql-ddpgbc": (lambda bc: IQL(**SMALL, actor="ddpgbc", alpha=bc), 0.01, 100.0),
    "td3bc": (lambda q: TD3BC(**SMALL, alpha=q), 20.0, 0.0),
    "rebrac": (lambda bc: ReBRAC(**SMALL, alpha_actor=bc, alpha_critic=0.0), 0.01, 100.0),
}


@pytest.mark.parametrize("name", CLIMBERS)
def test_policy_gradients_climb_or_imitate_by_their_weight(name: str) -> None:
    make, climbing, imitating = CLIMBERS[name]
    assert samples(make(climbing), PEAK).mean() == pytest.approx(0.5, abs=0.15)
    assert samples(make(imitating), PEAK).mean() == pytest.approx(0.0, abs=0.15)


def test_fql_flow_and_distillation_reproduce_two_sided_data() -> None:
    """Without a reward the policy's samples are the data's: at −0.6 and 0.6, few between."""
    learner = FQL(**{**SMALL, "hidden": (32, 32)}, alpha=10.0)
    state = train(learner, rows_of(HERE, TWO_SIDES, 0.0), 2 * STEPS)
    drawn = actions_of(learner, state, HERE[:1], draws=256)
    assert np.abs(drawn).mean() == pytest.approx(0.6, abs=0.1)
    assert 0.3 < (drawn > 0).mean() < 0.7
    assert (np.abs(drawn) < 0.3).mean() < 0.15


def test_fql_climbs_q_within_what_the_flow_allows() -> None:
    free, held = samples(FQL(**SMALL, alpha=0.01), PEAK), samples(FQL(**SMALL, alpha=300.0), PEAK)
    assert free.mean() == pytest.approx(0.5, abs=0.15)
    assert free.std() < 0.25
    # Held to the data, samples spread as wide as it does: a uniform draw's deviation is 0.58.
    assert abs(held.mean()) < 0.2
    assert held.std() > 0.4


def test_rebrac_bootstrap_pays_for_actions_that_were_not_taken_next() -> None:
    """Two steps, reward 1 on the last. The policy goes where the data is, 0; what came next is said to have been 1.

    V(start) = γ (1 − α_Q (0 − 1)²) = 0.8 · 0.5.
    """
    first = TWO_SIDES < 0
    rows = rows_of(
        np.sign(TWO_SIDES),
        np.zeros(HERE.shape),
        np.where(first, 0.0, 1.0)[:, 0],
        masks=np.where(first, 1.0, 0.0)[:, 0],
        next_observations=np.ones(HERE.shape),
        next_actions=np.ones(HERE.shape),
    )
    learner = ReBRAC(**SMALL, alpha_actor=100.0, alpha_critic=0.5, policy_noise=0.0, noise_clip=0.0)
    values = values_of(learner, train(learner, rows, STEPS), [[-1.0], [1.0]])
    assert values == pytest.approx([0.4, 1.0], abs=0.08)


def test_td3bc_does_not_care_how_observations_are_scaled() -> None:
    learner = TD3BC(**SMALL, alpha=0.0)
    for shift, scale in ((0.0, 1.0), (5000.0, 1000.0)):
        state = train(learner, rows_of(shift + scale * STATES, 0.5 * STATES, 0.0), STEPS)
        actions = actions_of(learner, state, shift + scale * ASKED)[0]
        assert actions == pytest.approx(0.5 * ASKED, abs=0.08)
