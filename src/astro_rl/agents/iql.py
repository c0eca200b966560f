"""Implicit Q-learning (Kostrikov et al., 2022), the first base learner of the paper (B.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents import settings
from astro_rl.agents.base import Batch, Info
from astro_rl.agents.losses import (
    Coefficient,
    Scalar,
    Vector,
    gaussian_log_prob,
    reciprocal_scale,
    td_loss,
    td_target,
)
from astro_rl.agents.optimise import copied, descend, init_adam, polyak
from astro_rl.errors import ConfigError
from astro_rl.nets import Critic, MeanPolicy, Value

AWR_ALPHA, AWR_MAX_WEIGHT = 10.0, 100.0


class IQLState(NamedTuple):
    value: Value
    critic: Critic
    target_critic: Critic
    actor: MeanPolicy
    optimiser: optax.OptState
    step: Int[Array, ""]


@dataclass(frozen=True)
class IQL:
    """V is an upper expectile of Q over the data's actions, Q learns from V, π imitates by advantage.

    - L_V = E[ |τ − 1(u < 0)| · u² ],  u = min Q̄ᵢ(s, a) − V(s)                            (`value_loss`)
    - L_Q = E[ Σᵢ (Qᵢ(s, a) − r − γ V(s'))² ]                                             (`td_loss`)
    - L_π, `awr`:     −E[ min(exp(α A), w_max) · log π(a|s) ],  A = min Qᵢ(s, a) − V(s)   (`awr_loss`)
    - L_π, `ddpgbc`:  −E[ min Qᵢ(s, μ(s)) ] / E|Q| − α E[ log π(a|s) ]                    (`ddpgbc_loss`)

    π = N(μ(s), I). The paper's π ∝ exp(β A) is `awr` with α = β.
    """

    hidden: tuple[int, ...] = (256, 256, 256)
    layer_norm: bool = True
    """Layer norm in V and Q; never in the policy."""
    learning_rate: float = 3e-4
    batch_size: int = 256
    discount: float = 0.99
    tau: float = 0.005
    """Rate of the target critic."""
    expectile: float = 0.9
    actor: Literal["awr", "ddpgbc"] = "awr"
    alpha: float | None = None
    """awr: inverse temperature β, 10 unless given. ddpgbc: weight of imitation, which has no default."""
    max_weight: float | None = None
    """awr only: the largest weight of a transition, 100 unless given."""

    uses_rewards = True
    needs_next_actions = False

    def __post_init__(self) -> None:
        settings.check_bootstrapped(self)
        settings.within(self, "expectile", 0.5, 1.0, highest_allowed=False)
        settings.one_of(self, "actor", ("awr", "ddpgbc"))
        if self.actor == "awr":
            # A run records resolved settings, so defaults that depend on the actor are filled in here.
            object.__setattr__(self, "alpha", AWR_ALPHA if self.alpha is None else self.alpha)
            object.__setattr__(
                self, "max_weight", AWR_MAX_WEIGHT if self.max_weight is None else self.max_weight
            )
            settings.above_zero(self, "max_weight")
        elif self.max_weight is not None:
            raise ConfigError(
                "max_weight bounds the weights of awr; it has no effect on ddpgbc.",
                field="IQL.max_weight",
                found=self.max_weight,
                fix="leave max_weight out, or use actor='awr'",
            )
        elif self.alpha is None:
            raise ConfigError(
                "ddpgbc needs alpha, the weight of imitation against Q.",
                field="IQL.alpha",
                expected="a number",
                fix="give alpha; awr's temperatures are another quantity and do not carry over",
            )
        settings.not_negative(self, "alpha")

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> IQLState:
        value_key, critic_key, actor_key = jax.random.split(key, 3)
        value = Value.init(value_key, observation_dim, self.hidden, layer_norm=self.layer_norm)
        critic = Critic.init(critic_key, observation_dim, action_dim, self.hidden, layer_norm=self.layer_norm)
        actor = MeanPolicy.init(actor_key, observation_dim, action_dim, self.hidden, squash=False)
        optimiser = init_adam((value, critic, actor), self.learning_rate)
        return IQLState(value, critic, copied(critic), actor, optimiser, jnp.zeros((), jnp.int32))

    def update(self, state: IQLState, batch: Batch, key: Key[Array, ""]) -> tuple[IQLState, Info]:
        del key
        alpha = settings.given(self.alpha)
        observations, actions = batch.observations, batch.actions
        target_q = state.target_critic(observations, actions).min(axis=0)
        targets = td_target(batch.rewards, batch.masks, state.value(batch.next_observations), self.discount)

        # Whatever is called on `state` is a constant; the networks that `loss` is given carry gradients.
        def loss(networks: tuple[Value, Critic, MeanPolicy]) -> tuple[Scalar, Info]:
            value, critic, actor = networks
            v, q, means = value(observations), critic(observations, actions), actor(observations)
            value_term, value_info = value_loss(v, target_q, self.expectile)
            critic_term, critic_info = td_loss(q, targets)
            if self.actor == "awr":
                advantages = stop_gradient(q.min(axis=0) - v)
                actor_term, actor_info = awr_loss(
                    means, actions, advantages, alpha, settings.given(self.max_weight)
                )
            else:
                policy_q = state.critic(observations, jnp.clip(means, -1.0, 1.0)).min(axis=0)
                actor_term, actor_info = ddpgbc_loss(means, actions, policy_q, alpha)
            return value_term + critic_term + actor_term, value_info | critic_info | actor_info

        networks = (state.value, state.critic, state.actor)
        networks, optimiser, info = descend(loss, networks, state.optimiser, self.learning_rate)
        value, critic, actor = networks
        target_critic = polyak(state.target_critic, critic, self.tau)
        return IQLState(value, critic, target_critic, actor, optimiser, state.step + 1), info

    def act(
        self, state: IQLState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """The policy's mean: evaluation adds no noise."""
        del keys
        return jnp.clip(state.actor(observations), -1.0, 1.0)

    def value(self, state: IQLState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        return state.value(observations)

    def action_value(
        self, state: IQLState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """min Qᵢ(s, a)."""
        return state.critic(observations, actions).min(axis=0)


def value_loss(v: Vector, target_q: Vector, expectile: Coefficient) -> tuple[Scalar, Info]:
    """L_V: errors of a V too low weigh `expectile`, of a V too high 1 − `expectile`."""
    u = target_q - v
    loss = (jnp.where(u >= 0, expectile, 1.0 - expectile) * jnp.square(u)).mean()
    return loss, {
        "value/loss": loss,
        "value/v_mean": v.mean(),
        "value/v_max": v.max(),
        "value/v_min": v.min(),
    }


def awr_loss(
    means: Float[Array, "batch act"],
    actions: Float[Array, "batch act"],
    advantages: Vector,
    alpha: Coefficient,
    max_weight: Coefficient,
) -> tuple[Scalar, Info]:
    """L_π of advantage-weighted regression."""
    weights = jnp.minimum(jnp.exp(alpha * advantages), max_weight)
    log_probs = gaussian_log_prob(means, actions)
    loss = -(weights * log_probs).mean()
    return loss, {
        "actor/loss": loss,
        "actor/advantage_mean": advantages.mean(),
        "actor/weight_mean": weights.mean(),
        "actor/log_prob": log_probs.mean(),
        "actor/mse": jnp.square(means - actions).mean(),
    }


def ddpgbc_loss(
    means: Float[Array, "batch act"],
    actions: Float[Array, "batch act"],
    policy_q: Vector,
    alpha: Coefficient,
) -> tuple[Scalar, Info]:
    """L_π of policy gradient with imitation. `policy_q` = min Qᵢ(s, μ(s)) carries the gradient of μ alone."""
    q_term = -policy_q.mean() * stop_gradient(reciprocal_scale(policy_q))
    log_probs = gaussian_log_prob(means, actions)
    bc_term = -alpha * log_probs.mean()
    return q_term + bc_term, {
        "actor/loss": q_term + bc_term,
        "actor/q_term": q_term,
        "actor/bc_term": bc_term,
        "actor/policy_q": policy_q.mean(),
        "actor/log_prob": log_probs.mean(),
        "actor/mse": jnp.square(means - actions).mean(),
    }
