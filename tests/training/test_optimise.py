"""The rate of a fit: up at the beginning, down at the end."""

import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.training.optimise import adamw, descend, init_optimiser


def lengths(steps: int, **settings) -> list[float]:
    """How far each update moves one weight under a constant gradient: Adam's own length is the rate."""
    optimiser = adamw(0.1, **settings)
    weight = jnp.zeros(1)
    state, found = init_optimiser(optimiser, weight), []
    for _ in range(steps):
        moved, state = descend(optimiser, weight, state, jnp.ones(1))
        found.append(float(jnp.abs(moved - weight)[0]))
        weight = moved
    return found


def test_the_rate_rises_stays_and_falls_by_hand() -> None:
    found = lengths(9, warmup=2, cooldown=(4, 8))
    np.testing.assert_allclose(found, [0, 0.05, 0.1, 0.1, 0.1, 0.075, 0.05, 0.025, 0], atol=1e-5)


@pytest.mark.parametrize(("settings", "expected"), [({}, [0.1] * 3), ({"warmup": 2}, [0.0, 0.05, 0.1])])
def test_a_rate_that_does_not_fall(settings: dict, expected: list[float]) -> None:
    np.testing.assert_allclose(lengths(3, **settings), expected, atol=1e-5)
