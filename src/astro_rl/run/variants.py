"""ASTRO's ablations in folders: `augmenters.variants`, resumable as every fit is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import Stage
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.augmenters.states import AstroStates, FittedStates, StatesSettings, plan_like
from astro_rl.augmenters.variants import settings_of, variant_named, variant_of
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.run.fit import fit_models
from astro_rl.run.methods import fit_method
from astro_rl.stateplan.settings import StatePlanSettings
from astro_rl.tasks.task import Task


def fit_variant(
    base: FittedModels,
    name: str,
    dataset: Dataset,
    *,
    task: Task | None = None,
    seed: int | None = None,
    any_seed: Collection[Stage] = (),
    latents: Float[ndarray, "rows latent"] | None = None,
    plan: StatePlanSettings | None = None,
    out: str | Path | None = None,
    bar: Bar = no_bar,
) -> FittedAugmenter:
    """`variant_of` with a folder: killed at any moment, the same call goes on. A finished one is read and not
    repeated; it holds all that `run.methods` needs, without the base."""
    if out is None:
        return variant_of(
            base,
            name,
            dataset,
            task=task,
            seed=seed,
            any_seed=any_seed,
            latents=latents,
            plan=plan,
            bar=bar,
        )
    settings, shape = settings_of(name, base.settings, base.shape)
    own = base.seed if seed is None else seed
    if variant_named(name).states_first:
        if own != base.seed:
            raise ConfigError(
                "SI takes distances and dynamics from its base as they are.",
                field="seed",
                found=f"seed {own}, a base of seed {base.seed}",
                fix="fit a base of that seed first",
            )
        augmenter = AstroStates(StatesSettings(settings, plan or plan_like(settings)), base)
        fitted = fit_method(dataset, augmenter, task=task, seed=own, out=out, bar=bar)
        return replace(fitted, latents=latents) if isinstance(fitted, FittedStates) else fitted
    models = fit_models(
        dataset,
        settings,
        shape=shape,
        task=task,
        seed=own,
        base=base,
        any_seed=any_seed,
        out=out,
        bar=bar,
    )
    same = models.temporal_digest() == base.temporal_digest()
    return FittedAstro(models, latents if same else None)
