"""Inverse dynamics: the action that leads from one state to the next.

    L = E ‖ a − f(s, s') ‖²                                                                             (3)

f is shown s and (s' − s) / σ, σ the typical step of each dimension: beside the spread of a large place one step is a
rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from astro_rl.dynamics.sequences import SequenceData, draw_sequences, require_scale
from astro_rl.nets.mlp import MLP
from astro_rl.training.optimise import adamw, descend, init_optimiser

Info = dict[str, Float[Array, ""]]


class InverseState(NamedTuple):
    network: MLP
    optimiser: optax.OptState


@dataclass(frozen=True)
class InverseDynamics:
    """Hyperparameters of f, and what can be done with its weights."""

    observation_dim: int
    action_dim: int
    scale: tuple[float, ...]
    """σ, in normalised units."""
    hidden: tuple[int, ...] = (256, 256)
    batch_size: int = 256
    learning_rate: float = 1e-3
    cooldown: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require_scale(self.scale, self.observation_dim)

    def init(self, key: Key[Array, ""]) -> InverseState:
        network = MLP.init(key, 2 * self.observation_dim, self.hidden, self.action_dim, layer_norm=True)
        return InverseState(network, init_optimiser(self._optimiser(), network))

    def update(
        self, state: InverseState, data: SequenceData, key: Key[Array, ""]
    ) -> tuple[InverseState, Info]:
        """`data.starts` are rows that a transition leaves."""
        states, actions = draw_sequences(key, data, self.batch_size, 2)
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, states[:, 0], states[:, 1], actions[:, 0]
        )
        return InverseState(*descend(self._optimiser(), state.network, state.optimiser, gradients)), info

    def loss(
        self,
        network: MLP,
        here: Float[Array, "batch obs"],
        after: Float[Array, "batch obs"],
        actions: Float[Array, "batch act"],
    ) -> tuple[Float[Array, ""], Info]:
        """(3), a mean over dimensions."""
        error = jnp.square(self.predict(network, here, after) - actions).mean()
        return error, {"action_mse": error}

    def predict(
        self, network: MLP, here: Float[Array, "*batch obs"], after: Float[Array, "*batch obs"]
    ) -> Float[Array, "*batch act"]:
        """f(s, s'), of normalised states. It is an expectation: nothing keeps it within bounds."""
        return network(jnp.concatenate([here, (after - here) / jnp.asarray(self.scale)], axis=-1))

    def along(
        self, network: MLP, states: Float[Array, "batch horizon obs"]
    ) -> Float[Array, "batch horizon act"]:
        """Actions of a whole sequence, within [−1, 1]; the last one leads out of it and is 0."""
        found = jnp.clip(self.predict(network, states[:, :-1], states[:, 1:]), -1.0, 1.0)
        return jnp.pad(found, ((0, 0), (0, 1), (0, 0)))

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, cooldown=self.cooldown, clip=1.0)
