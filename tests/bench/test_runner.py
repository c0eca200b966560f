"""The runner: one cell's failure stops no other, nothing is done twice, and all of it is written down."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from astro_rl.bench import work
from astro_rl.bench.cells import AugmentCell, Cell, FitCell, RivalCell, TrainCell, key_of
from astro_rl.bench.matrix import Matrix, matrix_for
from astro_rl.bench.presets import Choice
from astro_rl.bench.records import read
from astro_rl.bench.runner import pending, run_matrix, status_of
from astro_rl.bench.tables import tables_of
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.lock import FolderLock
from tests.bench.scored import line


class Works:
    """`bench.work.do`, but for the work: which cells were done, and what they say."""

    def __init__(self) -> None:
        self.done: list[Cell] = []
        self.fails: dict[type, Exception] = {}

    def __call__(self, cell: Cell, at: Any) -> dict[str, Any]:
        self.done.append(cell)
        if type(cell) in self.fails:
            raise self.fails[type(cell)]
        if not isinstance(cell, TrainCell):
            return {"made": cell.kind}
        successes = [[cell.arm == "astro"]] * len(cell.seeds)
        return line(cell.arm, successes, learner=cell.learner, record="scores")


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> Iterator[Works]:
    found = Works()
    monkeypatch.setattr(work, "do", found)
    yield found


@pytest.fixture
def matrix() -> Matrix:
    arms = ("original", "astro", "synther")
    return matrix_for("table1", "tiny", Choice(arms=arms, learners=("iql",)))


def test_cells_are_done_once_and_in_order(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    said: list[str] = []
    outcome = run_matrix(matrix, tmp_path, say=said.append)
    assert works.done == matrix.cells and outcome.count("done") == len(matrix.cells) == 8
    assert said[0].startswith("[1/8] data-pointmaze")
    run_matrix(matrix, tmp_path)
    assert len(works.done) == 8
    (record,) = (tmp_path / "cells").glob("train-*original*/record.json")
    assert json.loads(record.read_text())["result"]["arm"] == "original"
    (cell,) = (tmp_path / "cells").glob("fit-*/cell.json")
    assert json.loads(cell.read_text())["data"]["dataset"] == "pointmaze-medium-stitch-v0"


def test_a_failed_cell_stops_only_what_needs_it(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    works.fails[FitCell] = DataError("No chain passes the filter.", fix="raise the threshold")
    outcome = run_matrix(matrix, tmp_path)
    by_kind = {key.split("-")[0]: [] for key in outcome.status}
    for key, status in outcome.status.items():
        by_kind[key.split("-")[0]].append(status)
    assert by_kind == {
        "data": ["done"],
        "train": ["done", "blocked", "done"],
        "fit": ["failed"],
        "augment": ["blocked", "done"],
        "rival": ["done"],
    }
    records = read([tmp_path])
    assert {one.arm for one in records.scores} == {"original", "synther"}
    (failed,) = [table for table in tables_of(records) if table.name == "failed"]
    assert failed.rows[0][1] == "No chain passes the filter."

    works.fails.clear()
    works.done.clear()
    again = run_matrix(matrix, tmp_path)
    assert again.count("done") == 8 and not again.errors
    assert [type(cell) for cell in works.done] == [FitCell, AugmentCell, TrainCell]
    assert not list((tmp_path / "cells").glob("*/failed.json"))


def test_what_is_no_users_mistake_keeps_its_traceback(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    works.fails[RivalCell] = ZeroDivisionError("somewhere inside")
    outcome = run_matrix(matrix, tmp_path)
    assert outcome.count("failed") == 1 and outcome.count("blocked") == 2
    (failed,) = (tmp_path / "cells").glob("*/failed.json")
    told = json.loads(failed.read_text())
    assert told["error"] == "ZeroDivisionError: somewhere inside" and "Traceback" in told["traceback"]


def test_an_interruption_is_no_failure(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    works.fails[AugmentCell] = KeyboardInterrupt()  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyboardInterrupt):
        run_matrix(matrix, tmp_path)
    works.fails.clear()
    first = list(works.done)
    assert run_matrix(matrix, tmp_path).count("done") == 8
    assert len(works.done) == 9 and works.done[len(first)] == first[-1], "it goes on where it stopped"


def test_stages_behind_finished_results_may_be_deleted(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    run_matrix(matrix, tmp_path)
    for cell in matrix.cells:
        if not isinstance(cell, TrainCell):
            (tmp_path / "cells" / key_of(cell) / "record.json").unlink()
    assert pending(matrix, tmp_path) == []
    fit = next(cell for cell in matrix.cells if isinstance(cell, FitCell))
    assert status_of(fit, tmp_path) == "to do"


def test_two_runners_do_not_share_a_folder(works: Works, matrix: Matrix, tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / ".lock")
    lock.acquire()
    try:
        with pytest.raises(ConfigError, match="Another process"):
            run_matrix(matrix, tmp_path)
    finally:
        lock.release()
    assert not works.done
