"""Stitches as trajectories: p real states of the source, the gap, p real states of the target.

place in the gap's sequence          0    1 … k−1    k
rows   source … s_i−1              s_i   generated  t_j   t_j+1 … t_j+p−1
is real     1     1                 0       0        1      1        (end row)
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from astro_rl.augment.layout import GENERATED, Laid
from astro_rl.data.schema import Dataset


def lay_stitches(
    dataset: Dataset,
    sources: Int[np.ndarray, "stitches"],
    targets: Int[np.ndarray, "stitches"],
    places: Int[np.ndarray, "stitches"],
    observations: Float[np.ndarray, "stitches horizon obs"],
    actions: Float[np.ndarray, "stitches horizon act"],
    deviation: Float[np.ndarray, "stitches"],
    chains: Int[np.ndarray, "stitches"],
    piece: int,
) -> Laid:
    """`sources` are the rows stitched from, `targets` those stitched to; sequences in the dataset's units, the source's
    state at place 0 and the target's at `places`. Real rows are the dataset's own, bit for bit."""
    source_rows, is_real, spots = [], [], []
    for source, target, place in zip(sources, targets, places, strict=True):
        gap = np.full(place - 1, GENERATED)
        source_rows += [np.arange(source - piece + 1, source + 1), gap, np.arange(target, target + piece)]
        real = np.ones(2 * piece + place - 1, bool)
        real[piece - 1 : piece + place - 1] = False
        real[-1] = False
        is_real.append(real)
        spots.append(np.concatenate([np.full(piece - 1, -1), np.arange(place), np.full(piece, -1)]))
    rows = np.concatenate(source_rows) if source_rows else np.zeros(0, np.int64)
    real = np.concatenate(is_real) if is_real else np.zeros(0, bool)
    spot = np.concatenate(spots) if spots else np.zeros(0, np.int64)
    sizes = 2 * piece + places - 1
    owner = np.repeat(np.arange(len(sources)), sizes)
    known = rows >= 0
    seen = np.zeros((len(rows), dataset.observation_dim), dataset.observations.dtype)
    acts = np.zeros((len(rows), dataset.action_dim), dataset.actions.dtype)
    seen[known] = dataset.observations[rows[known]]
    seen[~known] = observations[owner[~known], spot[~known]]
    acts[real] = dataset.actions[rows[real]]
    led = spot >= 0
    acts[led] = actions[owner[led], spot[led]]
    return Laid(seen, acts, rows, real, sizes, chains, deviation)
