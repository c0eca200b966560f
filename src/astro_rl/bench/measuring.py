"""What cells measure that train nothing: geometry of selected targets, completion errors, violations, search times."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.models import FittedModels
from astro_rl.augment.shares import held_out_split
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.data.schema import Dataset
from astro_rl.planner.metrics import completion_error
from astro_rl.quality.violation import calibrate, violation_rate
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.windows import find_windows
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import Task

PER_CHAINS = 10
"""The paper's times are those of so many chains."""
CALIBRATION_ROWS = 600


def completion(fitted: FittedAugmenter, dataset: Dataset, *, sequences: int, seed: int = 0) -> dict[str, Any]:
    """MSE of τᵃ, τˢ and τˢ_m on windows of trajectories that no model was fitted to. The same windows for all arms."""
    models, completer = parts_of(fitted)
    _, held_out = held_out_split(dataset, models.settings.held_out, completer.horizon)
    errors = completion_error(
        completer, dataset.select(held_out), models.normaliser, sequences=sequences, batch=32, seed=seed
    )
    return {"horizon": completer.horizon, "shape": vars(models.shape), **errors.to_json()}


def violations(
    made: Dataset,
    real: Dataset,
    task: Task,
    *,
    rows: int,
    seed: int = 0,
    workers: int | None = None,
    bar: Bar = no_bar,
) -> dict[str, Any]:
    """Share of stitched transitions that no action of many tried explains (appendix C), in percent, beside that of real
    ones; None where the simulator cannot be put into a state that an observation tells."""
    if not isinstance(task.state, StateMap):
        return {"violation": None, "violation_real": None, "why_not": task.state.reason}
    few = min(CALIBRATION_ROWS, max(50, real.n_transitions // 8))
    with bar("calibrating violations", 2, "action sources") as report:
        calibration = calibrate(real, task, rows=few, seed=seed, workers=workers, progress=report)
    found = violation_rate(made, task, calibration, rows=rows, seed=seed, workers=workers)
    return {
        "violation": None if found.stitched is None else 100 * found.stitched,
        "violation_real": 100 * calibration.real_rate,
        "violation_by_kind": found.by_kind,
        "violation_rows": found.rows,
        "calibration": calibration.as_json(),
    }


def selection(
    models: FittedModels,
    dataset: Dataset,
    shape: ChainShape,
    settings: SearchSettings,
    *,
    batches: int,
    seconds: float,
    seed: int = 0,
    latents: np.ndarray | None = None,
) -> dict[str, Any]:
    """Seconds for ten accepted chains. Encoding, dropping windows and compiling happen once and are told apart."""
    started = time.perf_counter()
    table = models.temporal.encode(dataset.observations) if latents is None else latents
    encoding = time.perf_counter() - started
    windows = find_windows(table, dataset.offsets, shape.segment, models.gauge, settings.threshold)
    told: dict[str, Any] = {"threshold": settings.threshold, "shape": vars(shape), "encode_s": encoding}
    told |= {"windows": len(windows.starts), "windows_dropped": windows.dropped}
    if not len(windows.starts):
        return {**told, "proposed": 0, "accepted": 0, "seconds": None}
    search = ChainSearch(table, windows, models.gauge, shape, settings)
    search.batch(seed, 0)  # compiles
    spent, proposed, accepted, number = 0.0, 0, 0, 0
    while number < batches and spent < seconds:
        begun = time.perf_counter()
        found = search.batch(seed, number + 1)
        spent += time.perf_counter() - begun
        proposed, accepted, number = proposed + found.proposed, accepted + len(found), number + 1
    return {
        **told,
        "batches": number,
        "proposed": proposed,
        "accepted": accepted,
        "seconds": PER_CHAINS * spent / accepted if accepted else None,
    }
