"""One writer a run folder. The kernel drops the lock with its process, so that nothing is left behind by a
kill.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from astro_rl.errors import ConfigError


class FolderLock:
    """An `flock` on a small file that also says whose it is. The file stays: removing it would let two
    writers in.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise ConfigError(
                "Another process is writing this run.",
                file=self._path.parent,
                found=f"process {owner}" if owner else None,
                fix="wait for it, stop it, or choose another folder",
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise ConfigError(
                "This file system cannot lock files, and two writers would spoil a run.",
                file=self._path.parent,
                found=error.strerror,
                fix="choose a folder on a local disk",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
