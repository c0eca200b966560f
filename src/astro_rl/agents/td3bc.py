"""TD3+BC (Fujimoto and Gu, 2021): TD3 with one imitation term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents import settings
from astro_rl.agents.base import Batch, Info
from astro_rl.agents.losses import Coefficient, Scalar, Vector, reciprocal_scale, smoothed, td_loss, td_target
from astro_rl.agents.optimise import copied, descend, init_adam, polyak
from astro_rl.nets import Critic, MeanPolicy
from astro_rl.nets.normaliser import Normaliser


class TD3BCState(NamedTuple):
    normaliser: Normaliser
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
class TD3BC:
    """Two critics with a smoothed target; a policy, moved less often, that climbs Q₁ and stays near the data.

    - L_Q = E[ Σᵢ (Qᵢ(s, a) − r − γ min Q̄ᵢ(s', ã'))² ],  ã' = μ̄(s') + clip(ε, −c, c)   (`td_loss`, `smoothed`)
    - L_π = −α E[ Q₁(s, μ(s)) ] / E|Q₁| + E[ ‖μ(s) − a‖² ], averaged over dimensions   (`policy_loss`)

    Observations are normalised. Critic first; every `actor_delay` updates the policy against the new critic,
    then both targets.
    """

    hidden: tuple[int, ...] = (256, 256, 256)
    learning_rate: float = 3e-4
    batch_size: int = 256
    discount: float = 0.99
    tau: float = 0.005
    """Rate of both targets, which move when the policy does."""
    alpha: float = 2.5
    """Weight of Q against imitation."""
    policy_noise: float = 0.2
    noise_clip: float = 0.5
    actor_delay: int = 2

    uses_rewards = True
    needs_next_actions = False

    def __post_init__(self) -> None:
        settings.check_bootstrapped(self)
        for field in ("alpha", "policy_noise", "noise_clip"):
            settings.not_negative(self, field)
        settings.positive_integer(self, "actor_delay")
        settings.check_smoothing(self)

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> TD3BCState:
        critic_key, actor_key = jax.random.split(key)
        critic = Critic.init(critic_key, observation_dim, action_dim, self.hidden, layer_norm=False)
        actor = MeanPolicy.init(actor_key, observation_dim, action_dim, self.hidden, squash=True)
        return TD3BCState(
            normaliser=Normaliser.init(observation_dim),
            critic=critic,
            target_critic=copied(critic),
            critic_optimiser=init_adam(critic, self.learning_rate),
            actor=actor,
            target_actor=copied(actor),
            actor_optimiser=init_adam(actor, self.learning_rate),
            actor_info=dict.fromkeys(ACTOR_INFO, jnp.zeros(())),
            step=jnp.zeros((), jnp.int32),
        )

    def update(self, state: TD3BCState, batch: Batch, key: Key[Array, ""]) -> tuple[TD3BCState, Info]:
        normaliser = state.normaliser.include(batch.observations)
        observations, next_observations = normaliser(batch.observations), normaliser(batch.next_observations)

        next_actions = smoothed(
            state.target_actor(next_observations), key, self.policy_noise, self.noise_clip
        )
        next_q = state.target_critic(next_observations, next_actions).min(axis=0)
        targets = td_target(batch.rewards, batch.masks, next_q, self.discount)

        def critic_loss(critic: Critic) -> tuple[Scalar, Info]:
            return td_loss(critic(observations, batch.actions), targets)

        critic, critic_optimiser, critic_info = descend(
            critic_loss, state.critic, state.critic_optimiser, self.learning_rate
        )
        state = state._replace(normaliser=normaliser, critic=critic, critic_optimiser=critic_optimiser)

        def actor_loss(actor: MeanPolicy) -> tuple[Scalar, Info]:
            means = actor(observations)
            return policy_loss(means, batch.actions, critic.first(observations, means), self.alpha)

        def improve(state: TD3BCState) -> TD3BCState:
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
        self, state: TD3BCState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """μ(s): evaluation adds no noise."""
        del keys
        return state.actor(state.normaliser(observations))

    def value(self, state: TD3BCState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """min Qᵢ(s, μ(s))."""
        normalised = state.normaliser(observations)
        return state.critic(normalised, state.actor(normalised)).min(axis=0)

    def action_value(
        self, state: TD3BCState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """min Qᵢ(s, a)."""
        return state.critic(state.normaliser(observations), actions).min(axis=0)


ACTOR_INFO = ("actor/loss", "actor/q_term", "actor/policy_q", "actor/mse")


def policy_loss(
    means: Float[Array, "batch act"], actions: Float[Array, "batch act"], policy_q: Vector, alpha: Coefficient
) -> tuple[Scalar, Info]:
    """L_π. `policy_q` = Q₁(s, μ(s)) carries the gradient of μ alone."""
    q_term = -alpha * policy_q.mean() * stop_gradient(reciprocal_scale(policy_q))
    mse = jnp.square(means - actions).mean()
    loss = q_term + mse
    return loss, {
        "actor/loss": loss,
        "actor/q_term": q_term,
        "actor/policy_q": policy_q.mean(),
        "actor/mse": mse,
    }
