"""A one-step dynamics model: some networks that say where an action leads, and how far a sequence is from that.

    L = E ‖ (s' − s)/σ − f(s, a) ‖²  of each member, on its own draws                                     (4)
    deviation of a transition:  Σ over dimensions of (s̃' − s')²,  s̃' = s + σ · mean of the members          (5)

The diffusion model sees a whole sequence at once and is right about where actions lead; what it says of two
neighbouring states is as coarse as its answer for the sequence. A network that only ever looks one step ahead learns
that step several times as exactly in a fraction of the time (docs/results/astro.md), and drifts over many. It is what
gaps are polished with (`planner.polish`), and the judge in DiffStitch's last step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from astro_rl.dynamics.sequences import SequenceData, draw_sequences, require_scale
from astro_rl.errors import ConfigError
from astro_rl.nets.mlp import MLP
from astro_rl.training.optimise import adamw, descend, init_optimiser

Info = dict[str, Float[Array, ""]]


class OneStepState(NamedTuple):
    network: MLP
    """All members, stacked along a first axis."""
    optimiser: optax.OptState


@dataclass(frozen=True)
class OneStep:
    """Hyperparameters of the members, and what can be done with their weights."""

    observation_dim: int
    action_dim: int
    scale: tuple[float, ...]
    """σ, the typical step of each dimension in normalised units."""
    members: int = 3
    hidden: tuple[int, ...] = (200, 200, 200)
    batch_size: int = 256
    learning_rate: float = 1e-3
    cooldown: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require_scale(self.scale, self.observation_dim)
        if self.members < 1:
            raise ConfigError("An ensemble needs a member.", field="members", found=self.members)

    def init(self, key: Key[Array, ""]) -> OneStepState:
        inputs = self.observation_dim + self.action_dim
        networks = jax.vmap(
            lambda own: MLP.init(own, inputs, self.hidden, self.observation_dim, layer_norm=True)
        )(jax.random.split(key, self.members))
        return OneStepState(networks, init_optimiser(self._optimiser(), networks))

    def update(
        self, state: OneStepState, data: SequenceData, key: Key[Array, ""]
    ) -> tuple[OneStepState, Info]:
        states, actions = draw_sequences(key, data, self.members * self.batch_size, 2)
        parts = (self.members, self.batch_size, -1)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network,
            states[:, 0].reshape(parts),
            actions[:, 0].reshape(parts),
            states[:, 1].reshape(parts),
        )
        return OneStepState(*descend(self._optimiser(), state.network, state.optimiser, gradients)), info

    def loss(
        self,
        network: MLP,
        here: Float[Array, "members batch obs"],
        actions: Float[Array, "members batch act"],
        after: Float[Array, "members batch obs"],
    ) -> tuple[Float[Array, ""], Info]:
        """(4), a mean over members, draws and dimensions."""
        wanted = (after - here) / jnp.asarray(self.scale)
        told = jax.vmap(lambda own, s, a: own(jnp.concatenate([s, a], axis=-1)))(network, here, actions)
        error = jnp.square(told - wanted).mean()
        return error, {"step_mse": error}

    def predict(
        self, network: MLP, here: Float[Array, "*batch obs"], actions: Float[Array, "*batch act"]
    ) -> Float[Array, "*batch obs"]:
        """s̃', normalised."""
        inputs = jnp.concatenate([here, actions], axis=-1)
        change = jax.vmap(lambda own: own(inputs))(network).mean(axis=0)
        return here + jnp.asarray(self.scale) * change

    def deviation(
        self,
        network: MLP,
        states: Float[Array, "batch horizon obs"],
        actions: Float[Array, "batch horizon act"],
    ) -> Float[Array, "batch transitions"]:
        """(5), of each of the horizon − 1 transitions."""
        told = self.predict(network, states[:, :-1], actions[:, :-1])
        return jnp.square(told - states[:, 1:]).sum(axis=-1)

    def misses(
        self,
        network: MLP,
        states: Float[Array, "batch horizon obs"],
        actions: Float[Array, "batch horizon act"],
    ) -> Float[Array, "batch transitions obs"]:
        """(s_{t+1} − s̃') / σ: what the model cannot explain, in typical steps."""
        told = self.predict(network, states[:, :-1], actions[:, :-1])
        return (states[:, 1:] - told) / jnp.asarray(self.scale)

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, cooldown=self.cooldown, clip=1.0)
