"""What each kind of cell does, in a folder of its own. Every stage goes on where it was stopped.

Results are plain JSON. Those of training keep every episode's raw return; nothing in a table is computed here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from astro_rl.agents.presets import learner_for
from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import changed, settings_for
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.bench import measuring
from astro_rl.bench.cells import (
    AugmentCell,
    Cell,
    CompletionCell,
    DataCell,
    FitCell,
    GeometryCell,
    ModelCell,
    ReshapedCell,
    RivalCell,
    SelectionCell,
    SimulatedCell,
    TrainCell,
    VariantCell,
    data_of,
    key_of,
)
from astro_rl.bench.shapes import reshaped
from astro_rl.collect import make_dataset
from astro_rl.data import Dataset, load
from astro_rl.data.catalogue import RECIPES
from astro_rl.data.fetch import fetch
from astro_rl.data.join import trajectories_for
from astro_rl.quality.simulated_augmenter import SIMULATED, FittedSimulator
from astro_rl.run.augment import augment
from astro_rl.run.fit import fit_models, kept_latents
from astro_rl.run.methods import augment_method, fit_method, load_method
from astro_rl.run.models import load_models
from astro_rl.run.train import Execution, TrainSettings, train
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import get_task, relabel

AUGMENTED = "augmented.astro"
MOST_DATASETS = 2
"""Datasets that stay in memory between cells."""


@dataclass
class Workplace:
    """Where cells lie, and what is kept in memory between them."""

    cells: Path
    bar: Bar = no_bar
    workers: int | None = None
    _datasets: OrderedDict[str, Dataset] = field(default_factory=OrderedDict, repr=False)

    def folder(self, cell: Cell) -> Path:
        return self.cells / key_of(cell)

    def place(self, cell: Cell) -> Path:
        """What the cell makes."""
        return self.folder(cell) / "work"

    def dataset(self, cell: DataCell) -> Dataset:
        key = key_of(cell)
        if key not in self._datasets:
            self._datasets[key] = load(self.data_file(cell))
            while len(self._datasets) > MOST_DATASETS:
                self._datasets.popitem(last=False)
        self._datasets.move_to_end(key)
        return self._datasets[key]

    def data_file(self, cell: DataCell) -> Path:
        if cell.given is not None:
            return Path(cell.given)
        suffix = ".npz" if cell.dataset in RECIPES else ".hdf5"
        return self.place(cell) / f"{cell.dataset}{suffix}"

    def models(self, cell: FitCell | ReshapedCell) -> FittedModels:
        return load_models(self.place(cell))


def do(cell: Cell, at: Workplace) -> dict[str, Any]:
    """The cell's work, whole or from where it was left; what there is to say of it."""
    at.folder(cell).mkdir(parents=True, exist_ok=True)
    return _WORK[type(cell)](cell, at)


def _data(cell: DataCell, at: Workplace) -> dict[str, Any]:
    if cell.given is None:
        recipe = RECIPES.get(cell.dataset)
        if recipe is not None and recipe.makeable:
            with at.bar(f"making {cell.dataset}", cell.episodes or recipe.episodes, "episodes") as report:
                make_dataset(
                    cell.dataset,
                    out=at.place(cell),
                    episodes=cell.episodes,
                    seed=cell.seed,
                    workers=at.workers,
                    progress=report,
                )
        else:
            with at.bar(f"fetching {cell.dataset}", 1, "bytes") as report:
                fetch(cell.dataset, at.place(cell), progress=report)
    dataset = at.dataset(cell)
    return {
        "file": str(at.data_file(cell)),
        "digest": dataset.digest(),
        "trajectories": len(dataset),
        "transitions": dataset.n_transitions,
    }


def _fit(cell: FitCell, at: Workplace) -> dict[str, Any]:
    models = fit_models(
        at.dataset(cell.data),
        settings_for(cell.preset, dict(cell.settings)),
        shape=None if cell.shape is None else ChainShape(*cell.shape),
        task=get_task(cell.task),
        seed=cell.seed,
        out=at.place(cell),
        bar=at.bar,
    )
    return {"models_digest": models.digest(), "shape": vars(models.shape), "why": models.why}


def _reshaped(cell: ReshapedCell, at: Workplace) -> dict[str, Any]:
    base = at.models(cell.base)
    shape = reshaped(base, cell.change, cell.value, absolute=cell.absolute)
    models = fit_models(
        at.dataset(cell.base.data),
        base.settings,
        shape=shape,
        task=get_task(cell.base.task),
        seed=cell.base.seed,
        base=base,
        out=at.place(cell),
        bar=at.bar,
    )
    return {"models_digest": models.digest(), "shape": vars(models.shape)}


def _rival(cell: RivalCell, at: Workplace) -> dict[str, Any]:
    from astro_rl.augmenters.registry import augmenter_for

    fitted = fit_method(
        at.dataset(cell.data),
        augmenter_for(cell.method, cell.preset, dict(cell.settings)),
        task=get_task(cell.task),
        seed=cell.seed,
        out=at.place(cell),
        bar=at.bar,
    )
    return {"models_digest": fitted.digest(), "method": fitted.method}


def _variant(cell: VariantCell, at: Workplace) -> dict[str, Any]:
    from astro_rl.run.variants import fit_variant

    dataset = at.dataset(cell.base.data)
    fitted = fit_variant(
        at.models(cell.base),
        cell.variant,
        dataset,
        task=get_task(cell.base.task),
        latents=kept_latents(at.place(cell.base), dataset.n_rows),
        out=at.place(cell),
        bar=at.bar,
    )
    return {"models_digest": fitted.digest(), "method": fitted.method}


def _simulated(cell: SimulatedCell, at: Workplace) -> dict[str, Any]:
    return {"method": SIMULATED, "models_digest": at.models(cell.base).digest()}


def _augment(cell: AugmentCell, at: Workplace) -> dict[str, Any]:
    dataset, place = at.dataset(cell.data), at.place(cell)
    task = get_task(_task_of(cell))
    transitions = max(1, round(cell.amount * dataset.n_transitions))
    place.mkdir(exist_ok=True)
    if isinstance(cell.model, FitCell | ReshapedCell):
        models = at.models(cell.model)
        made = augment(
            models,
            dataset,
            transitions,
            out=place / AUGMENTED,
            task=task,
            settings=changed(models.settings.generate, dict(cell.settings)),
            seed=cell.seed,
            latents=kept_latents(at.place(cell.model), dataset.n_rows),
            bar=at.bar,
        )
    else:
        fitted = _method(cell.model, dataset, at)
        made = augment_method(
            fitted, dataset, transitions, out=place / AUGMENTED, task=task, seed=cell.seed, bar=at.bar
        )
    told = dict(made.info.get("lineage", {}))
    account = {name: told[name] for name in ("chains", "completions") if name in told}
    return {"digest": made.digest(), "transitions": made.n_transitions, **account}


def _method(cell: ModelCell, dataset: Dataset, at: Workplace) -> FittedAugmenter:
    if isinstance(cell, SimulatedCell):
        latents = kept_latents(at.place(cell.base), dataset.n_rows)
        return FittedSimulator(at.models(cell.base), latents, workers=at.workers)
    return load_method(at.place(cell), dataset)


def _task_of(cell: AugmentCell) -> str:
    model = cell.model
    return model.task if isinstance(model, FitCell | RivalCell) else model.base.task


def _train(cell: TrainCell, at: Workplace) -> dict[str, Any]:
    task, source = get_task(cell.task), at.dataset(cell.data)
    dataset = relabel(source, task)
    augmented = None
    if cell.augmented is not None:
        augmented = load(at.place(cell.augmented) / AUGMENTED)
        if cell.take is not None:
            wanted = max(1, round(cell.take * source.n_transitions))
            augmented = augmented.select(range(trajectories_for(augmented.lengths, wanted)))
        augmented = relabel(augmented, task)
    chunk = min(1_000, cell.updates)
    result = train(
        dataset,
        learner_for(cell.learner, preset=cell.preset, task=task, **dict(cell.settings)),
        TrainSettings(
            steps=cell.updates,
            seeds=cell.seeds,
            augmented_share=cell.share,
            log_every=chunk,
            checkpoint_every=20 * chunk,
            episodes=cell.episodes,
        ),
        out=at.place(cell),
        task=task,
        augmented=augmented,
        execution=Execution(progress=at.bar, evaluation_workers=at.workers),
    )
    evaluation = result.results["evaluation"]
    return {
        "record": "scores",
        "data": cell.data.dataset,
        "task": task.name,
        "learner": cell.learner,
        "preset": cell.preset,
        "set": [f"{name}={value}" for name, value in cell.settings],
        "arm": cell.arm,
        "seeds": list(cell.seeds),
        "updates": cell.updates,
        "share": None if augmented is None else cell.share,
        "augmented": None if augmented is None else augmented.n_transitions,
        **{name: evaluation[name] for name in ("scores", "summary", "episodes", "success_timing")},
    }


def _geometry(cell: GeometryCell, at: Workplace) -> dict[str, Any]:
    found = measuring.geometry(
        at.models(cell.base),
        at.dataset(cell.base.data),
        get_task(cell.base.task),
        cell.rule,
        pairs=cell.pairs,
        seed=cell.seed,
        latents=kept_latents(at.place(cell.base), at.dataset(cell.base.data).n_rows),
    )
    return {"record": "geometry", **_where(cell), "arm": cell.rule, "seed": cell.seed, "values": found}


def _completion(cell: CompletionCell, at: Workplace) -> dict[str, Any]:
    dataset = at.dataset(data_of(cell))
    fitted = load_method(at.place(cell.model), dataset)
    found = measuring.completion(fitted, dataset, sequences=cell.sequences, seed=cell.seed)
    if cell.augmented is not None:
        made = load(at.place(cell.augmented) / AUGMENTED)
        task = get_task(_task_of(cell.augmented))
        found |= measuring.violations(
            made, dataset, task, rows=cell.rows, seed=cell.seed, workers=at.workers, bar=at.bar
        )
    return {"record": "completion", **_where(cell), "arm": cell.arm, "seed": cell.seed, "values": found}


def _selection(cell: SelectionCell, at: Workplace) -> dict[str, Any]:
    models, dataset = at.models(cell.base), at.dataset(cell.base.data)
    shape, settings = models.shape, models.settings.generate.search
    if cell.pieces is not None:
        shape = replace(shape, pieces=cell.pieces)
    if cell.threshold is not None:
        settings = replace(settings, threshold=cell.threshold)
    found = measuring.selection(
        models,
        dataset,
        shape,
        settings,
        batches=cell.batches,
        seconds=cell.seconds,
        seed=cell.seed,
        latents=kept_latents(at.place(cell.base), dataset.n_rows),
    )
    return {"record": "selection", **_where(cell), "arm": cell.arm, "seed": cell.seed, "values": found}


def _where(cell: Cell) -> dict[str, Any]:
    return {"data": data_of(cell).dataset}


_WORK: dict[type, Callable[[Any, Workplace], dict[str, Any]]] = {
    DataCell: _data,
    FitCell: _fit,
    ReshapedCell: _reshaped,
    RivalCell: _rival,
    VariantCell: _variant,
    SimulatedCell: _simulated,
    AugmentCell: _augment,
    TrainCell: _train,
    GeometryCell: _geometry,
    CompletionCell: _completion,
    SelectionCell: _selection,
}
