"""Sampling by predicted clean samples: the paper's re-noising rule, eq. (5), or DDIM's deterministic one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from astro_rl.diffusion.schedule import Schedule, deterministic_step, noised

Sampler = Literal["renoise", "ddim"]
Predict = Callable[[Float[Array, "batch *shape"], Float[Array, "batch"]], Float[Array, "batch *shape"]]
"""(sample at a level, level) to the clean sample it is thought to come from."""


def step_down(
    schedule: Schedule,
    sampler: Sampler,
    sample: Float[Array, "batch *shape"],
    clean: Float[Array, "batch *shape"],
    level: Float[Array, "batch"],
    next_level: Float[Array, "batch"],
    key: Key[Array, ""],
) -> Float[Array, "batch *shape"]:
    """x̂_{t−1} from x̃_t. At level 0 both rules give x̃ itself."""
    if sampler == "ddim":
        return deterministic_step(schedule, sample, clean, level, next_level)
    return noised(schedule, clean, next_level, jax.random.normal(key, sample.shape))


def sample(
    schedule: Schedule,
    predict: Predict,
    noise: Float[Array, "batch *shape"],
    key: Key[Array, ""],
    *,
    steps: int,
    sampler: Sampler = "renoise",
) -> Float[Array, "batch *shape"]:
    """From pure noise to a clean sample in T = `steps` predictions."""
    levels = schedule.levels(steps)

    def one(x: Array, step: Array) -> tuple[Array, None]:
        level = jnp.full(len(noise), levels[step])
        clean = predict(x, level)
        below = jnp.full(len(noise), levels[step - 1])
        return step_down(schedule, sampler, x, clean, level, below, jax.random.fold_in(key, step)), None

    result, _ = jax.lax.scan(one, noise, jnp.arange(steps, 0, -1))
    return result
