"""Small files that appear whole or not at all, and JSON that means what it says."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.errors import ConfigError, DataError


def write_bytes(path: Path, content: bytes) -> None:
    """Write beside the place, synchronise, rename: a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise DataError(
            "Cannot write this file.",
            file=path,
            found=error.strerror or error,
            fix="free some space, or choose another folder",
        ) from error


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, (json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Strict: what is not JSON, NaN included, is an error that names the file."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse)
    except FileNotFoundError as error:
        raise DataError("There is no such file.", file=path) from error
    except OSError as error:
        raise DataError("Cannot read this file.", file=path, found=error.strerror) from error
    except ValueError as error:
        raise DataError("Not valid JSON.", file=path, found=error) from error


def jsonable(value: Any, field: str = "") -> Any:
    """Plain JSON values: dataclasses and mappings as objects, tuples and arrays as lists, paths as text.

    What JSON cannot hold is refused, by name, rather than written as something else.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ConfigError("Only text can name a field.", field=field or None, found=repr(odd[0]))
        return {key: jsonable(item, f"{field}.{key}" if field else key) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [jsonable(item, f"{field}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, float) and not np.isfinite(value):
        raise ConfigError("A number that is not finite cannot be recorded.", field=field or None, found=value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(
        "This value cannot be recorded.", field=field or None, found=repr(value), expected="plain data"
    )


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
