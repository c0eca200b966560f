"""Batches of augmented data on disk: each a store, its account beside it, written once and found again after a kill.

PARTS/
  config.json            what decides the data; a folder with another one is refused
  00000.astro            what batch 0 kept; absent where that was nothing
  00000.json             its account: written after the store, so that a batch counts only when it is whole
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.augment.generate import Account, GeneratedBatch, nothing_passes
from astro_rl.augmenters.base import Proposer
from astro_rl.data.schema import Dataset
from astro_rl.data.store import open_store, write_store
from astro_rl.run.files import read_json, write_json

MOST_STARTS = 64
"""Chains whose pieces are kept for pictures, a batch."""


@dataclass(frozen=True, eq=False)
class Shard:
    """One batch as it lies on disk."""

    number: int
    dataset: Dataset | None
    chains: Account
    completions: Account
    starts: np.ndarray
    rewards: Mapping[str, float] | None = None
    """How well the reward model that labelled it does, where there was one."""


def shards(proposer: Proposer, folder: Path | None, prefix: str = "") -> Iterator[Shard]:
    """Batches 0, 1, 2, …: those that lie there are read, others are made. Ends in an error where nothing passes.
    Without a folder all are made, and stay in memory."""
    empty, chains, completions = 0, Account(), Account()
    number = 0
    while True:
        shard = _shard(proposer, folder, prefix, number)
        empty = 0 if shard.dataset is not None else empty + 1
        chains, completions = chains + shard.chains, completions + shard.completions
        if empty >= proposer.give_up_after:
            raise nothing_passes(chains, completions, number + 1, proposer.cures)
        yield shard
        number += 1


def _shard(proposer: Proposer, folder: Path | None, prefix: str, number: int) -> Shard:
    if folder is None:
        batch = proposer.batch(number)
        return Shard(number, batch.dataset, batch.chains, batch.completions, batch.starts)
    return _read(folder, prefix, number) or _write(proposer.batch(number), folder, prefix, number)


def _names(folder: Path, prefix: str, number: int) -> tuple[Path, Path]:
    stem = f"{prefix}{number:05d}"
    return folder / f"{stem}.astro", folder / f"{stem}.json"


def _read(folder: Path, prefix: str, number: int) -> Shard | None:
    store, account = _names(folder, prefix, number)
    if not account.is_file():
        return None
    saved: dict[str, Any] = read_json(account)
    return Shard(
        number,
        open_store(store) if saved["kept_something"] else None,
        Account.from_json(saved["chains"]),
        Account.from_json(saved["completions"]),
        np.asarray(saved["starts"], np.int64),
    )


def _write(batch: GeneratedBatch, folder: Path, prefix: str, number: int) -> Shard:
    store, account = _names(folder, prefix, number)
    if batch.dataset is not None:
        write_store(batch.dataset, store, overwrite=True)
    write_json(
        account,
        {
            "kept_something": batch.dataset is not None,
            "chains": batch.chains.as_json(),
            "completions": batch.completions.as_json(),
            "starts": batch.starts[:MOST_STARTS].tolist(),
        },
    )
    shard = _read(folder, prefix, number)
    assert shard is not None
    return shard
