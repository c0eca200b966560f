"""The gradient step and the target update, the same for every learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from astro_rl.agents.base import Info

Networks = TypeVar("Networks")
Network = TypeVar("Network")


def adam(learning_rate: float) -> optax.GradientTransformation:
    """Adam over all parameters as one vector: one kernel, not one a matrix, which saves a CPU 4 to 8 % of an update."""
    return optax.flatten(optax.adam(learning_rate))


def init_adam(networks: object, learning_rate: float) -> optax.OptState:
    return adam(learning_rate).init(networks)  # pyright: ignore[reportArgumentType]


def descend(
    loss: Callable[[Networks], tuple[Float[Array, ""], Info]],
    networks: Networks,
    optimiser: optax.OptState,
    learning_rate: float,
) -> tuple[Networks, optax.OptState, Info]:
    """One step of Adam on `networks`, the only thing that `loss` is differentiated by."""
    gradients, info = jax.grad(loss, has_aux=True)(networks)
    updates, optimiser = adam(learning_rate).update(gradients, optimiser)
    return optax.apply_updates(networks, updates), optimiser, info  # pyright: ignore[reportArgumentType, reportReturnType]


def polyak(target: Network, online: Network, tau: float) -> Network:
    """θ̄ ← τ·θ + (1 − τ)·θ̄, after the gradient step, as in FQL's code."""
    return jax.tree.map(lambda slow, fast: tau * fast + (1.0 - tau) * slow, target, online)


def copied(network: Network) -> Network:
    """The same numbers in memory of their own, so that a caller may donate the whole state."""
    return jax.tree.map(jnp.copy, network)
