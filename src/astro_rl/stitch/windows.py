"""Sub-trajectories that may become pieces of a chain: l consecutive states whose own pace passes the filter.

A window that idles, turns on the spot or falls over is inconsistent with itself: its states are closer
together in time than their positions say. Chains through it would be rejected after all the work of building
them, so it is dropped before.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import window_starts

CHUNK_ROWS = 1 << 18


@dataclass(frozen=True)
class Windows:
    """First rows of all usable windows, with what was dropped and why."""

    starts: Int[np.ndarray, "windows"]
    trajectories: Int[np.ndarray, "windows"]
    total: int
    """Windows that fit into their trajectory."""

    @property
    def dropped(self) -> int:
        """Those that fail the filter by themselves."""
        return self.total - len(self.starts)


def find_windows(
    latents: Float[np.ndarray, "rows latent"],
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    segment: int,
    gauge: Gauge,
    threshold: float,
) -> Windows:
    """All windows of `segment` states whose mean bias over all pairs is at most `threshold`."""
    starts, trajectories = window_starts(offsets, segment)
    bias = own_bias(latents, segment, gauge)[starts]
    kept = bias <= threshold
    return Windows(starts[kept], trajectories[kept], total=len(starts))


def own_bias(
    latents: Float[np.ndarray, "rows latent"], segment: int, gauge: Gauge
) -> Float[np.ndarray, "rows"]:
    """Mean bias of the window that starts at each row, over all its pairs; rows too near the end of the data
    get infinity.

    A pair's bias depends on its first row and its lag alone, so all windows share one pass a lag, and a
    window's sum is a difference of running sums: l passes over the data instead of l² / 2 distances a window.
    """
    rows, pairs = len(latents), segment * (segment - 1) // 2
    total = np.zeros(rows)
    for lag in range(1, segment):
        biases = np.zeros(rows)
        for start in range(0, rows - lag, CHUNK_ROWS):
            stop = min(start + CHUNK_ROWS, rows - lag)
            apart = latents[start + lag : stop + lag] - latents[start:stop]
            raw = np.sqrt(np.einsum("ij,ij->i", apart, apart))
            biases[start:stop] = np.abs(lag - np.asarray(gauge.from_distance(jnp.asarray(raw))))
        running = np.concatenate([[0.0], np.cumsum(biases)])
        width = segment - lag
        firsts = np.arange(max(rows - segment + 1, 0))
        total[firsts] += running[firsts + width] - running[firsts]
    total[max(rows - segment + 1, 0) :] = np.inf
    return total / pairs
