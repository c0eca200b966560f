"""Learning ψ: expectile regression of −d(s, g) onto −1 − γ d(s', g), eq. (3).

V(g, g) = 0 by construction, so the target needs no terminal case: where s' = g it is −1. The expectile near 1
makes V the value of the *best* of the actions seen, so d becomes the shortest time rather than the time the data took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.errors import ConfigError
from astro_rl.temporal.encoder import Encoder, distance
from astro_rl.temporal.goals import sample_goals
from astro_rl.training.optimise import adamw, averaged, copied, descend, init_optimiser

Info = dict[str, Float[Array, ""]]


class TemporalData(NamedTuple):
    """Normalised observations on the device, with what goal sampling needs to know."""

    observations: Float[Array, "rows obs"]
    transition_rows: Int[Array, "transitions"]
    last_row_of: Int[Array, "rows"]


class TemporalState(NamedTuple):
    encoder: Encoder
    """Ensemble members stacked along a first axis."""
    target: Encoder
    optimiser: optax.OptState


@dataclass(frozen=True)
class TemporalLearner:
    """HILP's recipe at `paper` size: 512×3, two members, batch 1024, a million steps."""

    hidden: tuple[int, ...] = (512, 512, 512)
    latent: int = 32
    members: int = 2
    discount: float = 0.99
    expectile: float = 0.95
    target_rate: float = 0.005
    learning_rate: float = 3e-4
    batch_size: int = 1024
    future_share: float = 0.625
    cooldown: tuple[int, int] | None = None
    """Updates between which the rate falls to nothing: far pairs differ by less than the last updates' noise."""

    def __post_init__(self) -> None:
        if not 0.5 < self.expectile < 1:
            raise ConfigError("The expectile must lie in (0.5, 1).", field="expectile", found=self.expectile)
        if not 0 < self.discount < 1:
            raise ConfigError("The discount must lie in (0, 1).", field="discount", found=self.discount)
        if not 0 <= self.future_share <= 1:
            raise ConfigError("A share lies in [0, 1].", field="future_share", found=self.future_share)

    def init(self, key: Key[Array, ""], observation_dim: int) -> TemporalState:
        keys = jax.random.split(key, self.members)
        encoder = jax.vmap(lambda k: Encoder.init(k, observation_dim, self.hidden, self.latent))(keys)
        return TemporalState(encoder, copied(encoder), init_optimiser(self._optimiser(), encoder))

    def update(
        self, state: TemporalState, data: TemporalData, key: Key[Array, ""]
    ) -> tuple[TemporalState, Info]:
        row_key, goal_key = jax.random.split(key)
        drawn = jax.random.randint(row_key, (self.batch_size,), 0, len(data.transition_rows))
        rows = data.transition_rows[drawn]
        goals = sample_goals(
            goal_key,
            rows,
            data.last_row_of[rows],
            len(data.observations),
            discount=self.discount,
            future_share=self.future_share,
        )
        s, s_next, g = data.observations[rows], data.observations[rows + 1], data.observations[goals]
        gradients, info = jax.grad(self.loss, has_aux=True)(state.encoder, state.target, s, s_next, g)
        encoder, optimiser = descend(self._optimiser(), state.encoder, state.optimiser, gradients)
        target = averaged(state.target, encoder, self.target_rate)
        return TemporalState(encoder, target, optimiser), info

    def loss(
        self,
        encoder: Encoder,
        target: Encoder,
        s: Float[Array, "batch obs"],
        s_next: Float[Array, "batch obs"],
        g: Float[Array, "batch obs"],
    ) -> tuple[Float[Array, ""], Info]:
        """Eq. (3). With several members each regresses onto its own target under a weight that they share (HILP)."""
        value = -_member_distances(encoder, s, g)
        next_value = -_member_distances(target, s_next, g)
        pessimistic = next_value.min(axis=0)
        weight_error = -1 + self.discount * pessimistic - (-_member_distances(target, s, g)).mean(axis=0)
        error = -1 + self.discount * next_value - value
        weight = jnp.where(
            (weight_error if self.members > 1 else error) >= 0, self.expectile, 1 - self.expectile
        )
        loss = (weight * jnp.square(error)).mean()
        return loss, {"loss": loss, "distance/mean": -value.mean(), "distance/max": -value.min()}

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.learning_rate, cooldown=self.cooldown)


def _member_distances(
    encoder: Encoder, a: Float[Array, "batch obs"], b: Float[Array, "batch obs"]
) -> Float[Array, "members batch"]:
    return jax.vmap(lambda member: distance(member(a), member(b)))(encoder)
