"""A run's folder: what was asked for, what it ran on, what was measured, and where to continue.

RUN/
  config.json          the resolved configuration; a folder with another one is refused
  environment.json     versions, processor and devices at the start
  notes.jsonl          what happened on the way that a reader should know
  records/NAME.jsonl   measurements, a line each, as they are made; NAME.parquet beside it at the end
  checkpoints/STEP/    the last two training states
  results.json         there once the run has finished
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astro_rl.data.atomic import is_disk_full
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.files import jsonable, read_json, write_json
from astro_rl.run.fingerprint import differences, fingerprint, flatten
from astro_rl.run.lock import FolderLock
from astro_rl.run.records import RecordFile

if TYPE_CHECKING:
    from astro_rl.run.checkpoints import Checkpoints
    from astro_rl.run.trackers import TrackerGroup

CONFIG, ENVIRONMENT, NOTES, LOCK = "config.json", "environment.json", "notes.jsonl", ".lock"
BEFORE_CONFIG = {ENVIRONMENT, NOTES, LOCK, f".{ENVIRONMENT}.tmp", f".{CONFIG}.tmp"}
"""What a run killed in its first moments may leave; anything else in a folder without a configuration is not
ours.
"""

RESERVED_RESULTS = {"config", "environment", "policy"}
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class RunFolder:
    """One run. Reading needs nothing; writing needs `open_or_create`, which locks the folder and is a context
    manager.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.resumed = False
        """Whether the folder held this run already when it was opened."""
        self._lock = FolderLock(self.path / LOCK)
        self._record_files: dict[str, RecordFile] = {}

    def open_or_create(self, config: Mapping[str, Any], *, may_change: Collection[str] = ()) -> RunFolder:
        """Begin the run described by `config` here, or continue it.

        `may_change` names settings (`a.b`) that a continued run may bring with another value; the new value
        is recorded.
        """
        wanted = jsonable(config)
        self._make()
        self._check_empty()  # before the lock, which would leave its file in a folder that is not ours
        self._lock.acquire()
        try:
            if (self.path / CONFIG).exists():
                self._check_same(wanted, may_change)
                self.resumed = True
                if self.config != wanted:
                    write_json(self.path / CONFIG, wanted)
                for change in differences(self.environment, jsonable(fingerprint())):
                    self.note(f"continued in another environment: {change}")
            else:
                self._check_empty()
                write_json(self.path / ENVIRONMENT, fingerprint())
                write_json(self.path / CONFIG, wanted)
        except BaseException as error:
            self.close()
            self._tell_full_disk(error)
            raise
        return self

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        finally:
            self._tell_full_disk(error)

    def close(self) -> None:
        for record_file in self._record_files.values():
            record_file.close()
        self._lock.release()

    @property
    def config(self) -> dict[str, Any]:
        return read_json(self.path / CONFIG)

    @property
    def environment(self) -> dict[str, Any]:
        return read_json(self.path / ENVIRONMENT)

    @property
    def records(self) -> RecordFile:
        """The training records, `records/train.jsonl`."""
        return self.record_file("train")

    @cached_property
    def checkpoints(self) -> Checkpoints:
        from astro_rl.run.checkpoints import Checkpoints

        return Checkpoints(self.path / "checkpoints", note=self.note, before_saving=self.sync)

    def record_file(self, name: str) -> RecordFile:
        if NAME.fullmatch(name) is None:
            raise ConfigError(
                "Not a name for records.", found=name, expected="small letters, digits, - and _"
            )
        if name not in self._record_files:
            folder = self.path / "records"
            if self._lock.held:
                folder.mkdir(exist_ok=True)
            self._record_files[name] = RecordFile(folder / f"{name}.jsonl")
        return self._record_files[name]

    def rewind(self, step: int) -> None:
        """Cut all records back to `step`, the one that training continues from."""
        self._require_lock()
        for path in sorted((self.path / "records").glob("*.jsonl")):
            self.record_file(path.stem).truncate_after(step)

    def sync(self) -> None:
        for record_file in self._record_files.values():
            record_file.sync()

    def finish_records(self) -> None:
        """Write each record's Parquet copy."""
        self._require_lock()
        for path in sorted((self.path / "records").glob("*.jsonl")):
            self.record_file(path.stem).write_parquet()

    def write_result(self, name: str, result: Any) -> None:
        """`NAME.json`, whole or not at all."""
        self._require_lock()
        if NAME.fullmatch(name) is None or name in RESERVED_RESULTS:
            raise ConfigError(
                "Not a name for a result.", found=name, expected=f"a name other than {RESERVED_RESULTS}"
            )
        write_json(self.path / f"{name}.json", result)

    def read_result(self, name: str) -> Any:
        """What `write_result` wrote, or None if the run has not come that far."""
        path = self.path / f"{name}.json"
        return read_json(path) if path.exists() else None

    def note(self, text: str) -> None:
        """Something that a reader of the results should know. Said once, however often it happens."""
        self._require_lock()
        if text in self.notes():
            return
        line = json.dumps({"note": text}, ensure_ascii=False).encode() + b"\n"
        path = self.path / NOTES
        torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
        with path.open("ab") as file:
            file.write(b"\n" + line if torn else line)

    def notes(self) -> list[str]:
        path = self.path / NOTES
        if not path.exists():
            return []
        found = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                found.append(str(json.loads(line)["note"]))
            except (ValueError, KeyError, TypeError):
                continue  # cut in half by a kill; notes are for people, and nothing is computed from them
        return found

    @contextmanager
    def tracking(
        self, names: Sequence[str], config: Mapping[str, Any] | None = None
    ) -> Iterator[TrackerGroup]:
        """The trackers of those names, started here and finished in any case."""
        from astro_rl.run.trackers import TrackerGroup

        self._require_lock()
        group = TrackerGroup(names, note=self.note)
        group.start(jsonable(self.config if config is None else config), self.path)
        try:
            yield group
        finally:
            group.close()

    def _tell_full_disk(self, error: BaseException | None) -> None:
        """Whatever was being written when the disk was full: the run is intact and can go on."""
        fault = error.__cause__ if isinstance(error, DataError) else error
        if isinstance(fault, OSError) and is_disk_full(fault):
            raise DataError(
                "The disk is full.",
                file=self.path,
                found=fault.strerror,
                fix="free some room; the same command continues, and what was complete is kept",
            ) from error

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(
                "A run needs a folder, and a file is in its way.",
                file=error.filename,
                fix="choose another place",
            ) from error
        except OSError as error:
            raise ConfigError(
                "Cannot make the run's folder.", file=self.path, found=error.strerror
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise ConfigError(
                "Cannot write into the run's folder.", file=self.path, fix="choose another place"
            )

    def _check_empty(self) -> None:
        strangers = sorted(entry.name for entry in self.path.iterdir() if entry.name not in BEFORE_CONFIG)
        if strangers and not (self.path / CONFIG).exists():
            raise ConfigError(
                "This folder is not empty and holds no run.",
                file=self.path,
                found=", ".join(strangers[:5]) + (" and more" if len(strangers) > 5 else ""),
                fix="choose an empty or a new folder",
            )

    def _check_same(self, wanted: dict[str, Any], may_change: Collection[str]) -> None:
        then, now = flatten(self.config), flatten(wanted)
        differing = [
            key
            for key in dict.fromkeys([*then, *now])
            if key not in may_change and (key not in then or key not in now or not _same(then[key], now[key]))
        ]
        if differing:
            lines = [
                f"{key}: {then.get(key, '(not set)')!r} there, {now.get(key, '(not set)')!r} asked for"
                for key in differing
            ]
            raise ConfigError(
                "This folder holds a run with other settings.",
                file=self.path,
                field=", ".join(differing),
                found="; ".join(lines),
                fix="choose another folder, or ask for the same settings to continue that run",
            )

    def _require_lock(self) -> None:
        if not self._lock.held:
            raise ConfigError(
                "This run folder was opened for reading.", file=self.path, fix="use open_or_create"
            )


def _same(one: Any, other: Any) -> bool:
    """Equal, and not because True is 1."""
    return json.dumps(one) == json.dumps(other) or (
        one == other and not isinstance(one, bool) and not isinstance(other, bool)
    )
