"""Which trajectories the diffusion models learn from, and which ones their errors are measured on."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from astro_rl.data.schema import Dataset


def held_out_split(
    dataset: Dataset, share: float, horizon: int
) -> tuple[Int[np.ndarray, "training"], Int[np.ndarray, "held_out"]]:
    """All but the last trajectories, and the last ones: `share` of those that hold `horizon` states.

    Where only one is long enough it serves for both, because there is nothing else to measure on.
    """
    long_enough = np.flatnonzero(np.diff(dataset.offsets) >= horizon)
    everything = np.arange(len(dataset))
    if len(long_enough) < 2:
        return everything, long_enough
    held_out = long_enough[-max(1, round(share * len(long_enough))) :]
    return everything[: held_out[0]], held_out


def training_part(dataset: Dataset, trajectories: Int[np.ndarray, "_"], most_rows: int) -> Dataset:
    """The trajectories as a dataset; of more than `most_rows` rows, a share of them that is evenly spread."""
    sizes = np.diff(dataset.offsets)[trajectories]
    if sizes.sum() > most_rows:
        count = max(1, int(len(trajectories) * most_rows / sizes.sum()))
        trajectories = trajectories[np.linspace(0, len(trajectories) - 1, count).round().astype(np.int64)]
    if len(trajectories) == len(dataset):
        return dataset
    return dataset.select(trajectories)
