"""Policies: a mean that is a function of the state, and a vector field that carries noise to actions."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from astro_rl.nets.mlp import MLP


class MeanPolicy(eqx.Module):
    """μ(s), through tanh when `squash` is set. Starts near 0: the last layer's variance is a hundredth."""

    mlp: MLP
    squash: bool = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        key: Key[Array, ""],
        observation_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        *,
        squash: bool,
    ) -> MeanPolicy:
        return cls(
            MLP.init(key, observation_dim, hidden, action_dim, layer_norm=False, final_gain=0.01), squash
        )

    def __call__(self, observations: Float[Array, "batch obs"]) -> Float[Array, "batch act"]:
        means = self.mlp(observations)
        return jnp.tanh(means) if self.squash else means


class NoisePolicy(eqx.Module):
    """μ(s, z): one pass from noise to an action."""

    mlp: MLP

    @classmethod
    def init(
        cls, key: Key[Array, ""], observation_dim: int, action_dim: int, hidden: Sequence[int]
    ) -> NoisePolicy:
        return cls(MLP.init(key, observation_dim + action_dim, hidden, action_dim, layer_norm=False))

    def __call__(
        self, observations: Float[Array, "batch obs"], noise: Float[Array, "batch act"]
    ) -> Float[Array, "batch act"]:
        return self.mlp(jnp.concatenate([observations, noise], axis=-1))


class VectorField(eqx.Module):
    """v(s, x, t): the velocity at which x, noise at t = 0 and an action at t = 1, moves."""

    mlp: MLP
    observation_dim: int = eqx.field(static=True)

    @classmethod
    def init(
        cls, key: Key[Array, ""], observation_dim: int, action_dim: int, hidden: Sequence[int]
    ) -> VectorField:
        inputs = observation_dim + action_dim + 1
        return cls(MLP.init(key, inputs, hidden, action_dim, layer_norm=False), observation_dim)

    def __call__(
        self,
        observations: Float[Array, "batch obs"],
        x: Float[Array, "batch act"],
        t: Float[Array, "batch"],
    ) -> Float[Array, "batch act"]:
        return self.mlp(jnp.concatenate([observations, x, t[:, None]], axis=-1))

    def flow(
        self, observations: Float[Array, "batch obs"], noise: Float[Array, "batch act"], steps: int
    ) -> Float[Array, "batch act"]:
        """x at t = 1 from x = noise at t = 0, by Euler's method, clipped to actions.

        The state's share of the first layer is the same at every step and computed once.
        """
        first = self.mlp.layers[0]
        of_observations = observations @ first.weight[: self.observation_dim] + first.bias
        of_rest = first.weight[self.observation_dim :]

        def step(x: Float[Array, "batch act"], number: Float[Array, ""]) -> tuple[Array, None]:
            t = jnp.full((len(x), 1), number / steps)
            velocity = self.mlp.from_first_layer(of_observations + jnp.concatenate([x, t], axis=-1) @ of_rest)
            return x + velocity / steps, None

        x, _ = jax.lax.scan(step, noise, jnp.arange(steps, dtype=noise.dtype))
        return jnp.clip(x, -1.0, 1.0)
