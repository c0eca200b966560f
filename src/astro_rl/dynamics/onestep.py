"""f(s, a): one step of the dynamics, learned from recorded transitions. Our addition: the paper has no such model.

    L = E ‖ (s' − f(s, a)) / σ ‖²,      f(s, a) = s + σ · mean of the members' answers,      σ the typical change in a step

The diffusion model sees a whole sequence at once and is right about where actions lead; what it says of two neighbouring
states is as coarse as its answer for the sequence. A small network that only ever looks one step ahead learns that step
several times as exactly in a tenth of the time (docs/results/astro.md), and drifts over many. `planner.polish` uses it
for what it is good at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.dynamics.sequences import SequenceData, draw_sequences
from astro_rl.errors import ConfigError
from astro_rl.nets.mlp import MLP
from astro_rl.training.optimise import adamw, copied, descend, init_optimiser, settled

Info = dict[str, Float[Array, ""]]


class OneStepState(NamedTuple):
    network: MLP
    """Members stacked along a first axis."""
    average: MLP
    """Exponential moving average of the weights: what is used after training."""
    optimiser: optax.OptState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class OneStep:
    """Hyperparameters of f, and what can be done with its weights. States are normalised."""

    observation_dim: int
    action_dim: int
    scale: tuple[float, ...]
    """σ of each dimension; 0 on those that never change, and f leaves them alone."""
    hidden: tuple[int, ...] = (256, 256, 256)
    members: int = 2
    batch_size: int = 512
    """Transitions that each member draws for itself."""
    learning_rate: float = 1e-3
    warmup: int = 200
    cooldown: tuple[int, int] | None = None
    average_rate: float = 0.002

    def __post_init__(self) -> None:
        if len(self.scale) != self.observation_dim:
            raise ConfigError(
                "Every dimension has a typical step.",
                field="scale",
                found=f"{len(self.scale)} numbers",
                expected=f"{self.observation_dim}",
            )
        if self.members < 1:
            raise ConfigError("A model needs a member.", field="members", found=self.members)

    def init(self, key: Key[Array, ""]) -> OneStepState:
        inputs = self.observation_dim + self.action_dim

        def member(own: Key[Array, ""]) -> MLP:
            return MLP.init(own, inputs, self.hidden, self.observation_dim, layer_norm=True, final_gain=0.01)

        network = jax.vmap(member)(jax.random.split(key, self.members))
        return OneStepState(
            network, copied(network), init_optimiser(self._optimiser(), network), jnp.int32(0)
        )

    def update(
        self, state: OneStepState, data: SequenceData, key: Key[Array, ""]
    ) -> tuple[OneStepState, Info]:
        """`data`: sequences of two states."""
        states, actions = draw_sequences(key, data, self.members * self.batch_size, 2)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, states[:, 0], actions[:, 0], states[:, 1]
        )
        network, optimiser = descend(self._optimiser(), state.network, state.optimiser, gradients)
        average = settled(state.average, network, self.average_rate, state.updates)
        return OneStepState(network, average, optimiser, state.updates + 1), info

    def loss(
        self,
        network: MLP,
        states: Float[Array, "batch obs"],
        actions: Float[Array, "batch act"],
        following: Float[Array, "batch obs"],
    ) -> tuple[Float[Array, ""], Info]:
        """L, each member on its own share of the batch."""
        moving, sigma = self._sigma()
        inputs = jnp.concatenate([states, actions], axis=-1).reshape(self.members, -1, self._inputs)
        wanted = ((following - states) / sigma).reshape(self.members, -1, self.observation_dim)
        answers = jax.vmap(lambda member, own: member(own))(network, inputs)
        each = (jnp.square(answers - wanted) * moving).sum(axis=-1) / jnp.maximum(moving.sum(), 1)
        return each.mean(), {"one_step_mse": each.mean()}

    def following(
        self, network: MLP, states: Float[Array, "*batch obs"], actions: Float[Array, "*batch act"]
    ) -> Float[Array, "*batch obs"]:
        """f(s, a)."""
        moving, sigma = self._sigma()
        inputs = jnp.concatenate([states, actions], axis=-1)
        answers = jax.vmap(lambda member: member(inputs))(network)
        return states + sigma * moving * answers.mean(axis=0)

    def misses(
        self,
        network: MLP,
        states: Float[Array, "*batch steps obs"],
        actions: Float[Array, "*batch steps act"],
    ) -> Float[Array, "*batch transitions obs"]:
        """(s_{t+1} − f(s_t, a_t)) / σ along sequences; 0 on dimensions that never change."""
        moving, sigma = self._sigma()
        told = self.following(network, states[..., :-1, :], actions[..., :-1, :])
        return (states[..., 1:, :] - told) / sigma * moving

    @property
    def _inputs(self) -> int:
        return self.observation_dim + self.action_dim

    def _sigma(self) -> tuple[Float[Array, "obs"], Float[Array, "obs"]]:
        """1 where a dimension moves and σ there; 0 and 1 where it does not."""
        scale = jnp.asarray(self.scale, jnp.float32)
        return (scale > 0).astype(jnp.float32), jnp.where(scale > 0, scale, 1.0)

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, warmup=self.warmup, cooldown=self.cooldown, clip=10.0)
