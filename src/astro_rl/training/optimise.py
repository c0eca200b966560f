"""Gradient steps for models that are fitted once: clipping, warm-up and a moving average of the weights."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

Network = TypeVar("Network")


def adamw(
    rate: float,
    *,
    warmup: int = 0,
    cooldown: tuple[int, int] | None = None,
    decay: float = 0.0,
    clip: float | None = None,
) -> optax.GradientTransformation:
    """AdamW with a linear warm-up, a rate that falls linearly to nothing between two updates, and clipping by global
    norm, where asked for."""
    rising: Any = optax.linear_schedule(0.0, rate, warmup) if warmup else optax.constant_schedule(rate)
    first, last = cooldown or (0, 0)
    falling: Any = optax.linear_schedule(1.0, 0.0, max(last - first, 1), first)

    def schedule(count: Any) -> Any:
        return rising(count) if cooldown is None else rising(count) * falling(count)

    steps = [optax.adamw(schedule, weight_decay=decay)]
    return optax.chain(*([optax.clip_by_global_norm(clip)] if clip is not None else []), *steps)


def init_optimiser(optimiser: optax.GradientTransformation, network: Any) -> optax.OptState:
    return optimiser.init(network)


def descend(
    optimiser: optax.GradientTransformation, network: Network, state: optax.OptState, gradients: Any
) -> tuple[Network, optax.OptState]:
    """One step against `gradients`."""
    parameters: Any = network
    updates, state = optimiser.update(gradients, state, parameters)
    moved: Any = optax.apply_updates(parameters, updates)
    return moved, state


def averaged(average: Network, network: Network, rate: float | Array) -> Network:
    """θ̄ ← (1 − rate) θ̄ + rate θ: a target network, or the weights that are used after training."""
    return jax.tree.map(lambda slow, fast: (1 - rate) * slow + rate * fast, average, network)


def settled(average: Network, network: Network, rate: float, updates: Array) -> Network:
    """The moving average after `updates` of them, which forgets its random beginning: the first weights count as any
    other tenth, not for 1 / rate updates."""
    count = updates.astype(jnp.float32)
    return averaged(average, network, jnp.maximum(rate, 9.0 / (10.0 + count)))


def copied(network: Network) -> Network:
    """The same numbers in memory of their own, so that a state's buffers can be donated."""
    return jax.tree.map(jnp.copy, network)
