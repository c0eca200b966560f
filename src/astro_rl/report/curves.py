"""Learning curves from the records that runs keep, and the band around their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from astro_rl.errors import DataError
from astro_rl.evaluate.statistics import CONFIDENCE
from astro_rl.report.evidence import Curves
from astro_rl.run.records import RecordFile

POINTS = 120
"""Of a curve, at most: a page is not wider."""
RESAMPLES = 4_000
"""Enough for a band that is looked at; scores take more."""
FIT_STAGES = ("temporal", "dynamics", "planner")
NOT_CURVES = {"step", "seed"}
FIRST = ("value/probe_mean",)
"""Quantities that stand before others: what the learner expects of fixed states."""


class Band(NamedTuple):
    """Mean over seeds and its interval; low and high are None for a single seed."""

    mean: Float[np.ndarray, "points"]
    low: Float[np.ndarray, "points"] | None
    high: Float[np.ndarray, "points"] | None


def band(values: Float[np.ndarray, "seeds points"], *, seed: int = 0) -> Band:
    """Mean over the seeds that have a value, and the 95 % percentile bootstrap of that mean. Seeds are drawn whole, the
    same draws at all points: a seed's curve is one observation."""
    seen = np.isfinite(values)
    filled = np.where(seen, values, 0.0)
    counts = seen.sum(axis=0)
    mean = np.where(counts > 0, filled.sum(axis=0) / np.maximum(counts, 1), np.nan)
    seeds = len(values)
    if seeds < 2:
        return Band(mean, None, None)
    draws = np.random.default_rng(seed).multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES)
    totals, sizes = draws @ filled, draws @ seen.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, totals / sizes, np.nan)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.full((2, values.shape[1]), np.nan)
    # Points that some draw misses take a slower way.
    whole = np.isfinite(means).all(axis=0)
    low[whole], high[whole] = np.percentile(means[:, whole], [tail, 100 - tail], axis=0)
    for point in np.flatnonzero(~whole & (counts > 0)):
        low[point], high[point] = np.nanpercentile(means[:, point], [tail, 100 - tail])
    return Band(mean, low, high)


def curves_of_runs(group: str, arms: Mapping[str, Sequence[str | Path]]) -> tuple[Curves, ...]:
    """All quantities of one learner's runs, by arm; runs of an arm that are split over seeds are put together. Only
    steps that every arm has are kept, so that arms are compared at the same updates."""
    return curves_of_records(
        group,
        {
            arm: [
                record
                for number, folder in enumerate(folders)
                for record in _numbered(Path(folder) / "records" / "train.jsonl", number)
            ]
            for arm, folders in arms.items()
        },
    )


def curves_of_fit(folder: str | Path) -> tuple[Curves, ...]:
    """Losses of a fit's stages, whichever have records."""
    found: list[Curves] = []
    for stage in FIT_STAGES:
        records = RecordFile(Path(folder) / "records" / f"{stage}.jsonl").read()
        found += curves_of_records(f"fit: {stage}", {"fit": records}) if records else ()
    return tuple(found)


def curves_of_records(group: str, arms: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[Curves, ...]:
    """Records are lines with `step`, maybe `seed`, and numbers."""
    arms = {arm: records for arm, records in arms.items() if records}
    if not arms:
        return ()
    shared = set.intersection(*({int(record["step"]) for record in records} for records in arms.values()))
    steps = np.array(sorted(shared), np.int64)
    if not len(steps):
        raise DataError("The arms' records share no step.", field=group, found=", ".join(arms))
    steps = steps[np.unique(np.linspace(0, len(steps) - 1, min(POINTS, len(steps))).round().astype(int))]
    names = dict.fromkeys(
        name
        for records in arms.values()
        for record in records[:1]
        for name, value in record.items()
        if name not in NOT_CURVES and (value is None or type(value) in (int, float))
    )
    ordered = sorted(names, key=lambda name: (name not in FIRST, name))
    return tuple(
        Curves(group, name, steps, {arm: _values(records, name, steps) for arm, records in arms.items()})
        for name in ordered
    )


def _values(records: Sequence[Mapping[str, Any]], name: str, steps: np.ndarray) -> np.ndarray:
    seeds = sorted({str(record.get("seed", 0)) for record in records})
    columns = {int(step): number for number, step in enumerate(steps)}
    rows = {seed: number for number, seed in enumerate(seeds)}
    values = np.full((len(seeds), len(steps)), np.nan)
    for record in records:
        column, value = columns.get(int(record["step"])), record.get(name)
        if column is not None and value is not None:
            values[rows[str(record.get("seed", 0))], column] = float(value)
    return values


def _numbered(path: Path, number: int) -> list[dict[str, Any]]:
    """Records of one run. Its seeds are told apart from those of the arm's other runs."""
    return [{**record, "seed": f"{number}:{record.get('seed', 0)}"} for record in RecordFile(path).read()]
