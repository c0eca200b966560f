"""Every table's command at `tiny`, in one folder: all kinds of cells are worked through, and tables come out of them.

What the tables share (data, fit, augmented data) is done once. The planner here has no feedback and nothing is polished,
which is most of what takes time to compile; both have tests of their own.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from astro_rl.cli.main import main

TASK = "pointmaze-medium-stitch-singletask-task1-v0"
QUICK = (
    "astro.planner.correction=false",
    "astro.planner.regularisation=0",
    "astro.planner.feedback.kind=none",
    "astro.generate.sampling.refine=0",
    "astro.generate.sampling.polish=0",
    "astro.temporal.steps=100",
)

Bench = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture
def bench(out: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Runs a table's command; its status and what it printed."""

    def run(table: str, *more: str) -> tuple[int, dict[str, Any]]:
        common = ["--preset", "tiny", "--out", str(out), "--workers", "0", "--set", *QUICK, "--json"]
        status = main(["bench", table, *common, *more])
        return status, json.loads(capsys.readouterr().out)

    return run


def finished(told: dict[str, Any]) -> int:
    assert set(told["cells"].values()) == {"done"}, told["tables"].get("failed")
    return len(told["cells"])


def column(table: dict[str, Any], name: str) -> list[Any]:
    return [row[table["header"].index(name)] for row in table["rows"]]


def test_table1_trains_every_learner_on_every_arm(bench: Bench, out: Path) -> None:
    status, told = bench("table1", "--arms", "original", "astro", "synther", "--learners", "iql")
    assert status == 0 and finished(told) == 8
    (row,) = told["tables"]["scores"]["rows"]
    assert row[:2] == ["IQL", TASK] and all("±" in cell for cell in row[2:])
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert {record["arm"] for record in records} == {"original", "astro", "synther"}
    assert all(record["updates"] == 20 and record["seeds"] == [0, 1] for record in records)
    assert all(len(seed) == 1 for record in records for seed in record["episodes"]["returns"])
    sizes = {record["arm"]: record["augmented"] for record in records}
    assert sizes["original"] is None and sizes["astro"] >= 240 <= sizes["synther"]


def test_what_is_finished_costs_nothing_and_more_seeds_add_cells(
    bench: Bench, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing was left to do")

    monkeypatch.setattr("astro_rl.bench.work.do", refuse)
    status, _ = bench("table1", "--arms", "original", "astro", "synther", "--learners", "iql")
    assert status == 0
    status, told = bench("table1", "--arms", "original", "--learners", "iql", "--seeds", "4")
    assert status == 1 and sorted(told["cells"].values()) == ["done", "done", "failed"]
    assert "nothing was left to do" in told["tables"]["failed"]["rows"][0][1]


def test_ablation_shares_all_but_what_differs(bench: Bench) -> None:
    status, told = bench("ablation", "--arms", "original", "astro", "rand", "--learners", "bc")
    assert status == 0 and finished(told) == 8
    assert any(key.startswith("variant-pointmaze-medium-stitch-v0-rand") for key in told["cells"])
    assert "BC" in column(told["tables"]["statistics"], "learner")


def test_geometry(bench: Bench) -> None:
    status, told = bench("geometry", "--arms", "original", "astro")
    assert status == 0
    table = told["tables"]["geometry"]
    assert column(table, "rule") == ["astro", "original"]
    assert column(table, "the paper's |Δθ|") == ["1.253 ± 0.451", "2.089 ± 1.455"]
    assert column(table, "never joined %")[1] == "0.0", "a recorded trajectory joins what it visits"


def test_completion(bench: Bench) -> None:
    status, told = bench("completion", "--arms", "astro")
    assert status == 0
    (row,) = told["tables"]["completion"]["rows"]
    assert all(cell.endswith(")") and float(cell.split()[0]) >= 0 for cell in row[2:6])


def test_selection_trains_and_times(bench: Bench) -> None:
    status, told = bench("selection", "--arms", "original", "threshold=2", "pieces=3", "--learners", "bc")
    assert status == 0
    for name, value in (("threshold", "2"), ("pieces", "3")):
        table = told["tables"][f"sweep-{name}"]
        place = column(table, name).index(value)
        assert "±" in column(table, "mean ± std")[place]
        assert float(column(table, "s for 10 chains")[place]) > 0


def test_horizon_fits_the_diffusion_models_of_another_shape(bench: Bench, out: Path) -> None:
    status, told = bench("horizon", "--arms", "horizon=120")
    assert status == 0
    (row,) = told["tables"]["horizon"]["rows"]
    assert row[2:4] == ["120", "2 × (4 + 4)"] and float(row[4]) > 0 and row[-1] == "0.673"
    (folder,) = (out / "cells").glob("reshaped-*-horizon-*")
    stages = {path.stem for path in (folder / "work" / "records").glob("*.jsonl")}
    assert stages >= {"dynamics", "planner"} and "temporal" not in stages, "ψ is the base's"


def test_amount(bench: Bench) -> None:
    status, told = bench("amount", "--arms", "original", "amount=0.3", "share=0.25", "--learners", "bc")
    assert status == 0
    assert "0.3" in column(told["tables"]["sweep-amount"], "amount")
    assert "0.25" in column(told["tables"]["sweep-share"], "share")


def test_tables_are_rebuilt_from_records_alone(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in (out / "tables").iterdir()}
    assert {"scores.tex", "geometry.csv", "completion.md", "horizon.md", "tables.md"} <= set(before)
    alone = tmp_path / "records.jsonl"
    alone.write_bytes((out / "records.jsonl").read_bytes())
    assert main(["bench", "show", str(alone), "--out", str(tmp_path / "tables")]) == 0
    after = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    same = [name for name in after if not name.startswith(("failed", "tables"))]
    assert len(same) > 20 and all(after[name] == before[name] for name in same)
    assert main(["bench", "table1", "--out", str(out), "--tables-only"]) == 0
    assert "Each arm by itself" in capsys.readouterr().out
