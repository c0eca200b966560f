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


def merged(datasets: Sequence[Dataset]) -> tuple[Dataset, tuple[str, ...]]:
    """All trajectories of datasets whose columns need not be the same, and the columns that were left out because
    only some have them. Recorded and augmented data together, for training code that reads one file."""
    if not datasets:
        raise DataError("Nothing to merge.", expected="at least one dataset")
    every = [set(dataset.columns()) for dataset in datasets]
    shared = set.intersection(*every)
    for name in sorted(shared):
        widths = {dataset.columns()[name].shape[1:] for dataset in datasets}
        if len(widths) > 1:
            raise DataError(
                "Datasets of different environments cannot be merged.",
                field=name,
                found="rows of " + " and ".join(str(width[0] if width else 1) for width in sorted(widths)),
            )
    parts = [
        dataset_of(
            {name: column for name, column in dataset.columns().items() if name in shared},
            dataset.offsets,
            {},
        )
        for dataset in datasets
    ]
    sources = [{"trajectories": len(part), "transitions": part.n_transitions} for part in datasets]
    dropped = tuple(sorted(set.union(*every) - shared))
    return joined(parts, info={"merged": sources}), dropped


def trajectories_for(lengths: Int[np.ndarray, "trajectories"], transitions: int) -> int:
    """How many of the first trajectories it takes to hold at least so many transitions; all, if they do not."""
    return min(int(np.searchsorted(np.cumsum(lengths), transitions)) + 1, len(lengths))
