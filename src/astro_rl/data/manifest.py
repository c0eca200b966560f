"""A store's manifest: what the folder should hold, and the facts that travel with the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.data.columns import native
from astro_rl.errors import DataError

FORMAT = "astro-rl dataset"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"


def package_version() -> str:
    try:
        return version("astro-rl")
    except PackageNotFoundError:
        return "unknown"


def portable_info(info: Mapping[str, Any], file: Path | None = None) -> dict[str, Any]:
    """`info` as strict JSON gives it back."""
    try:
        text = json.dumps(dict(info), allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise DataError(
            "The dataset's info cannot be written as JSON.",
            file=file,
            field="info",
            found=str(error),
            expected="numbers that are finite, strings, lists and dictionaries",
        ) from error
    return json.loads(text)


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"{type(value).__name__} in info")


def make_manifest(
    columns: Mapping[str, np.ndarray], sizes: Mapping[str, int], digest: str, info: Mapping[str, Any]
) -> dict[str, Any]:
    """`sizes` are those of the files, header included: a cut file is found without reading it."""
    rows, trajectories = len(columns["observations"]), len(columns["offsets"]) - 1
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"astro-rl {package_version()}",
        "trajectories": trajectories,
        "rows": rows,
        "transitions": rows - trajectories,
        "digest": digest,
        "columns": {
            name: {"dtype": native(column.dtype).str, "shape": list(column.shape), "bytes": sizes[name]}
            for name, column in columns.items()
        },
        "info": portable_info(info),
    }


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the store at `path`, or why that is not a store."""
    if not path.exists():
        raise DataError("There is no such store.", file=path)
    if not path.is_dir():
        raise DataError(
            "A store is a folder, and this is a file.", file=path, fix="load() tells formats apart by content"
        )
    file = path / MANIFEST
    if not file.is_file():
        raise DataError("The folder is not a store.", file=path, expected=f"{MANIFEST} and one .npy a column")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f'no "format": "{FORMAT}"')
        found = manifest["format_version"]
        if isinstance(found, int) and found > FORMAT_VERSION:
            raise DataError(
                "The store was written by a newer version.",
                file=path,
                found=f"format version {found}, by {manifest.get('written_by')}",
                expected=f"format version {FORMAT_VERSION} or older",
                fix="pip install --upgrade astro-rl",
            )
        columns = manifest["columns"]
        for name in ("observations", "actions", "terminated", "truncated", "offsets"):
            if name not in columns:
                raise ValueError(f"no column {name!r}")
        for column in columns.values():
            sizes = [np.dtype(column["dtype"]).itemsize, *column["shape"], column["bytes"]]
            if not all(isinstance(size, int) and size >= 0 for size in sizes):
                raise ValueError(f"sizes {sizes}")
        if not isinstance(manifest["digest"], str) or not isinstance(manifest["info"], dict):
            raise ValueError("the digest or the info has another type")
    except (ValueError, TypeError, KeyError, AttributeError, UnicodeDecodeError) as error:
        raise DataError(
            "The store's manifest is damaged, or belongs to something else.",
            file=file,
            found=f"{type(error).__name__}: {error}",
            fix="write the store again from its source",
        ) from error
    return manifest
