"""The front door: `Astro.fit(dataset).augment(1_000_000).save("augmented.astro")`, with nothing but arrays in hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.augment.fitting import Bar
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import changed, settings_for
from astro_rl.data.schema import Dataset
from astro_rl.progress import progress_bar
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import Task, get_task


@dataclass(frozen=True, eq=False)
class Astro:
    """Models fitted to one dataset, and the dataset."""

    models: FittedModels
    dataset: Dataset
    task: Task | None = None
    folder: Path | None = None
    """Where the fit lies, if it was given a place."""

    @classmethod
    def fit(
        cls,
        dataset: Dataset,
        *,
        preset: str = "auto",
        task: Task | str | None = None,
        shape: ChainShape | tuple[int, int, int] | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        base: Astro | None = None,
        out: str | Path | None = None,
        bar: Bar = progress_bar,
    ) -> Astro:
        """Learn temporal distances, dynamics and stitch planner.

        `preset` is tiny (seconds), cpu (up to an hour), paper (an accelerator and hours) or auto (cpu, or paper with
        an accelerator). `shape` is (pieces, l, M); unless given it is read off the data. `settings` changes single
        ones by their path, `{"dynamics.steps": 50_000}`. `task` tells where x and y stand and what is rewarded; it
        may be None. With `out`, a fit that was killed goes on when the same call is made again. What `base`, another
        fit of the same data, would give unchanged is taken from it: other planner settings fit the planner alone.
        """
        from astro_rl.run.fit import fit_models

        chosen = settings_for(preset, settings, accelerator=has_accelerator())
        known = get_task(task) if isinstance(task, str) else task
        form = ChainShape(*shape) if isinstance(shape, tuple) else shape
        models = fit_models(
            dataset,
            chosen,
            shape=form,
            task=known,
            seed=seed,
            base=None if base is None else base.models,
            out=out,
            bar=bar,
        )
        return cls(models, dataset, known, None if out is None else Path(out))

    def augment(
        self,
        transitions: int,
        *,
        out: str | Path | None = None,
        format: str | None = None,
        overwrite: bool = False,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        rounds: int = 1,
        bar: Bar = progress_bar,
    ) -> Dataset:
        """At least so many new transitions, in whole trajectories; `.save(path)` writes them in any format.

        `settings` changes those under `generate`, `{"search.threshold": 4.0}`. With `out` the data goes to disk
        shard by shard, so that memory does not grow with it, and a killed call goes on when it is made again.
        """
        from astro_rl.run.augment import augment
        from astro_rl.run.fit import kept_latents

        latents = None if self.folder is None else kept_latents(self.folder, self.dataset.n_rows)
        return augment(
            self.models,
            self.dataset,
            transitions,
            out=out,
            format=format,
            overwrite=overwrite,
            task=self.task,
            settings=changed(self.models.settings.generate, settings or {}),
            seed=seed,
            rounds=rounds,
            latents=latents,
            bar=bar,
        )

    def steps(
        self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]
    ) -> Float[np.ndarray, "batch"]:
        """Steps that the best policy in the data would need from a to b."""
        return self.models.temporal.steps(a, b)

    def save(self, folder: str | Path) -> Path:
        """The models, as three files of weights and one of JSON."""
        from astro_rl.run.models import save_models

        return save_models(self.models, folder)

    @classmethod
    def load(cls, folder: str | Path, dataset: Dataset, *, task: Task | str | None = None) -> Astro:
        """What `save` wrote, or a fit's folder. Another dataset than the fitted one is refused."""
        from astro_rl.augment.lineage import require_same_source
        from astro_rl.run.models import load_models
        from astro_rl.tasks.relabel import check_width

        known = get_task(task) if isinstance(task, str) else task
        if known is not None:
            check_width(dataset, known)
        models = load_models(folder)
        require_same_source(
            dataset,
            models.source_digest,
            what="The fit",
            fix="load the dataset that was fitted, or fit this one",
        )
        return cls(models, dataset, known, Path(folder))


def has_accelerator() -> bool:
    import jax

    return jax.default_backend() != "cpu"
