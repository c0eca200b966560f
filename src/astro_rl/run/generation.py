"""Batches of any method, gathered to a wanted size, in memory or as one file: killed at any moment, the same call goes
on.

Batches become shards in `<out>.parts`; the file itself appears whole or not at all, after the last of them. What a
full disk leaves is a folder of finished shards, each a dataset of its own, that the same call continues from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.generate import Account
from astro_rl.augmenters.base import Proposer
from astro_rl.data.join import joined, trajectories_for
from astro_rl.data.registry import convert, load
from astro_rl.data.schema import Dataset
from astro_rl.data.store_writer import StoreWriter
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.files import jsonable, read_json, sync_folder
from astro_rl.run.folder import CONFIG, RunFolder
from astro_rl.run.shards import Shard, shards

WHOLE, READY = "whole.astro", "ready"

ProposerOf = Callable[[int, Sequence[Dataset]], Proposer]
"""(round, what rounds before it have added) to the round's batches."""


def generated(
    proposer_of: ProposerOf,
    transitions: int,
    record: Mapping[str, Any],
    *,
    rounds: int = 1,
    out: str | Path | None = None,
    format: str | None = None,
    overwrite: bool = False,
    bar: Bar = no_bar,
) -> Dataset:
    """At least `transitions` transitions in whole trajectories. `record` is all that decides them, as JSON has it:
    `info["lineage"]`, and what a file or a folder of shards is recognised by."""
    if out is None:
        kept = list(_rounds(proposer_of, transitions, rounds, None, bar))
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
        kept = list(_rounds(proposer_of, transitions, rounds, folder.path, bar))
        _assembled(kept, record, folder.path / WHOLE)
        _into_place(folder.path / WHOLE, path, format, overwrite)
    shutil.rmtree(parts, ignore_errors=True)
    return load(path)


def _rounds(
    proposer_of: ProposerOf, transitions: int, rounds: int, folder: Path | None, bar: Bar
) -> Iterator[Shard]:
    made = 0
    so_far: list[Dataset] = []
    with bar("augmenting", transitions, "transitions") as report:
        for number in range(rounds):
            proposer = proposer_of(number, so_far)
            goal = transitions * (number + 1) // rounds
            # A round that overshot leaves the next one less to do, but something.
            goal = max(goal, made + 1)
            for found in shards(proposer, folder, f"round{number}-"):
                shard = replace(
                    found, dataset=_up_to(found.dataset, goal - made), rewards=proposer.reward_quality
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
