"""Value functions: V(s), and the pair of critics Q(s, a) as one network with stacked weights."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from astro_rl.nets.mlp import MLP


class Value(eqx.Module):
    """V(s)."""

    mlp: MLP

    @classmethod
    def init(
        cls, key: Key[Array, ""], observation_dim: int, hidden: Sequence[int], *, layer_norm: bool
    ) -> Value:
        return cls(MLP.init(key, observation_dim, hidden, 1, layer_norm=layer_norm))

    def __call__(self, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        return self.mlp(observations)[:, 0]


class Critic(eqx.Module):
    """Q₁, …, Qₙ(s, a). Weights carry a leading member axis, so each layer is one batched matrix product."""

    members: MLP

    @classmethod
    def init(
        cls,
        key: Key[Array, ""],
        observation_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        *,
        layer_norm: bool,
        n_members: int = 2,
    ) -> Critic:
        def one(key: Key[Array, ""]) -> MLP:
            return MLP.init(key, observation_dim + action_dim, hidden, 1, layer_norm=layer_norm)

        return cls(eqx.filter_vmap(one)(jax.random.split(key, n_members)))

    def __call__(
        self, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "members batch"]:
        inputs = jnp.concatenate([observations, actions], axis=-1)
        return jax.vmap(lambda member: member(inputs)[:, 0])(self.members)

    def first(
        self, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """Q₁(s, a) alone, for losses that need no more: the other members are not computed."""
        member = jax.tree.map(lambda stacked: stacked[0], self.members)
        return member(jnp.concatenate([observations, actions], axis=-1))[:, 0]
