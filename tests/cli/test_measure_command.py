"""`astro-rl measure` on data of no benchmark, and its mistakes."""

import json
from pathlib import Path

import pytest

from astro_rl import save
from astro_rl.cli.main import main
from tests.fitted import walks

QUICK = ["--skip", "ensemble", "--rows", "50"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("measured")
    for seed, name in enumerate(("real", "augmented", "held-out")):
        save(walks(seed), place / f"{name}.npz")
    return place


def test_the_table_is_printed_and_the_record_saved_and_both_say_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    given = ["measure", "augmented.npz", "--real", "real.npz", "--held-out", "held-out.npz", "--xy", "0", "1"]
    assert main([*given, *QUICK, "--out", "measured.json"]) == 0
    table = capsys.readouterr().out
    record = json.loads((folder / "measured.json").read_text())
    assert record["files"] == {"augmented": "augmented.npz", "real": "real.npz", "held_out": "held-out.npz"}
    figures = {figure["key"]: figure for figure in record["figures"]}
    assert f"{100 * figures['novelty/new_states']['augmented']:.2f} %" in table
    assert all(figure["text"] in table for figure in record["figures"])
    assert all(each["what"] in table for each in record["left_out"])
    assert main([*given, *QUICK, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == record


def test_nothing_but_the_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", str(folder / "augmented.npz")]) == 0
    shown = capsys.readouterr().out
    assert "1,600" in shown and "--real" in shown


MISTAKES = {
    "no such data": (["nowhere.npz"], "nowhere.npz"),
    "no such real data": (["augmented.npz", "--real", "nowhere.npz"], "nowhere.npz"),
    "no such task": (["augmented.npz", "--task", "pointmaze-medum"], "pointmaze-medium"),
    "another task": (["augmented.npz", "--task", "antmaze-medium-stitch"], "29 numbers"),
    "no plane": (["augmented.npz", "--xy", "0", "7"], "two different numbers from 0 to 1"),
    "no fit": (["augmented.npz", "--real", "real.npz", "--fit", "."], "no fitted models"),
    "a fit without data": (["augmented.npz", "--held-out", "held-out.npz"], "--real"),
    "no run": (["augmented.npz", "--runs", "before=nowhere", "after=nowhere"], "nowhere"),
    "one run": (["augmented.npz", "--runs", "."], "before=FOLDER after=FOLDER"),
    "no rows": (["augmented.npz", "--rows", "0"], "rows"),
    "no folder": (["augmented.npz", "--out", "nowhere/measured.json"], "no such folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_message_and_status_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    arguments, named = MISTAKES[mistake]
    monkeypatch.chdir(folder)
    assert main(["measure", *arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("error: ") and "Traceback" not in shown.err
    assert named in shown.err
