"""The folder in which a dataset grows: `.NAME.partial`, beside the files it will become."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from astro_rl.collect.npz_writer import replace_durably
from astro_rl.collect.request import Request
from astro_rl.errors import AstroError, ConfigError, DataError

_MANIFEST, _PLACING, _LOCK = "manifest.json", "placing.json", "lock"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class PartialFolder:
    """Shards, the request they answer, and what is left to do once all are there.

    Finishing writes every final file in here first, then notes which files go where (`placing.json`), then
    moves them. A kill before the note starts the writing again; a kill after it is completed by moving the
    rest.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.out, self.name = out, name
        self.path = out / f".{name}.partial"
        self.shards = self.path / "shards"
        self.report = out / f"{name}.made.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while one process works here, let go by the system however that process ends."""
        with explained(self.out):
            if self.out.exists() and not self.out.is_dir():
                raise DataError("Datasets are made in a folder, and this is a file.", file=self.out)
            self.shards.mkdir(parents=True, exist_ok=True)
            handle = (self.path / _LOCK).open("w")
        with handle:
            try:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ModuleNotFoundError:
                pass  # No such locks outside POSIX; two runs at once would then do the same work twice.
            except OSError as error:
                raise ConfigError(
                    f"Another process is making {self.name} in this folder.",
                    file=self.out,
                    fix="wait for it, or make this one in another folder",
                ) from error
            yield

    def is_begun(self) -> bool:
        return (self.path / _MANIFEST).exists()

    def begin(self, request: Request) -> None:
        """Ties the folder to the request, or refuses when it holds episodes of another one."""
        wanted = request.to_json()
        if not self.is_begun():
            # Shards without a manifest are what was left by a kill while an earlier folder was being removed.
            for leftover in self.shards.iterdir():
                leftover.unlink()
            _write_json(self.path / _MANIFEST, wanted)
            return
        found = _read_json(self.path / _MANIFEST)
        if found != wanted:
            field, there, asked = _first_difference(found, wanted)
            raise ConfigError(
                f"{self.name} was begun in this folder with other arguments.",
                file=self.path,
                field=field,
                found=there,
                expected=asked,
                fix="give the first command again to finish it, or delete that folder to start over",
            )

    def read_report(self) -> dict[str, Any] | None:
        """What an earlier request left beside its files; None where there is none that can be read."""
        try:
            content = json.loads(self.report.read_text())
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def is_placing(self) -> bool:
        return (self.path / _PLACING).exists()

    def place(self, names: list[str], report: dict[str, Any]) -> None:
        """Moves finished files and folders to the output folder, with the report beside them."""
        _write_json(self.path / self.report.name, report)
        _write_json(self.path / _PLACING, {"names": [*names, self.report.name]})
        self.finish_placing()

    def finish_placing(self) -> None:
        for name in _read_json(self.path / _PLACING)["names"]:
            if (self.path / name).exists():
                _replace(self.path / name, self.out / name)
        shutil.rmtree(self.path, ignore_errors=True)

    def discard_if_empty(self) -> None:
        """Removes what a refused request would leave behind."""
        with suppress(OSError):
            if not self.is_begun():
                shutil.rmtree(self.path)


def _replace(source: Path, destination: Path) -> None:
    if destination.is_dir():  # A store, which a rename cannot replace.
        shutil.rmtree(destination)
    replace_durably(source, destination)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise DataError(
            "A file of a half-made dataset cannot be read.", file=path, fix="delete its folder to start over"
        ) from error
    return content


def _first_difference(found: Any, wanted: Any, field: str = "") -> tuple[str, Any, Any]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            if found.get(key) != wanted.get(key):
                return _first_difference(found.get(key), wanted.get(key), f"{field}.{key}".lstrip("."))
    return field, found, wanted


@contextmanager
def explained(path: Path, bytes_needed: int | None = None) -> Iterator[None]:
    """Turns the operating system's refusals into what a user can do about them."""
    try:
        yield
    except OSError as error:
        raise explain(error, path, bytes_needed) from error


def explain(error: OSError, path: Path, bytes_needed: int | None = None) -> AstroError:
    found = f"{error.strerror or error} ({error.filename or path})"
    if error.errno in _NO_ROOM:
        needed = "" if bytes_needed is None else f", about {bytes_needed / 1e6:.0f} MB in all"
        return DataError(
            "The disk is full.",
            file=path,
            found=found,
            fix=f"free some space{needed}, then give the same command: finished episodes are kept",
        )
    if error.errno in _NOT_ALLOWED:
        return DataError("The folder cannot be written.", file=path, found=found, fix="choose another folder")
    return DataError("The folder cannot be used.", file=path, found=found, fix="choose another folder")
