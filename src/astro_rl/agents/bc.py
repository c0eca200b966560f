"""Behaviour cloning: what imitation alone gives, without rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents import settings
from astro_rl.agents.base import Batch, Info
from astro_rl.agents.losses import Scalar, gaussian_log_prob
from astro_rl.agents.optimise import descend, init_adam
from astro_rl.nets import MeanPolicy


class BCState(NamedTuple):
    actor: MeanPolicy
    optimiser: optax.OptState
    step: Int[Array, ""]


@dataclass(frozen=True)
class BC:
    """L_π = −E[ log π(a|s) ], π = N(μ(s), I)  (`imitation_loss`)."""

    hidden: tuple[int, ...] = (256, 256, 256)
    learning_rate: float = 3e-4
    batch_size: int = 256

    uses_rewards = False
    needs_next_actions = False

    @property
    def discount(self) -> float:
        """1: imitation discounts nothing. Part of the learner contract, no setting."""
        return 1.0

    def __post_init__(self) -> None:
        settings.check_common(self)

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> BCState:
        actor = MeanPolicy.init(key, observation_dim, action_dim, self.hidden, squash=False)
        return BCState(actor, init_adam(actor, self.learning_rate), jnp.zeros((), jnp.int32))

    def update(self, state: BCState, batch: Batch, key: Key[Array, ""]) -> tuple[BCState, Info]:
        del key

        def loss(actor: MeanPolicy) -> tuple[Scalar, Info]:
            return imitation_loss(actor(batch.observations), batch.actions)

        actor, optimiser, info = descend(loss, state.actor, state.optimiser, self.learning_rate)
        return BCState(actor, optimiser, state.step + 1), info

    def act(
        self, state: BCState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """The policy's mean: evaluation adds no noise."""
        del keys
        return jnp.clip(state.actor(observations), -1.0, 1.0)

    def value(self, state: BCState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """0 everywhere: imitation holds no opinion on how good a state is."""
        del state
        return jnp.zeros(len(observations))

    def action_value(
        self, state: BCState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """0 everywhere, as above."""
        del state, actions
        return jnp.zeros(len(observations))


def imitation_loss(
    means: Float[Array, "batch act"], actions: Float[Array, "batch act"]
) -> tuple[Scalar, Info]:
    log_probs = gaussian_log_prob(means, actions)
    loss = -log_probs.mean()
    return loss, {"actor/loss": loss, "actor/mse": jnp.square(means - actions).mean()}
