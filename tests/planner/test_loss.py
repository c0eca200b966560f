"""Eqs. (14) to (16) by hand: planners that answer with one thing they are told show what each term is given.

`sums_of_actions` is the dynamics model: from s₀ the action a₀ leads to s₀ + a₀. A sequence is two states long, its
second action leads out of it.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import sequence_data
from astro_rl.errors import ConfigError
from astro_rl.planner.feedback import Feedback
from astro_rl.planner.model import PlannerData, PlannerState
from astro_rl.training.fit import fit_chunk
from astro_rl.training.optimise import adamw, init_optimiser
from tests.dynamics.stub_networks import PLAIN, StubNetwork, sums_of_actions, walks
from tests.planner.stub_planner import (
    NO_FEEDBACK,
    TENTH,
    flags,
    noise_of,
    nothing,
    one,
    planner_of,
    rows,
    size_of,
)

WORLD = StubNetwork(sums_of_actions)
CONSTANT = StubNetwork(lambda p, steps, level, extras: p[0] + 0 * steps[:, :, :1], 0.75)
"""Plans w = 0.75 at every step."""
PLAIN_SUM = {"feedback": NO_FEEDBACK, "regularisation": 0.0}


def loss_of(
    planner: Any, network: StubNetwork, states: Any, actions: Any, noise: Any, known: Any = None
) -> Any:
    known = flags(1, 1) if known is None else known
    return planner.loss(network, WORLD, states, known, actions, noise)


def gradient_of(planner: Any, network: StubNetwork, states: Any, actions: Any, noise: Any) -> float:
    gradients, _ = jax.grad(planner.loss, has_aux=True)(network, WORLD, states, flags(1, 1), actions, noise)
    return float(gradients.parameters[0])


def test_equation_16_and_its_gradient_by_hand() -> None:
    """Real: 0 → 1 by a = 1, 0. The plan w = 0.75 everywhere, whatever it is told.

    first term   ((0.75 − 1)² + 0.75²) / 2 = 0.3125            slope (2·(−0.25) + 2·0.75) / 2 = 0.5
    second term  the same
    L_reg        δ(plan) = (0.75 − 1)² = 0.0625, δ(data) = 0    slope 2·(0.75 − 1) = −0.5: through the frozen dynamics
    """
    states, actions, noise = rows(0, 1), rows(1, 0), noise_of(2, 0.5, z=1.0, again=1.0)
    for alpha in (0.0, 1.0, 2.0):
        planner = planner_of(2, regularisation=alpha)
        loss, info = loss_of(planner, CONSTANT, states, actions, noise)
        assert float(loss) == pytest.approx(0.625 + alpha * 0.0625)
        assert float(info["action_mse"]) == pytest.approx(0.3125) == float(info["corrected_mse"])
        assert gradient_of(planner, CONSTANT, states, actions, noise) == pytest.approx(1.0 - 0.5 * alpha)
    alone = planner_of(2, regularisation=1.0, correction=False)
    assert float(loss_of(alone, CONSTANT, states, actions, noise)[0]) == pytest.approx(0.375)
    assert gradient_of(alone, CONSTANT, states, actions, noise) == pytest.approx(0.0, abs=1e-6)


def test_a_plan_that_deviates_less_than_real_actions_is_not_punished() -> None:
    """Wanted 0 → 1, real action 0.5: δ(data) = 0.25 and δ(plan) = 0.0625. Turned round, the excess is 0.1875."""
    better = loss_of(planner_of(2), CONSTANT, rows(0, 1), rows(0.5, 0), noise_of(2, 0.5))[1]
    assert float(better["regularisation"]) == 0.0
    worse = loss_of(planner_of(2), CONSTANT, rows(0, 0.25), rows(0.5, 0), noise_of(2, 0.5))[1]
    assert float(worse["regularisation"]) == pytest.approx(0.5**2 - 0.25**2)


def test_the_second_term_is_one_step_further_down() -> None:
    """A planner that answers with the level: T = 4, so 0.5 and then 0.25; at level 0.1 the second is at 0."""
    network = StubNetwork(lambda p, steps, level, extras: level[:, None, None] + 0 * steps[:, :, :1])
    planner = planner_of(2, steps=4, **PLAIN_SUM)
    _, info = loss_of(planner, network, rows(0, 0), rows(0, 0), noise_of(2, 0.5))
    assert float(info["action_mse"]) == pytest.approx(0.25)
    assert float(info["corrected_mse"]) == pytest.approx(0.0625)
    _, info = loss_of(planner, network, rows(0, 0), rows(0, 0), noise_of(2, 0.1))
    assert float(info["corrected_mse"]) == 0.0


def test_the_second_term_starts_from_the_first_ones_answer_noised_anew() -> None:
    """A planner that answers with the noisy action. a = 2 at ᾱ(½) = ½ with z = 1: √½·(2 + 1) = 2.1213, off by 0.1213.

    T = 4, ᾱ(¼) = cos²(π/8): the second sees cos(π/8)·2.1213 + sin(π/8)·3 = 1.9598 + 1.1481 = 3.1079.
    At t = 1 (T = 2) nothing is added: it sees 2.1213 itself, since ᾱ(0) = 1.
    """
    network = StubNetwork(lambda p, steps, level, extras: steps[:, :, :1])
    first = 3 * math.sqrt(0.5)
    second = math.cos(math.pi / 8) * first + math.sin(math.pi / 8) * 3
    noise = noise_of(2, 0.5, z=1.0, again=3.0)
    _, info = loss_of(planner_of(2, steps=4, **PLAIN_SUM), network, rows(0, 0), rows(2, 2), noise)
    assert float(info["action_mse"]) == pytest.approx((first - 2) ** 2, rel=1e-4)
    assert float(info["corrected_mse"]) == pytest.approx((second - 2) ** 2, rel=1e-4)
    _, info = loss_of(planner_of(2, steps=2, **PLAIN_SUM), network, rows(0, 0), rows(2, 2), noise)
    assert float(info["corrected_mse"]) == pytest.approx((first - 2) ** 2, rel=1e-4)


def test_the_first_term_is_told_deltas_of_the_data_the_second_that_of_the_plan() -> None:
    """A planner that answers with the size of δ. Wanted 0 → 0.5; the real action misses by √0.0099: size ½.

    So it plans ½, which arrives exactly: δ = 0, and the second answer is 0. Real actions 0.5995, 0:
    first (0.0099 + 0.25) / 2, second (0.5995² + 0) / 2.
    """
    network = StubNetwork(lambda p, steps, level, extras: extras[:, :1, None] + 0 * steps[:, :, :1])
    states, actions = rows(0, 0.5), rows(0.5 + TENTH, 0)
    _, info = loss_of(planner_of(2), network, states, actions, noise_of(2, 0.5))
    assert float(info["delta/data"]) == pytest.approx(0.0099, rel=1e-3)
    assert float(info["delta/plan"]) == pytest.approx(0.0, abs=1e-6)
    assert float(info["action_mse"]) == pytest.approx((0.0099 + 0.25) / 2, rel=1e-3)
    assert float(info["corrected_mse"]) == pytest.approx((0.5 + TENTH) ** 2 / 2, rel=1e-3)


def test_the_first_term_may_be_told_nothing_the_second_always_is_told() -> None:
    """A planner that answers with the flag "there is a δ": 0 and 1 under `present` 0."""
    network = StubNetwork(lambda p, steps, level, extras: extras[:, 1:, None] + 0 * steps[:, :, :1])
    _, info = loss_of(planner_of(2), network, rows(0, 0), rows(0, 0), noise_of(2, 0.5, present=0.0))
    assert (float(info["action_mse"]), float(info["corrected_mse"])) == (0.0, 1.0)
    _, info = loss_of(planner_of(2, **PLAIN_SUM), network, rows(0, 0), rows(0, 0), noise_of(2, 0.5))
    assert (float(info["action_mse"]), float(info["corrected_mse"])) == (0.0, 0.0), "feedback is off"


def test_no_gradient_flows_through_what_the_second_term_is_given() -> None:
    """A planner that answers w·(noisy action), w = 1, a = 2, z = 0, T = 2: the first sees and says √2, the second
    sees √2.

    Both slopes are 2·(√2 − 2)·√2 = −1.6569; through τ̂ᵃ the second would be twice that.
    """
    scaled = StubNetwork(lambda p, steps, level, extras: p[0] * steps[:, :, :1], 1.0)
    planner, seen = planner_of(2, steps=2, **PLAIN_SUM), math.sqrt(2)
    slope = gradient_of(planner, scaled, rows(0, 0), rows(2, 2), noise_of(2, 0.5))
    assert slope == pytest.approx(2 * 2 * (seen - 2) * seen, rel=1e-4)


def test_no_gradient_flows_through_delta_where_it_is_told() -> None:
    """A planner that answers w + size of δ. Real 0 → 1 by a = 1, 0: δ(data) = 0, so the first answer is w = 0.9, and
    δ(plan) = 0.01 is told as size v: the second is 0.9 + v. Slopes (−0.2 + 1.8) / 2 and (2(v − 0.1) + 2(0.9 + v)) / 2,
    v standing still."""
    network = StubNetwork(
        lambda p, steps, level, extras: p[0] + extras[:, :1, None] + 0 * steps[:, :, :1], 0.9
    )
    planner, size = planner_of(2, regularisation=0.0), size_of(0.01)
    slope = gradient_of(planner, network, rows(0, 1), rows(1, 0), noise_of(2, 0.5))
    assert slope == pytest.approx(0.8 + (size - 0.1) + (0.9 + size), rel=1e-3)


def test_masked_states_are_not_looked_at_unless_delta_is_over_all() -> None:
    """From 0, three states, the second masked: what stands there changes nothing over `known`. Over `full`, δ of real
    actions 1, 0 against states 0, 5, 1 is (4² + 0²) / 2 = 8."""
    network = StubNetwork(lambda p, steps, level, extras: steps.sum(axis=-1, keepdims=True))
    known, actions, noise = flags(1, 0, 1), rows(1, 0, 0), noise_of(3, 0.5)
    planner = planner_of(3)
    (loss, info), (other, _) = (
        loss_of(planner, network, rows(0, hidden, 1), actions, noise, known) for hidden in (5.0, -3.0)
    )
    assert float(loss) == float(other)
    assert float(info["delta/data"]) == pytest.approx(0.0)
    full = planner_of(3, feedback=Feedback(over="full"))
    _, info = loss_of(full, network, rows(0, 5, 1), actions, noise, known)
    assert float(info["delta/data"]) == pytest.approx(8.0)


def test_the_network_sees_noisy_actions_masked_states_and_which_are_known() -> None:
    def digits(_: Any, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        return (steps * jnp.asarray([1.0, 10.0, 100.0])).sum(axis=-1, keepdims=True)

    planner = planner_of(3)
    found = planner.clean(
        StubNetwork(digits), rows(1, 2, 3), rows(4, 5, 6), flags(1, 0, 1), one(0.5), nothing(3), one(0)
    )
    np.testing.assert_allclose(found[0, :, 0], [141, 2, 163])


def test_a_planner_of_near_places_sees_them_from_the_first_one() -> None:
    """s = ½: known states 4 and 6 from 4 are 0 and 4; the first state itself stands beside every step."""

    def digits(_: Any, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        return (steps * jnp.asarray([1.0, 10.0, 100.0, 1000.0])).sum(axis=-1, keepdims=True)

    planner = planner_of(3, dynamics=Dynamics(3, 1, 1, spread=(0.5,)))
    found = planner.clean(
        StubNetwork(digits), rows(1, 2, 3), rows(4, 5, 6), flags(1, 0, 1), one(0.5), nothing(3), one(0)
    )
    np.testing.assert_allclose(found[0, :, 0], [4101, 4002, 4143])
    assert planner.init(jax.random.key(0)).network.stem.weight.shape[0] == 3 * 4


def test_what_an_update_draws() -> None:
    planner = planner_of(2, feedback=Feedback(dropped=0.25))
    whole = jnp.zeros((4000, 2, 1))
    noise = planner.draw_noise(jax.random.key(0), WORLD, whole, whole)
    level = np.asarray(noise.level)
    assert 0 < level.min() < 0.01 and 0.99 < level.max() <= 1
    assert level.mean() == pytest.approx(0.5, abs=0.02)
    assert set(np.asarray(noise.present).tolist()) == {0.0, 1.0}
    assert float(noise.present.mean()) == pytest.approx(0.75, abs=0.03)
    for drawn in (noise.actions, noise.again, noise.states):
        assert float(drawn.std()) == pytest.approx(1.0, abs=0.05)
    assert float(jnp.abs(noise.actions - noise.again).max()) > 1


@pytest.mark.parametrize(("alpha", "lowest", "highest"), [(0.0, 0.365, 0.385), (100.0, 0.48, 0.501)])
def test_algorithm_1_learns_and_leaves_the_dynamics_model_alone(
    alpha: float, lowest: float, highest: float
) -> None:
    """All walks go at 0.5, and the action behind a sequence of four is 0. A planner that knows one number learns the
    mean, 0.375; where L_reg rules, the one that arrives, 0.5. The world's weights stay what they are."""
    world = StubNetwork(lambda p, *rest: p[0] * sums_of_actions(p, *rest), 1.0)
    data = PlannerData(sequence_data(walks((0.5, 0.5), 8), PLAIN, 4), world)
    planner = planner_of(4, learning_rate=0.05, warmup=0, batch_size=8, regularisation=alpha)
    network, average = StubNetwork(CONSTANT.answer, -1.0), StubNetwork(CONSTANT.answer, -1.0)
    optimiser = init_optimiser(adamw(0.05, warmup=0, decay=1e-4, clip=1.0), network)
    state = PlannerState(network, average, optimiser, jnp.int32(0))
    state, _ = fit_chunk(planner, state, data, jax.random.key(1), 0, 150)
    found, averaged = (float(jax.tree.leaves(weights)[0][0]) for weights in (state.network, state.average))
    assert lowest < found < highest
    assert averaged == pytest.approx(found, abs=0.05)
    assert float(world.parameters[0]) == 1.0


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="one length"):
        planner_of(4, dynamics=Dynamics(5, 1, 1))
    with pytest.raises(ConfigError, match="α must not be negative"):
        planner_of(4, regularisation=-1.0)
