"""A diffusion transformer over trajectories: adaLN-Zero blocks, steps merged into patches, a per-step path around them.

Consecutive steps may share a token (`patch`): attention over 30 tokens instead of 180 is what makes a CPU
usable. A patch of ant states does not fit through one token without loss, so each step keeps its own
embedding, which meets the transformer's answer again at the output; the tokens only carry what steps have to
tell one another over a distance. What neighbours have to tell one another (one step of the dynamics) does not
need tokens at all: stem and head see `reach` steps to either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from astro_rl.errors import ConfigError


@dataclass(frozen=True)
class DiTConfig:
    """Sizes of a transformer. `paper` uses patch 1."""

    width: int = 192
    depth: int = 4
    heads: int = 4
    patch: int = 6
    step_width: int = 96
    """Width of the per-step stem and skip."""
    reach: int = 1
    """Steps to either side that stem and head see. 0: a step sees others through tokens only."""
    mlp_ratio: int = 4

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ConfigError(
                "Heads must divide the width.", field="heads", found=f"{self.width} / {self.heads}"
            )
        if min(self.width, self.depth, self.heads, self.patch, self.step_width, self.mlp_ratio) < 1:
            raise ConfigError("Sizes of a transformer must be positive.", found=self)
        if self.reach < 0:
            raise ConfigError("A reach cannot be negative.", field="reach", found=self.reach)


class Linear(eqx.Module):
    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]

    @classmethod
    def init(cls, key: Key[Array, ""], inputs: int, outputs: int, *, zero: bool = False) -> Linear:
        """Xavier uniform as DiT's; `zero` for what has to start as no change at all."""
        bound = 0.0 if zero else (6.0 / (inputs + outputs)) ** 0.5
        return cls(
            jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), jnp.zeros(outputs)
        )

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class Block(eqx.Module):
    """adaLN-Zero: the condition gives shift, scale and gate of both halves; gates start at 0, the block as the
    identity."""

    qkv: Linear
    out: Linear
    up: Linear
    down: Linear
    modulation: Linear

    @classmethod
    def init(cls, key: Key[Array, ""], config: DiTConfig) -> Block:
        keys = jax.random.split(key, 5)
        width, hidden = config.width, config.width * config.mlp_ratio
        return cls(
            Linear.init(keys[0], width, 3 * width),
            Linear.init(keys[1], width, width),
            Linear.init(keys[2], width, hidden),
            Linear.init(keys[3], hidden, width),
            Linear.init(keys[4], width, 6 * width, zero=True),
        )

    def __call__(
        self, x: Float[Array, "batch tokens width"], condition: Float[Array, "batch width"], heads: int
    ) -> Float[Array, "batch tokens width"]:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = jnp.split(
            self.modulation(condition)[:, None, :], 6, axis=-1
        )
        x = x + gate_a * self._attend(layer_norm(x) * (1 + scale_a) + shift_a, heads)
        return x + gate_m * self.down(jax.nn.gelu(self.up(layer_norm(x) * (1 + scale_m) + shift_m)))

    def _attend(
        self, x: Float[Array, "batch tokens width"], heads: int
    ) -> Float[Array, "batch tokens width"]:
        batch, tokens, width = x.shape
        q, k, v = jnp.split(self.qkv(x).reshape(batch, tokens, 3 * heads, width // heads), 3, axis=2)
        return self.out(jax.nn.dot_product_attention(q, k, v).reshape(batch, tokens, width))


class DiT(eqx.Module):
    """Maps (steps × features) and a condition to (steps × outputs)."""

    stem: Linear
    merge: Linear
    blocks: Block
    """All blocks, stacked along a first axis, so that compiling does not grow with depth."""
    level_in: Linear
    level_out: Linear
    extras: Linear
    split: Linear
    final_modulation: Linear
    meet: Linear
    final: Linear
    config: DiTConfig = eqx.field(static=True)

    @classmethod
    def init(
        cls, key: Key[Array, ""], config: DiTConfig, features: int, outputs: int, extras: int = 1
    ) -> DiT:
        """`extras`: numbers besides the noise level that condition the whole sequence, such as the embedded δ."""
        keys = jax.random.split(key, 10)
        width, step, seen = config.width, config.step_width, 2 * config.reach + 1
        blocks = jax.vmap(lambda block_key: Block.init(block_key, config))(
            jax.random.split(keys[0], config.depth)
        )
        return cls(
            stem=Linear.init(keys[1], seen * features, step),
            merge=Linear.init(keys[2], config.patch * step, width),
            blocks=blocks,
            level_in=Linear.init(keys[3], LEVEL_FEATURES, width),
            level_out=Linear.init(keys[4], width, width),
            extras=Linear.init(keys[5], extras, width),
            split=Linear.init(keys[6], width, config.patch * step),
            final_modulation=Linear.init(keys[7], width, 2 * step, zero=True),
            meet=Linear.init(keys[9], seen * 2 * step, 2 * step),
            final=Linear.init(keys[8], 2 * step, outputs, zero=True),
            config=config,
        )

    def __call__(
        self,
        steps: Float[Array, "batch length features"],
        level: Float[Array, "batch"],
        extras: Float[Array, "batch extras"],
    ) -> Float[Array, "batch length outputs"]:
        batch, length, _ = steps.shape
        patch = self.config.patch
        if length % patch:
            raise ConfigError(
                "The patch must divide the horizon.",
                field="patch",
                found=f"{length} steps in patches of {patch}",
            )
        condition = jax.nn.silu(
            self.level_out(jax.nn.silu(self.level_in(level_features(level)))) + self.extras(extras)
        )
        own = jax.nn.gelu(self.stem(beside(steps, self.config.reach)))
        tokens = self.merge(own.reshape(batch, length // patch, -1)) + positions(
            length // patch, self.config.width
        )

        def apply(x: Array, block: Block) -> tuple[Array, None]:
            return block(x, condition, self.config.heads), None

        tokens, _ = jax.lax.scan(apply, tokens, self.blocks)
        heard = self.split(layer_norm(tokens)).reshape(batch, length, -1)
        shift, scale = jnp.split(self.final_modulation(condition)[:, None, :], 2, axis=-1)
        heard = layer_norm(heard) * (1 + scale) + shift
        met = self.meet(beside(jnp.concatenate([heard, own], axis=-1), self.config.reach))
        return self.final(jax.nn.gelu(met))


def beside(steps: Float[Array, "batch length features"], reach: int) -> Float[Array, "batch length wider"]:
    """Each step with the `reach` steps before and after it; beyond the ends there are zeros."""
    if reach == 0:
        return steps
    length = steps.shape[1]
    padded = jnp.pad(steps, ((0, 0), (reach, reach), (0, 0)))
    return jnp.concatenate([padded[:, i : i + length] for i in range(2 * reach + 1)], axis=-1)


LEVEL_FEATURES = 64


def level_features(level: Float[Array, "batch"]) -> Float[Array, "batch features"]:
    """Sines and cosines of the noise level u in [0, 1], from one period to a thousand."""
    frequencies = jnp.exp(jnp.linspace(0.0, jnp.log(1000.0), LEVEL_FEATURES // 2))
    angles = level[:, None] * frequencies[None, :]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def positions(tokens: int, width: int) -> Float[np.ndarray, "tokens width"]:
    """Fixed sines and cosines of the token's place, as DiT's."""
    frequencies = np.exp(-np.log(10_000.0) * np.arange(width // 2) / (width // 2))
    angles = np.arange(tokens)[:, None] * frequencies[None, :]
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    return np.pad(table, ((0, 0), (0, width - table.shape[1]))).astype(np.float32)


def layer_norm(x: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
    """Without learned scale and shift: the condition supplies both."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + 1e-6)
