"""Datasets made instead of downloaded: the same recipe, the same environments, any number of episodes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astro_rl.collect.episodes import SPLITS, Split, build_collector
from astro_rl.collect.npz_writer import write_npz
from astro_rl.collect.partial import PartialFolder, explained
from astro_rl.collect.request import Request, check_format, check_request, resolve_workers
from astro_rl.collect.shards import Shard, ShardColumns, make_shard, plan_shards, shard_is_sound
from astro_rl.collect.workers import make_in_processes
from astro_rl.errors import DataError

Progress = Callable[[int, int], None]

_SUFFIX = {"ogbench": ".npz", "store": ".astro"}


def make_dataset(
    name: str,
    *,
    out: str | Path,
    episodes: int | None = None,
    val_episodes: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    format: str = "ogbench",
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """Makes `NAME` and `NAME-val` in the folder `out` and returns where they lie.

    `episodes` is the published number unless given, `val_episodes` a tenth of it and at least one. The
    files' bytes follow from name, numbers and seed: not from the number of `workers` (default: all cores;
    0: this process), nor from how often the making was interrupted. After an interruption the same call
    goes on where it stopped; after success it returns at once. `progress` is told how many episodes are
    done, of how many.
    """
    check_format(format)
    request = check_request(name, episodes, val_episodes, seed)
    partial = PartialFolder(Path(out), name)
    finals: dict[Split, Path] = {split: partial.out / _final_name(request, split, format) for split in SPLITS}
    try:
        with partial.locked(), explained(partial.out):
            if partial.is_placing():
                partial.finish_placing()
            if _is_made(partial, request, finals):
                shutil.rmtree(partial.path, ignore_errors=True)
            else:
                _refuse_to_overwrite(finals, overwrite)
                partial.begin(request)
                _make_episodes(request, partial, workers, progress)
                _write_files(request, partial, finals, format)
    finally:
        partial.discard_if_empty()
    return finals["train"], finals["val"]


def _final_name(request: Request, split: Split, format: str) -> str:
    return request.recipe.dataset + ("" if split == "train" else "-val") + _SUFFIX[format]


def _is_made(partial: PartialFolder, request: Request, finals: dict[Split, Path]) -> bool:
    """Whether these files are there already, made by this very request."""
    report = partial.read_report()
    return (
        report is not None
        and report.get("request") == request.to_json()
        and all(path.exists() and path.name in report.get("files", {}) for path in finals.values())
    )


def _refuse_to_overwrite(finals: dict[Split, Path], overwrite: bool) -> None:
    for path in finals.values():
        if path.exists() and not overwrite:
            raise DataError(
                "There is a dataset already, and this request did not make it.",
                file=path,
                fix="move it away, choose another folder, or say that it may be overwritten",
            )


def _make_episodes(
    request: Request, partial: PartialFolder, workers: int | None, progress: Progress | None
) -> None:
    planned = [
        s for split in SPLITS for s in plan_shards(split, request.count(split), request.recipe.episode_rows)
    ]
    missing = [s for s in planned if not shard_is_sound(partial.shards / s.file_name, s, request.recipe)]
    total = request.episodes + request.val_episodes
    done = total - sum(shard.episodes for shard in missing)
    room_checked = False

    def on_shard(shard: Shard) -> None:
        nonlocal done, room_checked
        done += shard.episodes
        if not room_checked:
            _check_room(request, partial, shard, done)
            room_checked = True
        if progress is not None:
            progress(done, total)

    if progress is not None:
        progress(done, total)
    processes = resolve_workers(workers, len(missing))
    if processes:
        make_in_processes(request, missing, partial.shards, partial.path, processes, on_shard)
    elif missing:
        collector = build_collector(request.recipe)
        for shard in missing:
            make_shard(collector, shard, request.seed, partial.shards, lambda number: None)
            on_shard(shard)


def _check_room(request: Request, partial: PartialFolder, shard: Shard, done: int) -> None:
    """Says after the first shard, and not after an hour, that the rest and the final files will not fit."""
    an_episode = (partial.shards / shard.file_name).stat().st_size / shard.episodes
    total = request.episodes + request.val_episodes
    needed, free = int(an_episode * (2 * total - done)), shutil.disk_usage(partial.out).free
    if free < needed:
        raise DataError(
            "The disk is too small for this dataset.",
            file=partial.out,
            found=f"{free / 1e6:.0f} MB free",
            expected=f"{needed / 1e6:.0f} MB: {total} episodes, as they are made and in the final files",
            fix="free some space and give the same command again, choose another folder, or fewer episodes",
        )


def _write_files(request: Request, partial: PartialFolder, finals: dict[Split, Path], format: str) -> None:
    files: dict[str, dict[str, Any]] = {}
    for split in SPLITS:
        shards = plan_shards(split, request.count(split), request.recipe.episode_rows)
        rows = request.count(split) * request.recipe.episode_rows
        npz = partial.path / _final_name(request, split, "ogbench")
        write_npz(npz, ShardColumns(partial.shards, shards), rows)
        entry: dict[str, Any] = {"episodes": request.count(split), "rows": rows}
        if format == "ogbench":
            entry.update(bytes=npz.stat().st_size, sha256=_sha256(npz))
        else:
            _write_store(npz, partial.path / finals[split].name)
        files[finals[split].name] = entry
    partial.place([path.name for path in finals.values()], {"request": request.to_json(), "files": files})


def _write_store(npz: Path, store: Path) -> None:
    from astro_rl.data import convert

    if store.exists():  # left by a kill between writing and placing
        shutil.rmtree(store)
    convert(npz, store, format="store")
    npz.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
