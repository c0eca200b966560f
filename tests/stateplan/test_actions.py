"""Inverse dynamics (3) by hand; SI as a completer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augment.check import errors, step_scale
from astro_rl.augment.jobs import Completes, complete_jobs
from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from astro_rl.nets.mlp import MLP, Linear
from astro_rl.planner.complete import known_error
from astro_rl.stateplan.complete import StateCompleter, StateSampling
from astro_rl.stateplan.inverse import InverseDynamics
from astro_rl.stateplan.masks import GapMasks
from astro_rl.stateplan.model import StatePlanner
from tests.dynamics.stub_networks import PLAIN, StubNetwork, sums_of_actions, walks


def linear(weight: object, bias: object) -> MLP:
    """A network of one layer."""
    return MLP((Linear(jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32)),), ())


def column(*values: float) -> jax.Array:
    return jnp.asarray(values, jnp.float32)[:, None]


def test_inverse_dynamics_by_hand() -> None:
    """f = 0.5 s + 0.25 (s' − s) / 0.5 + 0.1: from 1 to 2 it says 1.1, from 2 to 1 0.6. Wanted 0.6 and 1: errors ½
    and −0.4, (0.25 + 0.16) / 2."""
    inverse = InverseDynamics(1, 1, (0.5,))
    network = linear([[0.5], [0.25]], [0.1])
    loss, _ = inverse.loss(network, column(1, 2), column(2, 1), column(0.6, 1))
    assert float(loss) == pytest.approx(0.205)
    along = inverse.along(network, jnp.asarray([[[1.0], [2.0], [1.0]]]))
    np.testing.assert_allclose(along[0, :, 0], [1.0, 0.6, 0.0], rtol=1e-6)


def test_a_typical_step_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"(?s)scale.*1 numbers.*2 positive"):
        InverseDynamics(2, 1, (1.0,))
    with pytest.raises(ConfigError, match="larger than 0"):
        InverseDynamics(1, 1, (0.0,))


NET = DiTConfig(width=16, depth=1, heads=2, patch=1, step_width=8)
PLANNER = StatePlanner(5, 1, GapMasks(2, 3), net=NET)
WORLD = StubNetwork(sums_of_actions)
"""s' = s + a."""
DYNAMICS = Dynamics(5, 1, 1, net=NET, predicts="clean")
INVERSE = InverseDynamics(1, 1, (1.0,))
HALVES = linear([[0.0], [0.5]], [0.0])
"""Says half of the action that it takes."""


def completer(dynamics: Dynamics | None = DYNAMICS) -> StateCompleter:
    network = PLANNER.init(jax.random.key(0)).network
    judge = None if dynamics is None else WORLD
    return StateCompleter(PLANNER, network, INVERSE, HALVES, StateSampling(2), dynamics, judge)


def test_si_keeps_what_is_known_and_delta_is_where_its_actions_lead() -> None:
    """Inverse dynamics that halve every action leave the world half way between the first state and each other: δ is
    the mean over known places 3 and 4 of half the way, squared."""
    states = np.asarray([[0.0, 7, 7, 1.0, 2.0]], np.float32)[..., None]
    known = np.asarray([[True, False, False, True, True]])
    done = completer().complete(jax.random.key(0), states, known)
    np.testing.assert_array_equal(done.states[known], states[known])
    taken = np.clip(0.5 * np.diff(done.states[0, :, 0]), -1, 1)
    np.testing.assert_allclose(done.actions[0, :, 0], [*taken, 0.0], atol=1e-6)
    arrived = np.cumsum(taken)
    assert done.deviation[0] == pytest.approx(((arrived[2] - 1) ** 2 + (arrived[3] - 2) ** 2) / 2, rel=1e-4)
    rolled = jnp.asarray([0.0, *arrived], jnp.float32)[None, :, None]
    judged = known_error(rolled, jnp.asarray(states), jnp.asarray(known))
    assert done.deviation[0] == pytest.approx(float(judged[0]), rel=1e-4)


def test_without_a_dynamics_model_there_is_no_delta() -> None:
    done = completer(None).complete(jax.random.key(0), np.zeros((2, 5, 1), np.float32), np.ones((2, 5), bool))
    assert done.deviation.tolist() == [0.0, 0.0]


def test_astros_generation_can_use_it() -> None:
    """It is what `augment.jobs` completes with, and passes the checks at known states without an error."""
    dataset, own = walks((0.5, -0.5), 12), completer()
    assert isinstance(own, Completes)
    rows = np.asarray([[0, -1, -1, 3, 4], [14, -1, -1, 5, 6], [2, -1, 4, 5, 6]])
    done = complete_jobs(own, dataset, PLAIN, rows, jax.random.key(0), batch=2)
    found = errors(done, step_scale(dataset, PLAIN))
    assert found.jump.tolist() == found.step_error.tolist() == [0.0] * 3
    assert (found.deviation > 0).all(), "states and actions of SI disagree, and δ shows it"
    again = complete_jobs(own, dataset, PLAIN, rows, jax.random.key(0), batch=2)
    np.testing.assert_array_equal(done.states, again.states)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"(?s)horizon.*5 and 6"):
        completer(Dynamics(6, 1, 1, net=NET))
    with pytest.raises(ConfigError, match="record and its weights"):
        StateCompleter(PLANNER, completer().planner_network, INVERSE, HALVES, dynamics=DYNAMICS)
    with pytest.raises(ConfigError, match="first state"):
        completer().complete(jax.random.key(0), np.zeros((1, 5, 1), np.float32), np.zeros((1, 5), bool))
    with pytest.raises(ConfigError, match=r"(?s)steps.*0"):
        StateSampling(0)
