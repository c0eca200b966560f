"""Polishing on a world whose step is known: s' = s + a, so that every answer can be worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.dynamics.onestep import OneStep
from astro_rl.errors import ConfigError
from astro_rl.nets.mlp import MLP, Linear
from astro_rl.planner.complete import Completer, Sampling
from astro_rl.planner.polish import Polished, bridged, polished
from tests.planner.stub_planner import planner_of
from tests.planner.test_complete import TOLD, WORLD

SCALE = 0.5


def adding() -> tuple[OneStep, MLP]:
    """f(s, a) = s + a exactly: a linear network that answers a / σ."""
    model = OneStep(1, 1, (SCALE,), hidden=(), members=1)
    member = MLP((Linear(jnp.array([[0.0], [1.0 / SCALE]]), jnp.zeros(1)),), ())
    return model, jax.tree.map(lambda leaf: leaf[None], member)


def polish(states: list[float], known: list[bool], actions: list[float], **settings: float) -> Polished:
    chosen = {"steps": 200, "rate": 0.05, "hold": 0.0, **settings}
    return polished(
        *adding(),
        jnp.asarray(states, jnp.float32)[None, :, None],
        jnp.asarray(known)[None],
        jnp.asarray(actions, jnp.float32)[None, :, None],
        **chosen,  # type: ignore[arg-type]
    )


KNOWN = [True, False, False, True, True]


def test_what_cannot_be_explained_by_hand() -> None:
    """States 0, 1, 1, 3, 3 under actions 0.5, 0, 1, 0: transitions into masked states miss by 0.5 and 0, in typical
    steps 1 and 0: the root mean square is √(1/2). The step out of the gap misses by 1: it arrives at 2 instead of 3."""
    before = polish([0, 1, 1, 3, 3], KNOWN, [0.5, 0, 1, 0, 0], steps=0)
    assert float(before.miss[0]) == pytest.approx(0.5**0.5, abs=1e-5)
    assert before.states[0, :, 0].tolist() == pytest.approx([0, 1, 1, 2, 3]), (
        "behind the MASK: where f arrives"
    )


def test_a_gap_that_a_plan_misses_is_closed_by_all_its_steps() -> None:
    """Three steps from 0 to 1.5 under actions that lead to 0.9: held equally, each takes up a third of the rest."""
    done = polish([0, 0.3, 0.6, 1.5, 1.5], KNOWN, [0.3, 0.3, 0.3, 0, 0], steps=1500, hold=0.01)
    states, actions = done.states[0, :, 0], done.actions[0, :, 0]
    assert float(done.miss[0]) < 0.01
    np.testing.assert_allclose(states, np.array([0, 0.5, 1.0, 1.5, 1.5]), atol=0.02)
    np.testing.assert_allclose(np.cumsum(np.asarray(actions[:3])), states[1:4], atol=0.01)
    assert float(actions[3]) == 0.0, "actions outside the gap are nobody's to move"


def test_known_states_stay_and_actions_stay_within_bounds() -> None:
    """5 is out of reach in three steps of at most 1: what is missing stays as the gap's miss and at its end."""
    done = polish([0, 1, 2, 5, 5], KNOWN, [0.0, 0.0, 0.0, 0, 0], steps=500, rate=0.1)
    assert float(jnp.abs(done.actions).max()) <= 1.0
    assert done.states[0, 0, 0] == 0 and done.states[0, 4, 0] == 5
    assert float(done.actions[0, :3].min()) > 0.98
    # 2 of 5 units are missing; spread evenly over three transitions each misses 2/3 of a unit, 4/3 typical steps.
    assert float(done.miss[0]) == pytest.approx(4 / 3, rel=0.02)


def test_actions_are_held_near_the_plan() -> None:
    loose = polish([0, 0.3, 0.6, 1.5, 1.5], KNOWN, [0.3, 0.3, 0.3, 0, 0], hold=0.0)
    held = polish([0, 0.3, 0.6, 1.5, 1.5], KNOWN, [0.3, 0.3, 0.3, 0, 0], hold=100.0)
    moved = [float(jnp.abs(done.actions[0, :3] - 0.3).max()) for done in (loose, held)]
    assert moved[1] < 0.2 * moved[0] and float(held.miss[0]) > 5 * float(loose.miss[0])


def test_what_an_end_misses_is_shared_out_along_the_gap_by_hand() -> None:
    """Rolled out as 0, 1, 2, 3, 4, 5, 6 where 0, 6 and 7 are known at places 0, 3 and 4: the miss at place 3 is 3, so
    places 1 and 2 move by 1 and 2. Behind place 4, whose miss is 3, nothing is known: all of it moves by 3."""
    rolled = jnp.arange(7.0)[None, :, None]
    given = jnp.array([0, 9, 9, 6, 7, 9, 9.0])[None, :, None]
    known = jnp.array([[True, False, False, True, True, False, False]])
    assert bridged(given, known, rolled)[0, :, 0].tolist() == pytest.approx([0, 2, 4, 6, 7, 8, 9])


def test_one_sequence_does_not_see_another() -> None:
    model, network = adding()
    states = jnp.array([[0, 0.3, 0.6, 1.5, 1.5], [0, 0, 0, 0.1, 0.1]])[..., None]
    known, actions = jnp.tile(jnp.asarray(KNOWN), (2, 1)), jnp.zeros((2, 5, 1))
    together = polished(model, network, states, known, actions, steps=50, rate=0.05, hold=0.01)
    alone = polished(model, network, states[1:], known[1:], actions[1:], steps=50, rate=0.05, hold=0.01)
    np.testing.assert_allclose(together.states[1:], alone.states, atol=1e-6)


def test_a_completer_polishes_what_it_planned() -> None:
    """The stub planner's actions lead elsewhere; polished, the gap arrives at the known state it was given."""
    model, network = adding()
    known = np.array([[*KNOWN, True]])
    states = np.array([0, 9, 9, 0.6, 0.6, 0.6], np.float32)[None, :, None]
    sampling = Sampling(refine=0, polish=400, polish_rate=0.05, polish_hold=0.0)
    completer = Completer(planner_of(6), TOLD, WORLD, sampling, model, network)
    done = completer.complete(jax.random.key(0), states, known)
    assert done.miss is not None and done.miss[0] < 0.02 and done.deviation[0] < 1e-3
    np.testing.assert_allclose(done.states[0, 1:4] - done.states[0, :3], done.actions[0, :3], atol=0.02)
    np.testing.assert_array_equal(done.states[0, 4:], states[0, 4:])


def test_polishing_without_a_one_step_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="one-step model"):
        Completer(planner_of(6), TOLD, WORLD, Sampling(polish=1))
    for wrong in ({"polish": -1}, {"polish_rate": 0.0}, {"polish_hold": -1.0}):
        with pytest.raises(ConfigError, match="Polishing"):
            Sampling(**wrong)  # type: ignore[arg-type]
