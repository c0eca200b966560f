"""Datasets laid end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from astro_rl.data.assemble import dataset_of
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError


def joined(datasets: Sequence[Dataset], *, info: Mapping[str, Any] | None = None) -> Dataset:
    """All trajectories of all datasets, in order. They need the same columns; types follow the first one's."""
    if not datasets:
        raise DataError("Nothing to join.", expected="at least one dataset")
    first = datasets[0]
    names = first.columns().keys()
    for number, other in enumerate(datasets[1:], start=2):
        if other.columns().keys() != names:
            raise DataError(
                "Datasets with different columns cannot be joined.",
                field=", ".join(sorted(other.columns().keys() ^ names)),
                found=f"dataset {number}: {', '.join(other.columns())}",
                expected=", ".join(names),
            )
    columns = {
        name: np.concatenate([dataset.columns()[name] for dataset in datasets]).astype(
            first.columns()[name].dtype, copy=False
        )
        for name in names
    }
    sizes = np.concatenate([np.diff(dataset.offsets) for dataset in datasets])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return dataset_of(columns, offsets, dict(first.info if info is None else info))


def trajectories_for(lengths: Int[np.ndarray, "trajectories"], transitions: int) -> int:
    """How many of the first trajectories it takes to hold at least so many transitions; all, if they do not."""
    return min(int(np.searchsorted(np.cumsum(lengths), transitions)) + 1, len(lengths))
