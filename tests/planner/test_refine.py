"""Moves downhill on δ, worked by hand in the world on a line, where a state is the sum of the actions before it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.diffusion.schedule import Schedule
from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Completer, Sampling
from astro_rl.planner.refine import refined
from tests.dynamics.stub_networks import StubNetwork, sums_of_actions
from tests.planner.stub_planner import NO_FEEDBACK, flags, planner_of, rows

WORLD = StubNetwork(sums_of_actions)


def moved(actions: list[float], wanted: list[float], known: tuple[int, ...], steps: int, rate: float) -> list:
    dynamics = Dynamics(len(actions), 1, 1, predicts="clean")
    made = refined(
        dynamics,
        WORLD,
        rows(*actions),
        rows(*wanted),
        flags(*known),
        jnp.zeros((1, len(actions), 1)),
        steps=steps,
        rate=rate,
    )
    return np.asarray(made)[0, :, 0].round(5).tolist()


def test_one_move_is_along_the_gradient_and_as_long_as_it_is_told() -> None:
    """States 0, a₀, a₀ + a₁; wanted 0.6 at the end alone. ∂δ/∂a₀ = ∂δ/∂a₁ = 2 (0 − 0.6), the last action has no part
    in it: g = −1.2 (1, 1, 0), rms √(2/3)·1.2, so both move by 0.1 / √(2/3) = 0.12247."""
    assert moved([0, 0, 0], [0, 9, 0.6], (1, 0, 1), 1, 0.1) == pytest.approx([0.12247, 0.12247, 0.0])


def test_a_miss_counts_in_units_of_how_far_its_dimension_gets() -> None:
    """Two dimensions, each moved by an action of its own, both missed by 0.3. Where one gets a tenth as far as the
    other, its gradient is a hundred times as large."""
    spread = (0.1, 1.0)

    def sums(_: Any, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        # At pure noise the clean state is the first one plus spread times the answer, where that is relative.
        actions = jnp.roll(steps[:, :, 4:6], 1, axis=1)
        return actions / jnp.asarray(spread)

    dynamics = Dynamics(2, 2, 2, spread=spread, schedule=Schedule(final_signal=1e-9))
    made = refined(
        dynamics,
        StubNetwork(sums),
        jnp.zeros((1, 2, 2)),
        jnp.asarray([[[0.0, 0.0], [0.3, 0.3]]]),
        flags(1, 1),
        jnp.zeros((1, 2, 2)),
        steps=1,
        rate=0.1,
    )
    near, far = np.asarray(made)[0, 0]
    assert near > 0 and near / far == pytest.approx(100.0, rel=1e-2)


def test_moves_shrink_and_stay_within_the_bounds() -> None:
    """Two moves: η then η/2. From 0.95 toward a state out of reach the action stops at 1."""
    assert moved([0, 0], [0, 5], (1, 1), 2, 0.1)[0] == pytest.approx(0.1 * 2**0.5 * 1.5, abs=1e-5)
    assert moved([0.95, 0], [0, 5], (1, 1), 3, 0.1)[0] == 1.0


def test_what_is_reached_already_does_not_move() -> None:
    assert moved([0.25, 0.25, 0], [0, 0.25, 0.5], (1, 1, 1), 4, 0.1) == [0.25, 0.25, 0.0]


def test_a_completion_ends_nearer_its_target() -> None:
    """A planner that always says 0.1, with a target at 0.6 two steps away: left alone it misses by 0.4."""
    says = StubNetwork(lambda p, steps, level, extras: 0.1 + 0 * steps[:, :, :1])
    errors = []
    for steps in (0, 20):
        sampling = Sampling(plan_steps=1, state_steps=1, refine=steps, polish=0)
        completer = Completer(planner_of(3, feedback=NO_FEEDBACK), says, WORLD, sampling)
        made = completer.complete(
            jax.random.key(0),
            np.asarray(rows(0, 0, 0.6)),
            np.asarray(flags(1, 0, 1)),
        )
        errors.append(float(made.deviation[0]))
        assert made.actions[0, -1, 0] == 0.0
    assert errors[0] == pytest.approx(0.4**2, rel=1e-3)
    assert errors[1] < 0.01**2 * 4


@pytest.mark.parametrize("wrong", [{"refine": -1}, {"refine_rate": 0.0}, {"refine_rate": 2.0}])
def test_impossible_refinements_are_refused(wrong: dict) -> None:
    with pytest.raises(ConfigError, match="Refinement"):
        Sampling(**wrong)
