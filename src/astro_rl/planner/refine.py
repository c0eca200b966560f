"""Our addition to algorithm 2: the planned actions, moved a little downhill on δ itself.

    a ← clip(a − η_k g / rms(g)),   g = ∂δ(a)/∂a through the frozen dynamics model,   η_k = η (1 − k/K)

The planner is told δ and answers with a better guess, but its precision is that of one network: where a gap ends, the
miss is the sum of what it got wrong at every step of it, and the transition from the last generated state to the
recorded one carries all of that at once. The dynamics model knows in which direction to move; L_reg (eq. 15) uses the
same gradient in training. Steps are in units of the action, whatever the scale of δ. Each dimension of the miss counts
in units of how far it gets within the horizon (`Dynamics.spread`): beside a body's posture, half a cell of a large
maze would not count at all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from astro_rl.dynamics.model import Dynamics
from astro_rl.nets.dit import DiT


def refined(
    dynamics: Dynamics,
    network: DiT,
    actions: Float[Array, "batch horizon act"],
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
    noise: Float[Array, "batch horizon obs"],
    *,
    steps: int,
    rate: float,
) -> Float[Array, "batch horizon act"]:
    """Actions after `steps` moves. `noise` stands for τˢ_T, from which the dynamics model says where actions lead."""
    level = jnp.ones(len(states))
    spread, _ = dynamics.measure(states[:, 0])
    counted = known.at[:, 0].set(False)[..., None]
    share = jnp.maximum(counted.sum(axis=(1, 2)), 1) * states.shape[-1]

    def total(tried: Float[Array, "batch horizon act"]) -> Float[Array, ""]:
        rolled = dynamics.clean(network, noise, states[:, 0], tried, level)
        missed = jnp.where(counted, jnp.square((rolled - states) / spread), 0.0).sum(axis=(1, 2))
        # Sequences do not see one another, so the gradient of the sum is each one's own.
        return (missed / share).sum()

    def one(tried: Array, number: Array) -> tuple[Array, None]:
        gradient = jax.grad(total)(tried)
        size = jnp.sqrt(jnp.square(gradient).mean(axis=(1, 2), keepdims=True))
        own = rate * (1 - number / steps)
        return jnp.clip(tried - own * gradient / jnp.maximum(size, 1e-12), -1.0, 1.0), None

    moved, _ = jax.lax.scan(one, actions, jnp.arange(steps))
    return moved
