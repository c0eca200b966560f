"""The store as a format among others."""

from __future__ import annotations

from pathlib import Path

from astro_rl.data.columns import Progress
from astro_rl.data.manifest import read_manifest
from astro_rl.data.schema import Dataset
from astro_rl.data.store import open_store, write_store
from astro_rl.errors import DataError


def recognises(path: Path) -> bool:
    """A folder that says it is a store. A damaged one too, so that reading it tells what is wrong."""
    if not (path / "manifest.json").is_file():
        return False
    try:
        return bool(read_manifest(path))
    except DataError:
        return (path / "observations.npy").exists()


def read(path: Path) -> Dataset:
    return open_store(path)


def write(dataset: Dataset, path: Path, *, overwrite: bool = False, progress: Progress | None = None) -> None:
    write_store(dataset, path, overwrite=overwrite, progress=progress)
