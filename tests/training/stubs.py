"""A learner whose state is easy to reason about: it remembers sums of what it was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from astro_rl.agents.base import Batch, Info
from astro_rl.data.schema import Dataset


class SumState(NamedTuple):
    weights: Float[Array, "obs act"]
    seen: Float[Array, "obs"]
    steps: Array


@dataclass(frozen=True)
class Regressor:
    """Least squares from observation to action by gradient descent: deterministic, linear, sensitive to every row."""

    batch_size: int = 8
    discount: float = 0.99
    rate: float = 0.01

    uses_rewards = True
    needs_next_actions = False

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> SumState:
        weights = 0.1 * jax.random.normal(key, (observation_dim, action_dim))
        return SumState(weights, jnp.zeros(observation_dim), jnp.zeros((), jnp.int32))

    def update(self, state: SumState, batch: Batch, key: Key[Array, ""]) -> tuple[SumState, Info]:
        noisy = batch.actions + 0.01 * jax.random.normal(key, batch.actions.shape)

        def loss(weights: Array) -> Array:
            return jnp.square(batch.observations @ weights - noisy).mean()

        value, gradient = jax.value_and_grad(loss)(state.weights)
        seen = state.seen + (batch.observations + 3 * batch.next_observations).sum(axis=0)
        return SumState(state.weights - self.rate * gradient, seen, state.steps + 1), {"fit/loss": value}

    def act(
        self, state: SumState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        return jnp.clip(observations @ state.weights, -1, 1)

    def value(self, state: SumState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        return observations.sum(axis=-1)

    def action_value(
        self, state: SumState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        return observations.sum(axis=-1) + actions.sum(axis=-1)


def counting_dataset(lengths: tuple[int, ...], start: float = 0.0, dtype: type = np.float32) -> Dataset:
    """Observation = (trajectory, row number in it): a batch shows at once which rows it came from."""
    rows = [np.stack([np.full(n + 1, k + start), np.arange(n + 1)], axis=1) for k, n in enumerate(lengths)]
    observations = np.concatenate(rows).astype(dtype)
    total = len(observations)
    offsets = np.concatenate([[0], np.cumsum([n + 1 for n in lengths])]).astype(np.int64)
    terminated = np.zeros(total, bool)
    terminated[offsets[1:] - 2] = True
    generator = np.random.default_rng(int(start))
    return Dataset(
        observations=observations,
        actions=generator.uniform(-1, 1, (total, 1)).astype(dtype),
        terminated=terminated,
        truncated=np.zeros(total, bool),
        offsets=offsets,
        rewards=np.arange(total).astype(dtype),
    )
