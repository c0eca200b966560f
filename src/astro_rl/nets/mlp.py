"""Plain networks: dense layers, layer normalisation, and the MLP that every learner is made of.

Weights are arrays and nothing else is a leaf, so that `jax.vmap`, `jax.lax.scan` and a checkpoint take a
network as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Linear(eqx.Module):
    """x·W + b."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]

    @classmethod
    def init(cls, key: Key[Array, ""], inputs: int, outputs: int, *, gain: float = 1.0) -> Linear:
        """Weights uniform with variance `gain` · 2 / (inputs + outputs), biases 0, as in FQL's code."""
        bound = (gain * 6.0 / (inputs + outputs)) ** 0.5
        return cls(
            jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), jnp.zeros(outputs)
        )

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class LayerNorm(eqx.Module):
    """Mean 0 and variance 1 over the features, then a learned scale and shift."""

    scale: Float[Array, "features"]
    shift: Float[Array, "features"]

    @classmethod
    def init(cls, features: int) -> LayerNorm:
        return cls(jnp.ones(features), jnp.zeros(features))

    def __call__(self, x: Float[Array, "*batch features"]) -> Float[Array, "*batch features"]:
        mean = x.mean(axis=-1, keepdims=True)
        # E[x²] − E[x]² reads x once where the centred form reads it twice: a third of this layer's time on a
        # CPU. Activations are of order one, so little cancels; the maximum guards a constant row.
        variance = jnp.maximum(jnp.square(x).mean(axis=-1, keepdims=True) - jnp.square(mean), 0.0)
        return (x - mean) * (jax.lax.rsqrt(variance + 1e-6) * self.scale) + self.shift


class MLP(eqx.Module):
    """Hidden layers of dense, GELU and (where asked for) layer norm, in this order; then one dense layer.

    The order is that of FQL's code: the norm stands after the activation, and the input is not normalised.
    """

    layers: tuple[Linear, ...]
    norms: tuple[LayerNorm, ...]

    @classmethod
    def init(
        cls,
        key: Key[Array, ""],
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        layer_norm: bool,
        final_gain: float = 1.0,
    ) -> MLP:
        """`final_gain` scales the last layer's variance: a small one starts a policy near its middle."""
        sizes = (inputs, *hidden, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        gains = (1.0,) * len(hidden) + (final_gain,)
        layers = tuple(
            Linear.init(key, sizes[i], sizes[i + 1], gain=gain)
            for i, (key, gain) in enumerate(zip(keys, gains, strict=True))
        )
        return cls(layers, tuple(LayerNorm.init(size) for size in hidden) if layer_norm else ())

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return self.from_first_layer(self.layers[0](x))

    def from_first_layer(self, x: Float[Array, "*batch hidden"]) -> Float[Array, "*batch out"]:
        """The rest of the network, given the first layer's output, for callers that share part of it."""
        for number, layer in enumerate(self.layers[1:]):
            x = jax.nn.gelu(x)
            if self.norms:
                x = self.norms[number](x)
            x = layer(x)
        return x
