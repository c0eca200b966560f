"""Augmented data of a wanted size, in memory or as one file: killed at any moment, the same call goes on.

Batches become shards in `<out>.parts`; the file itself appears whole or not at all, after the last of them. What a
full disk leaves is a folder of finished shards, each a dataset of its own, that the same call continues from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.augment.finish import origins
from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.generate import Account, Generator, limits_for, nothing_passes
from astro_rl.augment.lineage import lineage, require_same_source
from astro_rl.augment.models import FittedModels
from astro_rl.augment.options import GenerateSettings
from astro_rl.data.join import joined, trajectories_for
from astro_rl.data.registry import convert, load, require_format
from astro_rl.data.schema import Dataset
from astro_rl.data.store_writer import StoreWriter
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.files import jsonable, read_json, sync_folder
from astro_rl.run.folder import CONFIG, RunFolder
from astro_rl.run.shards import Shard, shards
from astro_rl.tasks.relabel import check_width, relabel
from astro_rl.tasks.task import Task

WHOLE, READY = "whole.astro", "ready"


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
    for name, value in (("transitions", transitions), ("rounds", rounds)):
        if value < 1:
            raise ConfigError("This has to be at least 1.", field=name, found=value)
    require_same_source(
        dataset,
        models.source_digest,
        what="The fit",
        fix="augment the dataset that was fitted, or fit this one",
    )
    if task is not None:
        check_width(dataset, task)
    settings = settings or models.settings.generate
    if out is not None:
        require_format(Path(out), format)
    models = replace(models, limits=limits_for(models, dataset, settings, task))
    record = {"transitions": transitions, **_record(models, settings, task, seed, rounds)}
    if out is None:
        kept = list(
            _rounds(models, dataset, transitions, settings, task, seed, rounds, latents, bar, _in_memory)
        )
        made = joined([shard.dataset for shard in kept if shard.dataset is not None])
        return replace(made, info=_info(record, kept, made))
    path = Path(out)
    parts = path.with_name(f"{path.name}.parts")
    if path.exists() and not overwrite:
        there = _same_or_refused(path, record)
        if (parts / CONFIG).is_file() and read_json(parts / CONFIG) == record:
            shutil.rmtree(parts, ignore_errors=True)  # a kill came between the file and their end
        return there
    with RunFolder(parts).open_or_create(record) as folder:

        def on_disk(generator: Generator, number: int) -> Iterator[Shard]:
            give_up = settings.give_up_after
            return shards(generator, folder.path, f"round{number}-", give_up_after=give_up)

        batches = _rounds(models, dataset, transitions, settings, task, seed, rounds, latents, bar, on_disk)
        _assembled(list(batches), record, folder.path / WHOLE)
        _into_place(folder.path / WHOLE, path, format, overwrite)
    shutil.rmtree(parts, ignore_errors=True)
    return load(path)


Batches = Callable[[Generator, int], Iterator[Shard]]


def _rounds(
    models: FittedModels,
    dataset: Dataset,
    transitions: int,
    settings: GenerateSettings,
    task: Task | None,
    seed: int,
    rounds: int,
    latents: np.ndarray | None,
    bar: Bar,
    batches: Batches,
) -> Iterator[Shard]:
    made, source = 0, dataset
    so_far: list[Dataset] = []
    with bar("augmenting", transitions, "transitions") as report:
        for number in range(rounds):
            if number:
                source, latents = _union(dataset, so_far, task), None
            # A round has a seed of its own: the same draws over more data would choose the same pieces again.
            generator = Generator(
                models, source, settings, task=task, seed=seed + (number << 20), latents=latents
            )
            goal = transitions * (number + 1) // rounds
            # A round that overshot leaves the next one less to do, but something.
            goal = max(goal, made + 1)
            for found in batches(generator, number):
                shard = replace(
                    found, dataset=_up_to(found.dataset, goal - made), rewards=generator.reward_quality
                )
                if shard.dataset is not None:
                    made += shard.dataset.n_transitions
                    so_far.append(shard.dataset)
                yield shard
                report(min(made, transitions), transitions)
                if made >= goal:
                    break


def _up_to(dataset: Dataset | None, missing: int) -> Dataset | None:
    """No more trajectories than it takes to hold so many transitions."""
    if dataset is None or dataset.n_transitions <= missing:
        return dataset
    count = trajectories_for(dataset.lengths, missing)
    return dataset if count == len(dataset) else dataset.select(range(count))


def _in_memory(generator: Generator, _: int) -> Iterator[Shard]:
    empty, chains, completions, number = 0, Account(), Account(), 0
    while True:
        batch = generator.batch(number)
        empty = 0 if batch.dataset is not None else empty + 1
        chains, completions = chains + batch.chains, completions + batch.completions
        if empty >= generator.settings.give_up_after:
            raise nothing_passes(chains, completions, number + 1)
        yield Shard(number, batch.dataset, batch.chains, batch.completions, batch.starts)
        number += 1


def _union(dataset: Dataset, added: list[Dataset], task: Task | None) -> Dataset:
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


def _record(
    models: FittedModels, settings: GenerateSettings, task: Task | None, seed: int, rounds: int
) -> dict[str, Any]:
    return jsonable(
        lineage(
            source=models.source_digest,
            models=models.digest(),
            settings={
                "shape": asdict(models.shape),
                "gauge": asdict(models.gauge),
                "limits": models.limits.as_json(),
                "generate": asdict(settings),
            },
            task=None if task is None else task.name,
            seed=seed,
            rounds=rounds,
        )
    )


def _info(record: Mapping[str, Any], kept: list[Shard], made: Dataset) -> dict[str, Any]:
    chains = sum((shard.chains for shard in kept), Account())
    completions = sum((shard.completions for shard in kept), Account())
    told: dict[str, Any] = {"chains": chains.as_json(), "completions": completions.as_json()}
    if kept[-1].rewards is not None:
        told["reward_model"] = jsonable(kept[-1].rewards)
    return {**made.info, "lineage": {**record, **told}}


def _assembled(kept: list[Shard], record: Mapping[str, Any], out: Path) -> None:
    """All shards as one store."""
    if out.exists():
        return
    datasets = [shard.dataset for shard in kept if shard.dataset is not None]
    with StoreWriter(out, info=_info(record, kept, datasets[0])) as writer:
        for part in datasets:
            writer.extend(part)


def _into_place(whole: Path, out: Path, format: str | None, overwrite: bool) -> None:
    """Written beside the shards and renamed, so that a kill leaves nothing that the next call does not remove."""
    if out.exists():
        convert(whole, out, format=format, overwrite=overwrite)
        return
    ready = whole.with_name(READY) / out.name
    shutil.rmtree(ready.parent, ignore_errors=True)
    ready.parent.mkdir()
    convert(whole, ready, format=format)
    ready.rename(out)
    sync_folder(out.parent)


def _same_or_refused(path: Path, record: Mapping[str, Any]) -> Dataset:
    """A finished file is found again by the call that made it; any other call must not replace it unasked."""
    try:
        there = load(path)
    except DataError:
        there = None
    told = {} if there is None else dict(there.info.get("lineage", {}))
    if there is not None and all(told.get(name) == value for name, value in record.items()):
        return there
    raise ConfigError(
        "There is something else at the destination.",
        file=path,
        found="augmented data of other settings" if told else "a file that this call did not make",
        fix="choose another name, or ask for it to be overwritten (--overwrite)",
    )
