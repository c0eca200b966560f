"""Files and folders that appear whole or not at all, and a full disk told in words."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from astro_rl.errors import DataError


@contextmanager
def new_file(path: Path, *, overwrite: bool = False, needed_bytes: int | None = None) -> Iterator[Path]:
    """A temporary sibling to write to; it takes the name `path` when the block ends well, or is gone."""
    if path.is_dir():
        raise DataError(
            "A file was to be written where a folder is.", file=path, fix="give the name of a file"
        )
    _refuse_existing(path, overwrite)
    with _parents(path), _told(path, needed_bytes):
        partial = _sibling(path)
        try:
            yield partial
            synchronise(partial)
            _refuse_existing(path, overwrite)
            partial.replace(path)
            synchronise(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path, *, overwrite: bool = False, needed_bytes: int | None = None) -> Iterator[Path]:
    """The same for a folder. The caller says whether what stands at `path` may be overwritten."""
    if path.is_file():
        raise DataError("A folder was to be written where a file is.", file=path, fix="give another name")
    _refuse_existing(path, overwrite)
    with _parents(path), room_for(path, needed_bytes):
        partial = _sibling(path)
        partial.mkdir()
        try:
            yield partial
            for file in sorted(partial.iterdir()):
                synchronise(file)
            synchronise(partial)
            _refuse_existing(path, overwrite)
            _put_in_place(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, path: Path) -> None:
    """A folder cannot be renamed onto a full one: the old one steps aside first, and back if that fails."""
    aside = _sibling(path) if path.exists() else None
    if aside is not None:
        path.rename(aside)
    try:
        partial.rename(path)
    except BaseException:
        if aside is not None:
            aside.rename(path)
        raise
    synchronise(path.parent)
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)


def synchronise(path: Path) -> None:
    """Wait until the file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise DataError(
            "The destination exists.",
            file=path,
            fix="pass overwrite=True (--overwrite), or give another name",
        )


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Folders on the way are made, and taken back if nothing comes of it."""
    missing = []
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise DataError("A folder on the way is a file.", file=parent, fix="give another destination")
            break
        missing.append(parent)
    try:
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            try:
                parent.rmdir()
            except OSError:
                break
        raise


@contextmanager
def room_for(path: Path, needed_bytes: int | None) -> Iterator[None]:
    """So many bytes are going to be written at `path`: look before, and tell where they do not fit."""
    with _told(path, needed_bytes):
        if needed_bytes is not None and shutil.disk_usage(path.parent).free < needed_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield


@contextmanager
def _told(path: Path, needed_bytes: int | None) -> Iterator[None]:
    """Faults of the disk that is written to, as messages that say how much room is needed."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            free = shutil.disk_usage(next(p for p in path.parents if p.exists())).free
            raise DataError(
                "The disk is full; nothing was kept.",
                file=path,
                found=f"{readable_bytes(free)} free",
                expected=f"about {readable_bytes(needed_bytes)}" if needed_bytes is not None else None,
                fix="free some room, or write to another disk",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise DataError("The destination cannot be written to.", file=path, found=str(error)) from error
        raise


def is_disk_full(error: OSError) -> bool:
    """HDF5 tells it in the text of an error that may carry no number."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)


def readable_bytes(count: int) -> str:
    size, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
