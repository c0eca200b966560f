"""Mean and spread of what a learner is shown, gathered while it trains."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Normaliser(eqx.Module):
    """(x − mean) / (std + 1e-3), over all rows included so far.

    Gathered from batches instead of the dataset, so that it fits whatever mixture is drawn and nobody has to
    hand it in. The n-th batch moves it by 1 / n of the way: after a thousand it practically stands still.
    """

    mean: Float[Array, "features"]
    variance: Float[Array, "features"]
    batches: Float[Array, ""]

    @classmethod
    def init(cls, features: int) -> Normaliser:
        return cls(jnp.zeros(features), jnp.ones(features), jnp.zeros(()))

    def include(self, rows: Float[Array, "batch features"]) -> Normaliser:
        """The moments of all batches, given that they are equally large."""
        batches = self.batches + 1.0
        shift = rows.mean(axis=0) - self.mean
        # The spread between batch means adds (n − 1) / n · shift² / n to the mean of the spreads within them.
        change = rows.var(axis=0) - self.variance + (1.0 - 1.0 / batches) * jnp.square(shift)
        return Normaliser(self.mean + shift / batches, self.variance + change / batches, batches)

    def __call__(self, rows: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return (rows - self.mean) / (jnp.sqrt(self.variance) + 1e-3)
