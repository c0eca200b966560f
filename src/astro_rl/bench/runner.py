"""Works through a matrix in one folder: what is finished costs nothing, what fails is written down and passed over.

OUT/
  cells/KEY/cell.json       what the cell is
  cells/KEY/work/           what it makes: a dataset, a fit, augmented data, a training run
  cells/KEY/record.json     its result; there once it has finished
  cells/KEY/failed.json     why its last attempt failed
  records.jsonl             the results that stand in tables, a line each: everything tables are made from
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.bench.cells import LEAVES, Cell, described, in_order, key_of
from astro_rl.bench.matrix import Matrix
from astro_rl.bench.records import RECORDS
from astro_rl.errors import AstroError
from astro_rl.run.files import read_json, write_bytes, write_json
from astro_rl.run.lock import FolderLock

Status = Literal["done", "failed", "blocked", "to do"]
DONE, FAILED, WHAT = "record.json", "failed.json", "cell.json"


@dataclass(frozen=True)
class Outcome:
    """What became of every cell of a matrix."""

    folder: Path
    status: Mapping[str, Status]
    errors: Mapping[str, str] = field(default_factory=dict)

    def count(self, status: Status) -> int:
        return sum(one == status for one in self.status.values())


def status_of(cell: Cell, out: Path) -> Status:
    """As it stands on disk. A cell whose need has failed may be tried again: it is to do."""
    folder = out / "cells" / key_of(cell)
    if (folder / DONE).exists():
        return "done"
    return "failed" if (folder / FAILED).exists() else "to do"


def pending(matrix: Matrix, out: Path) -> list[Cell]:
    """What is left: leaves that are not done, and of what they need what is not done. Stages behind finished leaves
    are not asked for, so that their files may be deleted."""
    left = [cell for cell in matrix.leaves if status_of(cell, out) != "done"]
    return [cell for cell in in_order(left) if status_of(cell, out) != "done"]


def run_matrix(
    matrix: Matrix,
    out: str | Path,
    *,
    bar: Bar = no_bar,
    say: Callable[[str], None] = lambda text: None,
    workers: int | None = None,
) -> Outcome:
    """Everything that is left. Killed at any moment, the same call goes on; failed cells are tried again by it."""
    from astro_rl.bench.work import Workplace, do

    folder = Path(out)
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder / ".lock")
    lock.acquire()
    try:
        at = Workplace(folder / "cells", bar, workers)
        todo, errors = pending(matrix, folder), dict[str, str]()
        unmet: set[str] = set()
        for number, cell in enumerate(todo, start=1):
            key = key_of(cell)
            missing = [key_of(need) for need in cell.needs if key_of(need) in unmet]
            if missing:
                unmet.add(key)
                say(f"[{number}/{len(todo)}] {key}: left out, it needs {missing[0]}")
                continue
            say(f"[{number}/{len(todo)}] {key}")
            error = _attempt(cell, at.folder(cell), lambda cell=cell: do(cell, at))
            if error is not None:
                unmet.add(key)
                errors[key] = error
                say(f"failed: {error.splitlines()[0]}")
            elif isinstance(cell, LEAVES):
                collect(folder)
        collect(folder)
    finally:
        lock.release()
    status: dict[str, Status] = {}
    for cell in matrix.cells:
        key = key_of(cell)
        blocked = key in unmet and key not in errors
        status[key] = "blocked" if blocked else status_of(cell, folder)
    return Outcome(folder, status, errors)


def _attempt(cell: Cell, folder: Path, work: Callable[[], dict[str, Any]]) -> str | None:
    """The error's text, or None. Whatever one cell runs into must not stop a night's work on the others; what is no
    mistake of the user's keeps its traceback, in the file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / WHAT, described(cell))
    started = time.perf_counter()
    try:
        result = work()
        seconds = round(time.perf_counter() - started, 2)
        write_json(folder / DONE, {"cell": key_of(cell), "seconds": seconds, "result": result})
    except Exception as error:
        expected = isinstance(error, AstroError)
        text = str(error) if expected else f"{type(error).__name__}: {error}"
        trace = None if expected else traceback.format_exc()
        write_json(folder / FAILED, {"cell": key_of(cell), "error": text, "traceback": trace})
        return text
    (folder / FAILED).unlink(missing_ok=True)
    return None


def collect(folder: Path) -> Path:
    """All finished leaves' results as one file, in the order of their keys: it appears whole."""
    lines = []
    for path in sorted((folder / "cells").glob(f"*/{DONE}")):
        saved = read_json(path)
        if "record" in saved["result"]:
            lines.append(json.dumps({**saved["result"], "cell": saved["cell"], "seconds": saved["seconds"]}))
    path = folder / RECORDS
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
    return path
