"""ψ, the map from states to a space in which Euclidean distance is (discounted) time, eq. (2)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Layer(eqx.Module):
    """A dense layer; hidden ones are followed by layer norm with learned scale and shift, and GELU."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]
    scale: Float[Array, "out"]
    shift: Float[Array, "out"]

    @classmethod
    def init(cls, key: Key[Array, ""], inputs: int, outputs: int) -> Layer:
        bound = (6.0 / (inputs + outputs)) ** 0.5
        weight = jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound)
        return cls(weight, jnp.zeros(outputs), jnp.ones(outputs), jnp.zeros(outputs))

    def hidden(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        x = x @ self.weight + self.bias
        x = x - x.mean(axis=-1, keepdims=True)
        x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + 1e-6)
        return jax.nn.gelu(x * self.scale + self.shift)

    def linear(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class Encoder(eqx.Module):
    """ψ: normalised observation → latent. One member of the ensemble."""

    layers: tuple[Layer, ...]

    @classmethod
    def init(cls, key: Key[Array, ""], observation_dim: int, hidden: tuple[int, ...], latent: int) -> Encoder:
        sizes = (observation_dim, *hidden, latent)
        keys = jax.random.split(key, len(sizes) - 1)
        return cls(tuple(Layer.init(k, a, b) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)))

    def __call__(self, x: Float[Array, "*batch obs"]) -> Float[Array, "*batch latent"]:
        for layer in self.layers[:-1]:
            x = layer.hidden(x)
        return self.layers[-1].linear(x)


def distance(a: Float[Array, "*#batch latent"], b: Float[Array, "*#batch latent"]) -> Float[Array, "..."]:
    """‖a − b‖₂, eq. (2). The floor keeps the gradient finite where both are the same point."""
    return jnp.sqrt(jnp.maximum(jnp.square(a - b).sum(axis=-1), 1e-12))
