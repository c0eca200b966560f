"""The denoiser of transitions: how it learns, and rows drawn from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.augmenters.synther.columns import Columns
from astro_rl.augmenters.synther.edm import Heun, Noise
from astro_rl.augmenters.synther.networks import ResidualConfig, ResidualMLP, TransitionDiT
from astro_rl.nets.dit import DiTConfig
from astro_rl.training.optimise import copied, descend, init_optimiser, settled

NetworkName = Literal["mlp", "dit"]
TWO_STEPS = DiTConfig(width=128, depth=4, heads=4, patch=1)
"""A transition has two steps, and each is a token."""


class DenoiserState(NamedTuple):
    network: ResidualMLP | TransitionDiT
    average: ResidualMLP | TransitionDiT
    """Exponential moving average of the weights: what is used after training."""
    optimiser: optax.OptState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class Denoiser:
    """Hyperparameters, hashable: one compilation for each."""

    columns: Columns
    noise: Noise = field(default_factory=Noise)
    network: NetworkName = "mlp"
    mlp: ResidualConfig = field(default_factory=ResidualConfig)
    dit: DiTConfig = TWO_STEPS
    steps: int = 100_000
    """Updates over which the learning rate falls to nothing, along a cosine."""
    batch_size: int = 256
    learning_rate: float = 3e-4
    average_rate: float = 0.0005

    def init(self, key: Key[Array, ""]) -> DenoiserState:
        network = jax.jit(self.fresh)(key)
        return DenoiserState(
            network, copied(network), init_optimiser(self._optimiser(), network), jnp.int32(0)
        )

    def fresh(self, key: Key[Array, ""]) -> ResidualMLP | TransitionDiT:
        if self.network == "dit":
            return TransitionDiT.init(key, self.dit, self.columns, self.noise)
        return ResidualMLP.init(key, self.mlp, self.columns.width)

    def update(
        self, state: DenoiserState, data: Float[Array, "transitions width"], key: Key[Array, ""]
    ) -> tuple[DenoiserState, dict[str, Float[Array, ""]]]:
        draw_key, level_key, noise_key = jax.random.split(key, 3)
        clean = data[jax.random.randint(draw_key, (self.batch_size,), 0, len(data))]
        sigma = self.noise.drawn(level_key, self.batch_size)
        noise = jax.random.normal(noise_key, clean.shape)
        gradients, info = jax.grad(self.noise.loss, has_aux=True)(state.network, clean, sigma, noise)
        network, optimiser = descend(self._optimiser(), state.network, state.optimiser, gradients)
        average = settled(state.average, network, self.average_rate, state.updates)
        return DenoiserState(network, average, optimiser, state.updates + 1), info

    def _optimiser(self) -> optax.GradientTransformation:
        rate = optax.cosine_decay_schedule(self.learning_rate, self.steps)
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, b1=0.9, b2=0.99))


def drawn_rows(
    network: Any, key: Key[Array, ""], noise: Noise, heun: Heun, *, count: int, width: int, at_once: int
) -> Float[Array, "count width"]:
    """`count` samples, `at_once` at a time."""
    parts = -(-count // at_once)
    rows = _drawn(network, jax.random.split(key, parts), noise, heun, at_once, width)
    return rows.reshape(parts * at_once, width)[:count]


@partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _drawn(network: Any, keys: Array, noise: Noise, heun: Heun, count: int, width: int) -> Array:
    def denoise(noisy: Array, sigma: Array) -> Array:
        return noise.denoised(network, noisy, jnp.full(len(noisy), sigma))

    def one(key: Array) -> Array:
        start_key, walk_key = jax.random.split(key)
        start = jax.random.normal(start_key, (count, width))
        return heun.sample(noise, denoise, start, walk_key)

    return jax.lax.map(one, keys)
