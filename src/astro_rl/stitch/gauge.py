"""What counts as "n steps apart": the learned distance read literally, or in steps and at the data's own pace.

The paper compares the raw distance with |m − n|. Two things stand between them: the distance is discounted
(`temporal.steps` undoes that), and it is the *shortest* time while data moves slower. A gauge holds both
corrections, so that every test of a chain is the same comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from astro_rl.errors import DataError
from astro_rl.temporal.encoder import distance
from astro_rl.temporal.steps import SATURATED, steps_from_distance

MOVING_SHARE = 0.5
"""A window counts as moving if it covers at least this share of what the fastest twentieth of windows cover."""

STANDSTILL = 1e-3
"""Learned steps below which a window has not moved."""


@dataclass(frozen=True)
class Gauge:
    """Turns two latents into data steps. `literal`: the raw distance, slowness 1."""

    discount: float
    slowness: float = 1.0
    """c: real steps a learned step."""
    literal: bool = False

    def __call__(
        self, a: Float[Array, "*#batch latent"], b: Float[Array, "*#batch latent"]
    ) -> Float[Array, "..."]:
        return self.from_distance(distance(a, b))

    def from_distance(self, raw: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        return raw if self.literal else self.slowness * steps_from_distance(raw, self.discount)

    def raw_range(self, low: float, high: float) -> tuple[float, float]:
        """The raw distances that read at least `low` and at most `high`: many are compared with two numbers, and no
        logarithm is taken of any."""
        if self.literal:
            return max(low, 0.0), high
        farthest = self.slowness * math.log1p(-SATURATED) / math.log(self.discount)
        ceiling = 1 / (1 - self.discount)
        least, most = (
            -math.expm1(max(x, 0.0) / self.slowness * math.log(self.discount)) for x in (low, high)
        )
        # Everything saturated reads the same: inside or outside together.
        return (
            math.inf if low > farthest else least * ceiling,
            math.inf if high >= farthest else most * ceiling if high >= 0 else -math.inf,
        )


def fit_gauge(
    first: Float[np.ndarray, "windows latent"],
    last: Float[np.ndarray, "windows latent"],
    steps: int,
    discount: float,
) -> Gauge:
    """The data's slowness over real windows of `steps` steps: the median of real over learned steps of those that move.

    Idle pieces are left out first: where half of the data rests, the median over all windows would say that a step
    covers almost nothing, and targets would be sought on top of the source.
    """
    learned = np.asarray(Gauge(discount)(jnp.asarray(first), jnp.asarray(last)))
    fast = float(np.quantile(learned, 0.95))
    moving = learned[learned >= MOVING_SHARE * fast]
    if fast < STANDSTILL:
        raise DataError(
            "No window of the dataset moves in temporal-distance space, so its pace cannot be measured.",
            found=f"95 % of windows of {steps} steps are at most {fast:.3g} learned steps long",
            fix="train the temporal distances longer, or inspect the dataset for idle or constant trajectories",
        )
    return Gauge(discount, slowness=float(steps / np.median(moving)))


def mean_bias(
    gauge: Gauge, latents: Float[Array, "*batch states latent"], positions: Int[Array, "states"]
) -> Float[Array, "*batch"]:
    """E[Δ_d], eq. (8), over *all* pairs of known states: mean of | |m − n| − gauge(s_m, s_n) |.

    The paper samples k pairs; all of them cost no more here than a matrix product and have no sampling noise.
    """
    apart = jnp.abs(positions[:, None] - positions[None, :])
    measured = gauge(latents[..., :, None, :], latents[..., None, :, :])
    pairs = jnp.triu(jnp.ones(apart.shape, bool), 1)
    return jnp.where(pairs, jnp.abs(apart - measured), 0.0).sum(axis=(-2, -1)) / pairs.sum()


def sampled_bias(
    gauge: Gauge,
    latents: Float[Array, "*batch states latent"],
    positions: Int[Array, "states"],
    pairs: Int[Array, "k 2"],
) -> Float[Array, "*batch"]:
    """E[Δ_d] over k given pairs: algorithm 4 as written."""
    m, n = pairs[:, 0], pairs[:, 1]
    measured = gauge(latents[..., m, :], latents[..., n, :])
    return jnp.abs(jnp.abs(positions[m] - positions[n]) - measured).mean(axis=-1)
