"""Networks whose answer is known by hand, in the place of a transformer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.data import from_arrays
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.nets.dit import DiT

Answer = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
"""(parameters, steps × features, level, extras) to steps × outputs."""

PLAIN = Normaliser(*(np.asarray([value], np.float32) for value in (0.0, 1.0, 1.0)))
"""One dimension, taken as it is."""


class StubNetwork(DiT):
    """Any function with a few parameters. None of the transformer's own weights exist."""

    parameters: jax.Array
    answer: Answer = eqx.field(static=True)

    def __init__(self, answer: Answer, *parameters: float) -> None:
        for field in dataclasses.fields(DiT):
            setattr(self, field.name, None)
        self.parameters = jnp.asarray(parameters, jnp.float32)
        self.answer = answer

    def __call__(self, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        return self.answer(self.parameters, steps, level, extras)


def sums_of_actions(_: Any, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
    """A world on a line, s_{k+1} = s_k + a_k, whatever the noise: the clean answer of a perfect dynamics model.

    Its features are (noisy state, first state, action), one number each.
    """
    first, actions = steps[:, :, 1:2], steps[:, :, 2:3]
    return first + jnp.cumsum(actions, axis=1) - actions


def walks(velocities: tuple[float, ...], states: int) -> Dataset:
    """Trajectories in that world, each at one velocity, from 100, 200, …: a row says where it comes from."""
    places = [100.0 * (k + 1) + v * np.arange(states) for k, v in enumerate(velocities)]
    actions = np.repeat(np.asarray(velocities, np.float32), states)
    return from_arrays(
        np.concatenate(places)[:, None].astype(np.float32),
        actions[:, None],
        offsets=np.arange(len(velocities) + 1) * states,
    )
