"""Flow Q-learning (Park, Li and Levine, 2025), the second base learner of the paper (B.2.1)."""

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
from astro_rl.agents.losses import Coefficient, Scalar, Vector, reciprocal_scale, td_loss, td_target
from astro_rl.agents.optimise import copied, descend, init_adam, polyak
from astro_rl.nets import Critic, NoisePolicy, VectorField


class FQLState(NamedTuple):
    critic: Critic
    target_critic: Critic
    flow: VectorField
    actor: NoisePolicy
    optimiser: optax.OptState
    step: Int[Array, ""]


@dataclass(frozen=True)
class FQL:
    """A flow learns the data's actions; a one-step policy is distilled from it and climbs Q.

    - L_Q       = E[ Σᵢ (Qᵢ(s, a) − r − γ agg Q̄ᵢ(s', μ(s', z)))² ],  z ~ N(0, I)       (`td_loss`)
    - L_Flow    = E[ ‖v(s, xₜ, t) − (a − z)‖² ],  xₜ = (1 − t) z + t a,  t ~ U[0, 1]    (`flow_loss`)
    - L_π       = α E[ ‖μ(s, z) − x₁(s, z)‖² ] − E[ mean Qᵢ(s, μ(s, z)) ]               (`one_step_loss`)

    x₁(s, z) is where `flow_steps` Euler steps carry z. Squares are means over action dimensions.
    """

    hidden: tuple[int, ...] = (256, 256, 256)
    layer_norm: bool = True
    """Layer norm in Q; never in the flow or the policy."""
    learning_rate: float = 3e-4
    batch_size: int = 256
    discount: float = 0.99
    tau: float = 0.005
    """Rate of the target critic."""
    alpha: float = 10.0
    """Weight of distillation against Q. FQL's authors tune it a task."""
    flow_steps: int = 10
    q_aggregation: Literal["mean", "min"] = "mean"
    """Of the two target critics in L_Q. The policy always climbs their mean."""
    normalise_q: bool = False
    """Divide the Q term by mean |Q|, so that alpha does not depend on the reward's scale."""

    uses_rewards = True
    needs_next_actions = False

    def __post_init__(self) -> None:
        settings.check_bootstrapped(self)
        settings.not_negative(self, "alpha")
        settings.positive_integer(self, "flow_steps")
        settings.one_of(self, "q_aggregation", ("mean", "min"))

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> FQLState:
        critic_key, flow_key, actor_key = jax.random.split(key, 3)
        critic = Critic.init(critic_key, observation_dim, action_dim, self.hidden, layer_norm=self.layer_norm)
        flow = VectorField.init(flow_key, observation_dim, action_dim, self.hidden)
        actor = NoisePolicy.init(actor_key, observation_dim, action_dim, self.hidden)
        optimiser = init_adam((critic, flow, actor), self.learning_rate)
        return FQLState(critic, copied(critic), flow, actor, optimiser, jnp.zeros((), jnp.int32))

    def update(self, state: FQLState, batch: Batch, key: Key[Array, ""]) -> tuple[FQLState, Info]:
        observations, actions, next_observations = batch.observations, batch.actions, batch.next_observations
        next_key, source_key, time_key, noise_key = jax.random.split(key, 4)
        next_noise = jax.random.normal(next_key, actions.shape)
        source = jax.random.normal(source_key, actions.shape)
        t = jax.random.uniform(time_key, (len(actions),))
        noise = jax.random.normal(noise_key, actions.shape)

        next_actions = jnp.clip(state.actor(next_observations, next_noise), -1.0, 1.0)
        next_q = aggregate(state.target_critic(next_observations, next_actions), self.q_aggregation)
        targets = td_target(batch.rewards, batch.masks, next_q, self.discount)
        flow_actions = state.flow.flow(observations, noise, self.flow_steps)

        # Whatever is called on `state` is a constant; the networks that `loss` is given carry gradients.
        def loss(networks: tuple[Critic, VectorField, NoisePolicy]) -> tuple[Scalar, Info]:
            critic, flow, actor = networks
            critic_term, critic_info = td_loss(critic(observations, actions), targets)
            velocities = flow(observations, interpolate(source, actions, t), t)
            flow_term, flow_info = flow_loss(velocities, source, actions)
            policy_actions = actor(observations, noise)
            policy_q = state.critic(observations, jnp.clip(policy_actions, -1.0, 1.0)).mean(axis=0)
            actor_term, actor_info = one_step_loss(
                policy_actions, flow_actions, policy_q, self.alpha, normalise_q=self.normalise_q
            )
            actor_info["actor/mse"] = jnp.square(policy_actions - actions).mean()
            return critic_term + flow_term + actor_term, critic_info | flow_info | actor_info

        networks = (state.critic, state.flow, state.actor)
        networks, optimiser, info = descend(loss, networks, state.optimiser, self.learning_rate)
        critic, flow, actor = networks
        target_critic = polyak(state.target_critic, critic, self.tau)
        return FQLState(critic, target_critic, flow, actor, optimiser, state.step + 1), info

    def act(
        self, state: FQLState, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """μ(s, z) with z drawn from each row's own key: the policy is a distribution, in evaluation too."""
        action_dim = state.actor.mlp.layers[-1].bias.shape[-1]
        noise = jax.vmap(lambda key: jax.random.normal(key, (action_dim,)))(keys)
        return jnp.clip(state.actor(observations, noise), -1.0, 1.0)

    def value(self, state: FQLState, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """mean Qᵢ(s, μ(s, 0)): the action at the middle of the noise stands for the policy."""
        action_dim = state.actor.mlp.layers[-1].bias.shape[-1]
        actions = state.actor(observations, jnp.zeros((len(observations), action_dim)))
        return state.critic(observations, jnp.clip(actions, -1.0, 1.0)).mean(axis=0)

    def action_value(
        self, state: FQLState, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """mean Qᵢ(s, a)."""
        return state.critic(observations, actions).mean(axis=0)


def aggregate(q: Float[Array, "members batch"], how: Literal["mean", "min"]) -> Vector:
    return q.min(axis=0) if how == "min" else q.mean(axis=0)


def interpolate(
    source: Float[Array, "batch act"], actions: Float[Array, "batch act"], t: Vector
) -> Float[Array, "batch act"]:
    """xₜ on the straight line from noise (t = 0) to the action (t = 1)."""
    return (1.0 - t[:, None]) * source + t[:, None] * actions


def flow_loss(
    velocities: Float[Array, "batch act"],
    source: Float[Array, "batch act"],
    actions: Float[Array, "batch act"],
) -> tuple[Scalar, Info]:
    """L_Flow: the line's velocity is a − z at every t."""
    loss = jnp.square(velocities - (actions - source)).mean()
    return loss, {"flow/loss": loss}


def one_step_loss(
    policy_actions: Float[Array, "batch act"],
    flow_actions: Float[Array, "batch act"],
    policy_q: Vector,
    alpha: Coefficient,
    *,
    normalise_q: bool,
) -> tuple[Scalar, Info]:
    """L_π: stay with the flow, climb Q. `policy_q` carries the gradient of the policy's action alone."""
    distillation = jnp.square(policy_actions - flow_actions).mean()
    scale = stop_gradient(reciprocal_scale(policy_q)) if normalise_q else 1.0
    q_term = -policy_q.mean() * scale
    loss = alpha * distillation + q_term
    return loss, {
        "actor/loss": loss,
        "actor/distillation": distillation,
        "actor/q_term": q_term,
        "actor/policy_q": policy_q.mean(),
    }
