"""One-step dynamics (4), and the deviation of transitions from them (5), by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.dynamics.onestep import OneStep
from astro_rl.errors import ConfigError
from astro_rl.nets.mlp import MLP, Linear


def members(weights: object, biases: object) -> MLP:
    """Networks of one layer, stacked."""
    layer = jax.vmap(lambda weight, bias: Linear(weight, bias))
    return MLP((layer(jnp.asarray(weights, jnp.float32), jnp.asarray(biases, jnp.float32)),), ())


def twice(*values: float) -> jax.Array:
    """The same column for both members."""
    return jnp.stack([jnp.asarray(values, jnp.float32)[:, None]] * 2)


def test_one_step_dynamics_by_hand() -> None:
    """Members 2 a and a + 1, in steps of 0.5. From 1 to 2 (two steps) with a = 1: 2 is right, 2 is right. From 0 to 1
    with a = ½: 1 misses by 1, 1.5 by ½. Loss: (0 + 0 + 1 + ¼) / 4."""
    onestep = OneStep(1, 1, (0.5,), members=2)
    network = members([[[0.0], [2.0]], [[0.0], [1.0]]], [[0.0], [1.0]])
    loss, _ = onestep.loss(network, twice(1, 0), twice(1, 0.5), twice(2, 1))
    assert float(loss) == pytest.approx(1.25 / 4)
    told = onestep.predict(network, twice(1, 0)[0], twice(1, 0.5)[0])
    np.testing.assert_allclose(told[:, 0], [2.0, 0.625])


def test_the_deviation_of_transitions_by_hand() -> None:
    """Two dimensions in steps of 1 and 2, moved by (a, 0). 0, 0 with a = 1 is told 1, 0 and is 2, −3: 1 + 9. From there
    with a = 0 it stays: 0."""
    onestep = OneStep(2, 1, (1.0, 2.0), members=1)
    network = members([[[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]], [[0.0, 0.0]])
    states = jnp.asarray([[[0.0, 0.0], [2.0, -3.0], [2.0, -3.0]]])
    actions = jnp.asarray([[[1.0], [0.0], [9.0]]])
    np.testing.assert_allclose(onestep.deviation(network, states, actions), [[10.0, 0.0]])
    np.testing.assert_allclose(onestep.misses(network, states, actions), [[[1.0, -1.5], [0.0, 0.0]]])


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger than 0"):
        OneStep(1, 1, (0.0,))
    with pytest.raises(ConfigError, match=r"(?s)members.*0"):
        OneStep(1, 1, (1.0,), members=0)
