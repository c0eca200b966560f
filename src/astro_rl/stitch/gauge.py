"""What counts as "n steps apart": the learned distance read literally, or in steps and at the data's own pace.

The paper compares the raw distance with |m − n|. Three things stand between them: the distance is discounted
(`temporal.steps` undoes that); it is the *shortest* time while data moves slower; and two states at one place are
some steps apart by their posture alone, however far the place is from others. A gauge holds all corrections, so that
every test of a chain is the same comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from astro_rl.errors import DataError
from astro_rl.stitch.geometry import window_starts
from astro_rl.temporal.encoder import distance
from astro_rl.temporal.steps import SATURATED, steps_from_distance

MOVING_SHARE = 0.5
"""A window counts as moving if it covers at least this share of what the fastest twentieth of windows cover."""

LARGEST_POSTURE = 0.5
"""b is at most this share of what near windows cover."""

SAMPLED = 4096
"""Windows that a pace is read from."""

STANDSTILL = 1e-3
"""Learned steps below which a window has not moved."""


@dataclass(frozen=True)
class Gauge:
    """Turns two latents into data steps. `literal`: the raw distance, slowness 1."""

    discount: float
    slowness: float = 1.0
    """c: real steps a learned step."""
    literal: bool = False
    posture: float = 0.0
    """b: learned steps that lie between two states whatever the way between them: data steps are c (steps − b)₊."""

    def __call__(
        self, a: Float[Array, "*#batch latent"], b: Float[Array, "*#batch latent"]
    ) -> Float[Array, "..."]:
        return self.from_distance(distance(a, b))

    def from_distance(self, raw: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        if self.literal:
            return raw
        return self.slowness * jnp.maximum(steps_from_distance(raw, self.discount) - self.posture, 0.0)

    def raw_range(self, low: float, high: float) -> tuple[float, float]:
        """The raw distances that read at least `low` and at most `high`: many are compared with two numbers, and no
        logarithm is taken of any."""
        if self.literal:
            return max(low, 0.0), high
        farthest = self.slowness * max(math.log1p(-SATURATED) / math.log(self.discount) - self.posture, 0.0)
        ceiling = 1 / (1 - self.discount)
        least, most = (
            -math.expm1((max(x, 0.0) / self.slowness + self.posture) * math.log(self.discount))
            for x in (low, high)
        )
        # Everything saturated reads the same, and so does everything within the posture: inside or outside together.
        return (
            math.inf if low > farthest else 0.0 if low <= 0 else least * ceiling,
            math.inf if high >= farthest else most * ceiling if high >= 0 else -math.inf,
        )


def fit_gauge(
    latents: Float[np.ndarray, "rows latent"],
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    near: int,
    far: int,
    discount: float,
    generator: np.random.Generator,
) -> Gauge:
    """The data's pace over real windows of `near` and of `far` steps: learned = b + real / c at both.

    At each length the median over windows that move counts. Idle pieces are left out: where half of the data rests, the
    median over all windows would say that a step covers almost nothing, and targets would be sought on top of the
    source. Where trajectories hold no `far` steps b is 0.
    """
    learned = moved(latents, offsets, near, discount, generator)
    if far <= near or (np.diff(offsets) > far).sum() < 2:
        return Gauge(discount, slowness=near / learned)
    return gauge_through(near, learned, far, moved(latents, offsets, far, discount, generator), discount)


def gauge_through(near: int, learned: float, far: int, farther: float, discount: float) -> Gauge:
    """Reads `near` data steps at `learned` learned ones, and `far` at `farther`, where that is possible.

    Long windows turn back, which looks like a pace that falls: at most half of the near distance is put down to
    posture, and where far windows are no farther at all, none of it.
    """
    slope = (farther - learned) / (far - near)
    posture = float(np.clip(learned - slope * near, 0.0, LARGEST_POSTURE * learned)) if slope > 0 else 0.0
    return Gauge(discount, slowness=near / (learned - posture), posture=posture)


def moved(
    latents: Float[np.ndarray, "rows latent"],
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    steps: int,
    discount: float,
    generator: np.random.Generator,
) -> float:
    """Learned steps that real windows of `steps` steps cover, the median over those that move."""
    starts, _ = window_starts(offsets, steps + 1)
    if len(starts) > SAMPLED:
        starts = np.sort(generator.choice(starts, SAMPLED, replace=False))
    first, last = np.asarray(latents[starts]), np.asarray(latents[starts + steps])
    learned = np.asarray(Gauge(discount)(jnp.asarray(first), jnp.asarray(last)))
    fast = float(np.quantile(learned, 0.95))
    if fast < STANDSTILL:
        raise DataError(
            "No window of the dataset moves in temporal-distance space, so its pace cannot be measured.",
            found=f"95 % of windows of {steps} steps are at most {fast:.3g} learned steps long",
            fix="train the temporal distances longer, or inspect the dataset for idle or constant trajectories",
        )
    return float(np.median(learned[learned >= MOVING_SHARE * fast]))


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
