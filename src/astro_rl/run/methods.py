"""Any method in files: fitted in a resumable folder, loaded from it, its augmented data made shard by shard.

The folder is that of `run.fit`; its `config.json` names the method, and so does `models/models.json`. ASTRO goes
through its own doors (`run.fit`, `run.augment`), so that its files are the same whoever asks.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.lineage import require_same_source, source_digest
from astro_rl.augmenters.astro import AstroAugmenter, FittedAstro
from astro_rl.augmenters.base import Augmenter, FittedAugmenter, Proposer
from astro_rl.augmenters.registry import METHODS
from astro_rl.data.digest import digest_columns
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.run.augment import augment, check_request, record_of
from astro_rl.run.fit import MODELS, FolderKeeper, fit_models, kept_latents
from astro_rl.run.folder import RunFolder
from astro_rl.run.generation import generated
from astro_rl.run.models import DESCRIPTION, load_fitted, save_fitted
from astro_rl.tasks.task import Task


def fit_method(
    dataset: Dataset,
    augmenter: Augmenter,
    *,
    task: Task | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    bar: Bar = no_bar,
) -> FittedAugmenter:
    """The method fitted to `dataset`. With `out`, killed at any moment, the same call goes on, and ends with the same
    weights."""
    if isinstance(augmenter, AstroAugmenter):
        models = fit_models(
            dataset, augmenter.settings, shape=augmenter.shape, task=task, seed=seed, out=out, bar=bar
        )
        return FittedAstro(models, None if out is None else kept_latents(out, dataset.n_rows))
    if out is None:
        return augmenter.fit(dataset, task=task, seed=seed, bar=bar)
    config: dict[str, Any] = {
        "method": augmenter.method,
        "source_digest": source_digest(dataset),
        "labels_digest": _labels_digest(dataset),
        "transitions": dataset.n_transitions,
        "task": None if task is None else task.name,
        "seed": seed,
        "settings": augmenter.as_json(),
    }
    with RunFolder(out).open_or_create(config) as folder:
        place = folder.path / MODELS
        if (place / DESCRIPTION).is_file():
            return load_fitted(place)
        fitted = augmenter.fit(dataset, task=task, seed=seed, keeper=FolderKeeper(folder), bar=bar)
        folder.finish_records()
        save_fitted(fitted, place)
        shutil.rmtree(folder.path / "checkpoints", ignore_errors=True)
        return fitted


def _labels_digest(dataset: Dataset) -> str | None:
    """Rewards and ends, which the source's digest leaves out, and methods may learn from."""
    if dataset.rewards is None:
        return None
    return digest_columns({"rewards": dataset.rewards, "terminated": dataset.terminated})


def load_method(folder: str | Path, dataset: Dataset) -> FittedAugmenter:
    """What `fit_method` or `save_fitted` left. Another dataset than the fitted one is refused."""
    fitted = load_fitted(folder)
    require_same_source(
        dataset,
        fitted.source_digest,
        what="The fit",
        fix="load the dataset that was fitted, or fit this one",
    )
    if isinstance(fitted, FittedAstro):
        return FittedAstro(fitted.models, kept_latents(folder, dataset.n_rows))
    return fitted


def augment_method(
    fitted: FittedAugmenter,
    dataset: Dataset,
    transitions: int,
    *,
    out: str | Path | None = None,
    format: str | None = None,
    overwrite: bool = False,
    task: Task | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    bar: Bar = no_bar,
) -> Dataset:
    """At least `transitions` augmented transitions, in whole trajectories. With `out`, shard by shard and resumable;
    a file that the same call made is found again, any other is refused without `overwrite`. `settings` are those of
    generating that differ from the fit's, where the method has any."""
    fitted = with_settings(fitted, settings or {})
    if isinstance(fitted, FittedAstro):
        return augment(
            fitted.models,
            dataset,
            transitions,
            out=out,
            format=format,
            overwrite=overwrite,
            task=task,
            seed=seed,
            latents=fitted.latents,
            bar=bar,
        )
    check_request(dataset, fitted.source_digest, task=task, out=out, format=format, transitions=transitions)
    record = {"method": fitted.method, **record_of(fitted, transitions, task, seed)}

    def proposer_of(number: int, added: Sequence[Dataset]) -> Proposer:
        return fitted.propose(dataset, task=task, seed=seed)

    return generated(proposer_of, transitions, record, out=out, format=format, overwrite=overwrite, bar=bar)


def with_settings(fitted: FittedAugmenter, settings: Mapping[str, Any]) -> FittedAugmenter:
    """The same fit, generating with other settings."""
    if not settings:
        return fitted
    adjust = METHODS[fitted.method].adjust if fitted.method in METHODS else None
    if adjust is None:
        raise ConfigError(
            "What this method generates is decided by its fit alone.",
            field=", ".join(map(str, settings)),
            found=f"method {fitted.method}",
            fix="leave the settings out, or fit with them",
        )
    return adjust(fitted, settings)
