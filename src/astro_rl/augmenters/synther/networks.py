"""F of EDM's denoiser: the authors' residual MLP, or our DiT over a transition as a sequence of two steps."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from astro_rl.augmenters.synther.columns import Columns
from astro_rl.augmenters.synther.edm import Noise
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT, DiTConfig
from astro_rl.nets.mlp import Linear

TORCH_GAIN = 1 / 3
"""Square layers start with the variance that torch gives them by default, 1 / (3 · width)."""


@dataclass(frozen=True)
class ResidualConfig:
    """Sizes of the residual MLP. Defaults are SynthER's: 2048 wide for most of its datasets, 1024 for the rest."""

    width: int = 1024
    depth: int = 6
    level_width: int = 128
    """Width in which sample and noise level meet."""
    frequencies: int = 8
    """Random ones, of which a sine and a cosine each."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "level_width", "frequencies"):
            if getattr(self, name) < 1:
                raise ConfigError("Sizes must be positive.", field=f"mlp.{name}", found=getattr(self, name))


class ResidualMLP(eqx.Module):
    """x ← x + W relu(x), `depth` times, over W₀ (proj(sample) + embedded level), and one dense layer at the end.

    The level c is embedded by random Fourier features, c and sin, cos of 2π w c with fixed w ~ N(0, 1), and a small
    network.
    """

    frequencies: Float[Array, "frequencies"]
    level_in: Linear
    level_out: Linear
    project: Linear
    first: Linear
    blocks: Linear
    """Stacked along a first axis."""
    last: Linear

    @classmethod
    def init(cls, key: Key[Array, ""], config: ResidualConfig, dims: int) -> ResidualMLP:
        keys = jax.random.split(key, 7)
        width, level = config.width, config.level_width

        def layer(number: int, inputs: int, outputs: int) -> Linear:
            return Linear.init(keys[number], inputs, outputs, gain=TORCH_GAIN)

        return cls(
            frequencies=jax.random.normal(keys[0], (config.frequencies,)),
            level_in=layer(1, 2 * config.frequencies + 1, level),
            level_out=layer(2, level, level),
            project=layer(3, dims, level),
            first=layer(4, level, width),
            blocks=jax.vmap(lambda one: Linear.init(one, width, width, gain=TORCH_GAIN))(
                jax.random.split(keys[5], config.depth)
            ),
            last=layer(6, width, dims),
        )

    def __call__(
        self, x: Float[Array, "batch dims"], level: Float[Array, "batch"]
    ) -> Float[Array, "batch dims"]:
        # Frequencies are drawn once and never learned.
        angles = 2 * jnp.pi * level[:, None] * jax.lax.stop_gradient(self.frequencies)
        told = jnp.concatenate([level[:, None], jnp.sin(angles), jnp.cos(angles)], axis=-1)
        embedded = self.level_out(jax.nn.silu(self.level_in(told)))
        hidden = self.first(self.project(x) + embedded)

        def apply(hidden: Array, block: Linear) -> tuple[Array, None]:
            return hidden + block(jax.nn.relu(hidden)), None

        hidden, _ = jax.lax.scan(apply, hidden, self.blocks)
        return self.last(jax.nn.relu(hidden))


class TransitionDiT(eqx.Module):
    """Our DiT over two steps: (s, a, r, end) and (s', nothing). The ASTRO paper gives its rivals its own DiT (appendix
    B.2.4) and not how; this is our reading."""

    dit: DiT
    observation_dim: int = eqx.field(static=True)
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    """c_noise of the smallest and the largest noise: the DiT takes levels in [0, 1]."""

    @classmethod
    def init(cls, key: Key[Array, ""], config: DiTConfig, columns: Columns, noise: Noise) -> TransitionDiT:
        features = columns.width - columns.observation_dim
        low, high = (float(np.log(level) / 4) for level in (noise.smallest, noise.largest))
        return cls(DiT.init(key, config, features, features), columns.observation_dim, low, high)

    def __call__(
        self, x: Float[Array, "batch dims"], level: Float[Array, "batch"]
    ) -> Float[Array, "batch dims"]:
        obs = self.observation_dim
        here, after = x[:, :-obs], x[:, -obs:]
        padded = jnp.pad(after, ((0, 0), (0, here.shape[1] - obs)))
        steps = jnp.stack([here, padded], axis=1)
        scaled = (level - self.low) / (self.high - self.low)
        answer = self.dit(steps, scaled, jnp.zeros((len(x), 1)))
        return jnp.concatenate([answer[:, 0], answer[:, 1, :obs]], axis=-1)
