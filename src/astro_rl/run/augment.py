"""ASTRO's augmented data of a wanted size, in rounds: `run.generation` with chains from D ∪ D_aug."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.augment.finish import origins
from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.generate import Generator, limits_for
from astro_rl.augment.lineage import lineage, require_same_source
from astro_rl.augment.models import FittedModels
from astro_rl.augment.options import GenerateSettings
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.data.join import joined
from astro_rl.data.registry import require_format
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.run.files import jsonable
from astro_rl.run.generation import generated
from astro_rl.tasks.relabel import check_width, relabel
from astro_rl.tasks.task import Task


def augment(
    models: FittedModels,
    dataset: Dataset,
    transitions: int,
    *,
    out: str | Path | None = None,
    format: str | None = None,
    overwrite: bool = False,
    task: Task | None = None,
    settings: GenerateSettings | None = None,
    seed: int = 0,
    rounds: int = 1,
    latents: np.ndarray | None = None,
    bar: Bar = no_bar,
) -> Dataset:
    """At least `transitions` augmented transitions, in whole trajectories.

    `rounds` above 1 divides them: chains of a later round come from the dataset *and* what rounds before it added.
    """
    check_request(
        dataset,
        models.source_digest,
        task=task,
        out=out,
        format=format,
        transitions=transitions,
        rounds=rounds,
    )
    settings = settings or models.settings.generate
    models = replace(
        models,
        limits=limits_for(models, dataset, settings, task),
        settings=replace(models.settings, generate=settings),
    )

    def proposer_of(number: int, added: Sequence[Dataset]) -> Generator:
        # A round has a seed of its own: the same draws over more data would choose the same pieces again.
        own = seed + (number << 20)
        if number == 0:
            return Generator(models, dataset, task=task, seed=own, latents=latents)
        return Generator(models, _union(dataset, added, task), task=task, seed=own)

    record = record_of(FittedAstro(models), transitions, task, seed, rounds)
    return generated(
        proposer_of,
        transitions,
        record,
        rounds=rounds,
        out=out,
        format=format,
        overwrite=overwrite,
        bar=bar,
    )


def check_request(
    dataset: Dataset,
    source_digest: str,
    *,
    task: Task | None,
    out: str | Path | None,
    format: str | None,
    **numbers: int,
) -> None:
    """Refused before any work: numbers below 1, another dataset, a task of other data, a format nobody writes."""
    for name, value in numbers.items():
        if value < 1:
            raise ConfigError("This has to be at least 1.", field=name, found=value)
    require_same_source(
        dataset,
        source_digest,
        what="The fit",
        fix="augment the dataset that was fitted, or fit this one",
    )
    if task is not None:
        check_width(dataset, task)
    if out is not None:
        require_format(Path(out), format)


def record_of(
    fitted: FittedAugmenter, transitions: int, task: Task | None, seed: int, rounds: int = 1
) -> dict[str, Any]:
    """All that decides augmented data, as its lineage and the folder of its shards have it."""
    told = lineage(
        source=fitted.source_digest,
        models=fitted.digest(),
        settings=fitted.lineage(),
        task=None if task is None else task.name,
        seed=seed,
        rounds=rounds,
    )
    return jsonable({"transitions": transitions, **told})


def _union(dataset: Dataset, added: Sequence[Dataset], task: Task | None) -> Dataset:
    """D ∪ D_aug as a source: what each row of it is, in terms of D."""
    labelled = dataset if task is None else relabel(dataset, task)
    trajectory, step = origins(dataset, np.arange(dataset.n_rows))
    own = {"source_trajectory": trajectory.astype(np.int32), "source_step": step.astype(np.int32)}
    return joined(
        [
            replace(labelled, extras=own, stamp=None),
            *(replace(one, extras={name: one.extras[name] for name in own}, stamp=None) for one in added),
        ]
    )
