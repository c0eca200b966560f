"""ReBRAC (Tarasov et al., 2023): TD3+BC with layer norm and imitation in both the policy and the critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents import settings
from astro_rl.agents.base import Batch, Info, LinkedBatch
from astro_rl.agents.losses import (
    Coefficient,
    Scalar,
    Vector,
    reciprocal_scale,
    smoothed,
    squared_distance,
    td_loss,
    td_target,
)
from astro_rl.agents.optimise import copied, descend, init_adam, polyak
from astro_rl.errors import ConfigError
from astro_rl.nets import Critic, MeanPolicy


class ReBRACState(NamedTuple):
    critic: Critic
    target_critic: Critic
    critic_optimiser: optax.OptState
    actor: MeanPolicy
    target_actor: MeanPolicy
    actor_optimiser: optax.OptState
    actor_info: Info
    """Of the last update that moved the actor, so that every update reports the same names."""
    step: Int[Array, ""]


@dataclass(frozen=True)
class ReBRAC:
    """TD3 whose policy and whose bootstrap both pay for leaving the data.

    - L_Q = E[ Σᵢ (Qᵢ(s, a) − r − γ (min Q̄ᵢ(s', ã') − α_Q ‖ã' − a'‖²))² ],
      ã' = μ̄(s') + clip(ε, −c, c)                                   (`penalised`, `td_loss`, `smoothed`)
    - L_π = −E[ min Qᵢ(s, μ(s)) ] / E|Q| + α_π E[ ‖μ(s) − a‖² ]     (`policy_loss`)

    Critic first, then every `actor_delay` updates the policy against the new critic, then both targets.
    """

    hidden: tuple[int, ...] = (256, 256, 256)
    layer_norm: bool = True
    """Layer norm in Q; never in the policy."""
    learning_rate: float = 3e-4
    batch_size: int = 256
    discount: float = 0.99
    tau: float = 0.005
    """Rate of both targets, which move when the policy does."""
    alpha_actor: float = 0.01
    """α_π. Its authors tune both coefficients a task."""
    alpha_critic: float = 0.01
    """α_Q. Above 0, batches have to say what was done next (`LinkedBatch`)."""
    policy_noise: float = 0.2
    noise_clip: float = 0.5
    actor_delay: int = 2

    uses_rewards = True

    def __post_init__(self) -> None:
        settings.check_bootstrapped(self)
        for field in ("alpha_actor", "alpha_critic", "policy_noise", "noise_clip"):
            settings.not_negative(self, field)
        settings.positive_integer(self, "actor_delay")
        settings.check_smoothing(self)

    @property
    def needs_next_actions(self) -> bool:
        return self.alpha_critic > 0

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> ReBRACState:
        critic_key, actor_key = jax.random.split(key)
        critic = Critic.init(critic_key, observation_dim, action_dim, self.hidden, layer_norm=self.layer_norm)
        actor = MeanPolicy.init(actor_key, observation_dim, action_dim, self.hidden, squash=True)
        return ReBRACState(
            critic=critic,
            target_critic=copied(critic),
            critic_optimiser=init_adam(critic, self.learning_rate),
            actor=actor,
            target_actor=copied(actor),
            actor_optimiser=init_adam(actor, self.learning_rate),
            actor_info=dict.fromkeys(ACTOR_INFO, jnp.zeros(())),
            step=jnp.zeros((), jnp.int32),
        )

    def update(
        self, state: ReBRACState, batch: Batch | LinkedBatch, key: Key[Array, ""]
    ) -> tuple[ReBRACState, Info]:
        observations, next_observations = batch.observations, batch.next_observations

        next_actions = smoothed(
            state.target_actor(next_observations), key, self.policy_noise, self.noise_clip
        )
        next_q = state.target_critic(next_observations, next_actions).min(axis=0)
        if self.needs_next_actions:
            linked = require_linked(batch)
            next_q = penalised(
                next_q, next_actions, linked.next_actions, linked.next_known, self.alpha_critic
            )
        targets = td_target(batch.rewards, batch.masks, next_q, self.discount)

        def critic_loss(critic: Critic) -> tuple[Scalar, Info]:
            return td_loss(critic(observations, batch.actions), targets)

        critic, critic_optimiser, critic_info = descend(
            critic_loss, state.critic, state.critic_optimiser, self.learning_rate
        )
        state = state._replace(critic=critic, critic_optimiser=critic_optimiser)

        def actor_loss(actor: MeanPolicy) -> tuple[Scalar, Info]:
            means = actor(observations)
            return policy_loss(
                means, batch.actions, critic(observations, means).min(axis=0), self.alpha_actor
            )

        def improve(state: ReBRACState) -> ReBRACState:
            actor, optimiser, info = descend(
                actor_loss, state.actor, state.actor_optimiser, self.learning_rate
            )
            return state._replace(
                actor=actor,
                actor_optimiser=optimiser,
                target_actor=polyak(state.target_actor, actor, self.tau),
                target_critic=polyak(state.target_critic, critic, self.tau),
                actor_info=info,
            )

        # The first update moves the policy, so that its metrics exist from the start.
        state = jax.lax.cond(state.step % self.actor_delay == 0, improve, lambda state: state, state)
        return state._replace(step=state.step + 1), critic_info | state.actor_info

    def act(
        self, state: ReBRACState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """μ(s): evaluation adds no noise."""
        del keys
        return state.actor(observations)

    def value(self, state: ReBRACState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """min Qᵢ(s, μ(s))."""
        return state.critic(observations, state.actor(observations)).min(axis=0)

    def action_value(
        self, state: ReBRACState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """min Qᵢ(s, a)."""
        return state.critic(observations, actions).min(axis=0)


ACTOR_INFO = ("actor/loss", "actor/q_term", "actor/bc_term", "actor/policy_q", "actor/mse")


def penalised(
    next_q: Vector,
    next_actions: Float[Array, "batch act"],
    data_actions: Float[Array, "batch act"],
    known: Vector,
    alpha: Coefficient,
) -> Vector:
    """min Q̄ᵢ(s', ã') − α_Q ‖ã' − a'‖²; no penalty where a trajectory ends and a' is not known."""
    return next_q - alpha * known * squared_distance(next_actions, data_actions)


def policy_loss(
    means: Float[Array, "batch act"], actions: Float[Array, "batch act"], policy_q: Vector, alpha: Coefficient
) -> tuple[Scalar, Info]:
    """L_π. `policy_q` = min Qᵢ(s, μ(s)) carries the gradient of μ alone."""
    q_term = -policy_q.mean() * stop_gradient(reciprocal_scale(policy_q))
    distance = squared_distance(means, actions)
    bc_term = alpha * distance.mean()
    loss = q_term + bc_term
    return loss, {
        "actor/loss": loss,
        "actor/q_term": q_term,
        "actor/bc_term": bc_term,
        "actor/policy_q": policy_q.mean(),
        "actor/mse": distance.mean() / means.shape[-1],
    }


def require_linked(batch: Batch | LinkedBatch) -> LinkedBatch:
    if not isinstance(batch, LinkedBatch):
        raise ConfigError(
            "ReBRAC's critic penalty compares with the action taken next, which these batches do not carry.",
            field="ReBRAC.alpha_critic",
            found=type(batch).__name__,
            expected="LinkedBatch",
            fix="draw linked batches, or set alpha_critic to 0 for imitation in the policy alone",
        )
    return batch
