"""Algorithm 2 step by step: planners that answer with what they were told show when δ is measured and of what."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Completer, Sampling, known_error, plan
from astro_rl.planner.feedback import Feedback
from astro_rl.planner.masks import pattern
from astro_rl.planner.metrics import completion_error
from astro_rl.stitch.geometry import ChainShape
from tests.dynamics.stub_networks import PLAIN, StubNetwork, sums_of_actions, walks
from tests.planner.stub_planner import NO_FEEDBACK, TENTH, flags, planner_of, rows, size_of

WORLD = StubNetwork(sums_of_actions)
TOLD = StubNetwork(lambda p, steps, level, extras: 0.25 + extras[:, :1, None] + 0 * steps[:, :, :1])
"""Plans 0.25 plus the size of δ that it is told."""
WANTED = rows(0, 0.25 + TENTH)
"""From 0 to 0.3495: an action of 0.25 misses by √0.0099, which is told as size ½."""


def planned(
    network: StubNetwork, steps: int, states: Any = WANTED, world: StubNetwork = WORLD, **changes: Any
):
    """The first action after `steps` denoisings."""
    planner = planner_of(2, **changes)
    sampling = Sampling(plan_steps=steps, sampler="ddim", refine=0, polish=0)
    actions = plan(planner, sampling, network, world, jax.random.key(0), states, flags(1, 1))
    assert float(actions[0, 1, 0]) == 0.0, "the last action leads out of the sequence"
    return float(actions[0, 0, 0])


def test_each_step_is_told_the_delta_of_the_plan_before_it() -> None:
    """T = 1: nothing is known yet, 0.25. T = 2: δ(0.25) = 0.0099, size ½: 0.75. T = 3: δ(0.75) = 0.4005² = 0.1604."""
    assert planned(TOLD, 1) == pytest.approx(0.25)
    assert planned(TOLD, 2) == pytest.approx(0.75, abs=1e-4)
    third = 0.25 + size_of((0.75 - 0.25 - TENTH) ** 2)
    assert planned(TOLD, 3) == pytest.approx(min(third, 1.0), abs=1e-4)
    assert third > 0.75


def test_feedback_that_is_off_tells_nothing_at_any_step() -> None:
    for steps in (1, 2, 3):
        assert planned(TOLD, steps, feedback=NO_FEEDBACK) == pytest.approx(0.25)


def test_the_flag_says_from_the_second_step_on_that_there_is_a_delta() -> None:
    flag = StubNetwork(lambda p, steps, level, extras: extras[:, 1:, None] + 0 * steps[:, :, :1])
    assert [planned(flag, steps) for steps in (1, 2)] == [0.0, 1.0]


def test_the_planner_is_asked_at_falling_levels_with_its_own_estimate_noised_again() -> None:
    """A planner that answers with the level ends at 1/T. One that halves what it sees: T = 2, answer ½ z, then what
    DDIM makes of it at ᾱ(½) = ½: √½·½z + √½·z, halved again."""
    level = StubNetwork(lambda p, steps, level, extras: level[:, None, None] + 0 * steps[:, :, :1])
    assert planned(level, 4) == pytest.approx(0.25)
    halving = StubNetwork(lambda p, steps, level, extras: 0.5 * steps[:, :, :1])
    z = 2 * planned(halving, 1)
    assert 0 < abs(z) < 2
    assert planned(halving, 2) == pytest.approx(0.5 * (0.5**0.5 * 0.5 * z + 0.5**0.5 * z), rel=1e-4)


def test_what_delta_is_measured_of_lies_within_the_bounds_of_actions() -> None:
    """A plan of 7 counts as 1: from 0 to 1 it does not miss at all, so the second step is told δ = 0."""

    def answer(_: Any, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        size, there_is_one = extras[:, :1, None], extras[:, 1:, None]
        return 7 * (1 - there_is_one) + size + 0 * steps[:, :, :1]

    far = StubNetwork(answer)
    assert planned(far, 1, rows(0, 1)) == 1.0
    assert planned(far, 2, rows(0, 1)) == pytest.approx(0.0, abs=1e-5)


def test_states_start_from_noise_and_are_the_models_own_from_then_on() -> None:
    """A dynamics model that says 0.2 at level 1 and adds 0.1 to what it sees elsewhere, asked at levels near 0: it says
    0.2, 0.3, 0.4. T = 3 ends on the second of them: wanted is 0, so δ = 0.09."""
    world = StubNetwork(
        lambda p, steps, level, extras: jnp.where(level[:, None, None] == 1.0, 0.2, steps[:, :, :1] + 0.1)
    )
    size = StubNetwork(lambda p, steps, level, extras: extras[:, :1, None] + 0 * steps[:, :, :1])
    near_clean = Feedback(levels=(1e-6, 1e-6))
    for steps, missed in ((2, 0.2), (3, 0.3), (4, 0.4)):
        told = planned(size, steps, rows(0, 0), world, feedback=near_clean)
        assert told == pytest.approx(size_of(missed**2), abs=1e-3)


def test_the_level_of_delta_falls_with_the_planners_within_its_range() -> None:
    """Levels (0.5, 1), T = 3, a dynamics model that answers with the level. First 1, whatever the range says; then at
    ⅔ of the planner's range 0.8333. Wanted is 0: the third step is told δ = 0.8333²."""
    world = StubNetwork(lambda p, steps, level, extras: level[:, None, None] + 0 * steps[:, :, :1])
    size = StubNetwork(lambda p, steps, level, extras: extras[:, :1, None] + 0 * steps[:, :, :1])
    found = [
        planned(size, steps, rows(0, 0), world, feedback=Feedback(levels=(0.5, 1.0))) for steps in (2, 3)
    ]
    assert found == pytest.approx([1.0, size_of((5 / 6) ** 2)], abs=1e-4)
    low = planned(size, 2, rows(0, 0), world, feedback=Feedback(levels=(0.5, 0.5)))
    assert low == pytest.approx(1.0, abs=1e-4), "the first look is at pure noise"


def completer_of(network: StubNetwork, horizon: int, **sampling: Any) -> Completer:
    return Completer(planner_of(horizon), network, WORLD, Sampling(**{"refine": 0, "polish": 0, **sampling}))


def test_states_are_where_the_dynamics_model_says_that_the_actions_lead() -> None:
    """Plans 0.25 each step from 10; the third state, wanted at 10.9, is missed by 0.4: δ = 0.16, over known states
    but the first. What stands where nothing is known is not looked at."""
    quarter = StubNetwork(lambda p, steps, level, extras: 0.25 + 0 * steps[:, :, :1])
    known = np.asarray([[True, False, True, False]])
    states = np.asarray(rows(10, np.nan, 10.9, 1e9))
    done = completer_of(quarter, 4).complete(jax.random.key(0), states, known)
    np.testing.assert_allclose(done.actions[0, :, 0], [0.25, 0.25, 0.25, 0])
    np.testing.assert_allclose(done.states[0, :, 0], [10, 10.25, 10.5, 10.75], rtol=1e-6)
    assert float(done.deviation[0]) == pytest.approx(0.16, rel=1e-4)
    with pytest.raises(ConfigError, match="first state"):
        completer_of(quarter, 4).complete(jax.random.key(0), states, ~known)


def test_the_error_of_known_states_by_hand() -> None:
    """(2² + 1²) / 2; the first state does not count. Nothing but the first known: 0."""
    rolled, states = rows(5, 3, 4, 9), rows(0, 1, 7, 8)
    assert float(known_error(rolled, states, flags(1, 1, 0, 1))[0]) == pytest.approx(2.5)
    assert float(known_error(rolled, states, flags(1, 0, 0, 0))[0]) == 0.0


def test_of_several_candidates_the_one_with_the_least_deviation_is_kept() -> None:
    """A planner that plans its noise. Each try alone is what the try's own key gives."""
    guess = StubNetwork(lambda p, steps, level, extras: steps[:, :, :1])
    states, known = np.zeros((6, 2, 1), np.float32), np.ones((6, 2), bool)
    key = jax.random.key(3)
    kept = completer_of(guess, 2, plan_steps=1, candidates=4).complete(key, states, known)
    tries = [
        completer_of(guess, 2, plan_steps=1).complete(own, states, known) for own in jax.random.split(key, 4)
    ]
    deviations = np.stack([one.deviation for one in tries])
    np.testing.assert_allclose(kept.deviation, deviations.min(axis=0), rtol=1e-6)
    best = deviations.argmin(axis=0)
    assert len(set(best.tolist())) > 1
    for row, number in enumerate(best):
        np.testing.assert_allclose(kept.actions[row], tries[number].actions[row], rtol=1e-6)
        np.testing.assert_allclose(kept.states[row], tries[number].states[row], rtol=1e-6)


def test_completion_errors_by_hand() -> None:
    """Walks at 0.5 and a planner that stays: the action is off by 0.5, the state after k steps by 0.5·k.

    n = 2, l = 2, M = 1, L = 6, shown x x . x x .: known but the first at k = 1, 3, 4; made up at 2 and 5.
    """
    shape = ChainShape(2, 2, 1)
    stays = StubNetwork(lambda p, steps, level, extras: 0 * steps[:, :, :1])
    completer = Completer(planner_of(6, shape=shape), stays, WORLD, Sampling(refine=0, polish=0))
    found = completion_error(completer, walks((0.5, -0.5), 9), PLAIN, sequences=6, batch=4)
    assert found.sequences == 8, "whole batches"
    assert found.action_mse == pytest.approx(0.25)
    assert found.state_mse == pytest.approx(0.25 * (1 + 4 + 9 + 16 + 25) / 5, rel=1e-5)
    assert found.known_mse == pytest.approx(0.25 * (1 + 9 + 16) / 3, rel=1e-5)
    assert found.masked_mse == pytest.approx(0.25 * (4 + 25) / 2, rel=1e-5)

    refining = dataclasses.replace(completer, sampling=Sampling(refine=10, polish=0))
    moved = completion_error(refining, walks((0.5, -0.5), 9), PLAIN, sequences=6, batch=4)
    assert moved.action_mse < found.action_mse and moved.known_mse < found.known_mse


def test_completion_errors_are_measured_at_the_planners_own_phase() -> None:
    """Phase l − 1 of n = 2, l = 2, M = 2: x . . x x: made up at k = 1, 2, known at 3, 4."""
    planner = planner_of(5, shape=ChainShape(2, 2, 2), phase=1)
    assert np.asarray(pattern(planner.shape, 5, jnp.int32(1))).tolist() == [True, False, False, True, True]
    stays = StubNetwork(lambda p, steps, level, extras: 0 * steps[:, :, :1])
    completer = Completer(planner, stays, WORLD, Sampling(refine=0, polish=0))
    found = completion_error(completer, walks((0.5,), 9), PLAIN, sequences=4, batch=4)
    assert found.masked_mse == pytest.approx(0.25 * (1 + 4) / 2, rel=1e-5)
    assert found.known_mse == pytest.approx(0.25 * (9 + 16) / 2, rel=1e-5)


def test_sampling_needs_at_least_one_of_everything() -> None:
    for name in ("plan_steps", "state_steps", "candidates"):
        with pytest.raises(ConfigError) as refused:
            dataclasses.replace(Sampling(), **{name: 0})
        assert refused.value.field == name
