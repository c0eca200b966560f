"""The literal target rule, eq. (6): of all states of the data, the one whose distance from the source's end is
nearest to M."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from astro_rl.stitch.extension import pairwise_distance
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.windows import Windows

CHUNK = 1 << 16


def nearest_targets(
    latents: Float[np.ndarray, "rows latent"],
    windows: Windows,
    ends: Float[np.ndarray, "chains latent"],
    owners: Int[np.ndarray, "chains pieces"],
    gauge: Gauge,
    gap: float,
    distinct: bool,
) -> Int[np.ndarray, "chains"]:
    """argmin over all windows of | gauge(s_end, s) − gap |: the window's number, or −1 where `distinct` leaves none."""
    best, place = np.full(len(ends), np.inf), np.full(len(ends), -1)
    for start in range(0, len(windows.starts), CHUNK):
        stop = min(start + CHUNK, len(windows.starts))
        owner = windows.trajectories[start:stop]
        allowed = (
            ~(owners[:, :, None] == owner).any(axis=1)
            if distinct
            else np.ones((len(ends), stop - start), bool)
        )
        miss, nearest = _nearest(
            jnp.asarray(ends), jnp.asarray(latents[windows.starts[start:stop]]), allowed, gauge, gap
        )
        better = np.asarray(miss) < best
        best[better] = np.asarray(miss)[better]
        place[better] = start + np.asarray(nearest)[better]
    return place


@partial(jax.jit, static_argnums=(3, 4))
def _nearest(
    ends: Float[Array, "chains latent"],
    candidates: Float[Array, "chunk latent"],
    allowed: Bool[Array, "chains chunk"],
    gauge: Gauge,
    gap: float,
) -> tuple[Float[Array, "chains"], Int[Array, "chains"]]:
    miss = jnp.where(
        allowed, jnp.abs(gauge.from_distance(pairwise_distance(ends, candidates)) - gap), jnp.inf
    )
    return miss.min(axis=1), miss.argmin(axis=1)
