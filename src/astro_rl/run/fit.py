"""A fit in a folder: killed at any moment, the same call goes on and ends with the same weights.

OUT/
  config.json, environment.json        what was asked for and what it ran on
  records/STAGE.jsonl                  each chunk's mean losses
  checkpoints/STAGE/                   where to go on; gone when all is done
  latents.npy                          every row's ψ, which augmentation reads again
  models/                              `run.models`: there when the fit has finished
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.augment.fitting import Bar, fit, no_bar
from astro_rl.augment.lineage import source_digest
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, Stage
from astro_rl.data.schema import Dataset
from astro_rl.run.checkpoints import Checkpoints
from astro_rl.run.folder import RunFolder
from astro_rl.run.models import DESCRIPTION, load_models, save_models
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.task import Task

LATENTS, MODELS = "latents.npy", "models"
SAVE_SECONDS = 30.0
"""At most so much work is lost by a kill, but for the chunk at hand."""


def fit_models(
    dataset: Dataset,
    settings: AstroSettings,
    *,
    shape: ChainShape | None = None,
    task: Task | None = None,
    seed: int = 0,
    base: FittedModels | None = None,
    any_seed: Collection[Stage] = (),
    out: str | Path | None = None,
    bar: Bar = no_bar,
) -> FittedModels:
    """Everything that augmentation needs, fitted to `dataset`. With `out`, resumable, and kept there.

    What `base` would give unchanged is taken from it, `any_seed` whatever its seed (`augment.sharing`).
    """
    make = partial(fit, dataset, settings, shape=shape, task=task, seed=seed, base=base, any_seed=any_seed)
    if out is None:
        return make(bar=bar)
    config = {
        "source_digest": source_digest(dataset),
        "transitions": dataset.n_transitions,
        "task": None if task is None else task.name,
        "shape": None if shape is None else asdict(shape),
        "seed": seed,
        "settings": settings.as_json(),
    }
    if base is not None and any_seed:
        # A base of the same seed decides nothing; one of another seed does.
        config["taken"] = {"stages": sorted(any_seed), "models_digest": base.digest()}
    with RunFolder(out).open_or_create(config) as folder:
        place = folder.path / MODELS
        if (place / DESCRIPTION).is_file():
            return load_models(place)
        models = make(keeper=FolderKeeper(folder), bar=bar)
        folder.finish_records()
        save_models(models, place)
        shutil.rmtree(folder.path / "checkpoints", ignore_errors=True)
        return models


class FolderKeeper:
    """Remembers a fit in its run folder."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._saved_at = time.monotonic()

    def restore(self, stage: str, template: Any) -> tuple[int, Any]:
        step, state = self._checkpoints(stage).restore_latest(template)
        self._folder.record_file(stage).truncate_after(step)
        self._saved_at = time.monotonic()
        return step, state

    def keep(self, stage: str, step: int, state: Any, metrics: Mapping[str, float], *, last: bool) -> None:
        self._folder.record_file(stage).write(step, metrics)
        if last or time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self._checkpoints(stage).save(step, state)
            self._saved_at = time.monotonic()

    def latents(self) -> Path | None:
        return self._folder.path / LATENTS

    def _checkpoints(self, stage: str) -> Checkpoints:
        folder = self._folder
        return Checkpoints(folder.path / "checkpoints" / stage, note=folder.note, before_saving=folder.sync)


def kept_latents(folder: str | Path, rows: int) -> np.ndarray | None:
    """The table that a fit has left, memory-mapped; None if there is none for so many rows."""
    path = Path(folder) / LATENTS
    if not path.is_file() or (Path(folder) / DESCRIPTION).is_file():
        return None  # other models have been saved beside the fit's own, and would be loaded first
    table = np.load(path, mmap_mode="r", allow_pickle=False)
    return table if len(table) == rows else None
