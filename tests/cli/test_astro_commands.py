"""`astro-rl fit`, `augment` and `run`, end to end at tiny sizes, through `main`."""

import json
from pathlib import Path

import numpy as np
import pytest

from astro_rl import load, save
from astro_rl.cli.main import main
from tests.fitted import SHAPE, SIZES, Fitted, walks

SET = ["--set", *(f"{name}={value}".replace(" ", "") for name, value in SIZES.items())]
FIT = ["--preset", "tiny", "--shape", *map(str, SHAPE), *SET]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "walks.npz"
    save(walks(), path)
    return path


def test_fit_and_augment_as_json_and_the_same_command_again(
    fitted: Fitted, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line and Python end in the same bytes."""
    folder, out = tmp_path / "fit", tmp_path / "augmented.npz"
    told = []
    for _ in range(2):
        assert main(["fit", str(data), "--out", str(folder), *FIT, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert told[0]["models_digest"] == fitted.stitcher.models.digest()
    assert told[0]["shape"] == {"pieces": 2, "segment": 6, "mask": 6}

    augment = ["augment", str(folder), str(data), "--transitions", "100", "--out", str(out)]
    assert main([*augment, "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    made = load(out)
    assert (account["transitions"], account["trajectories"]) == (made.n_transitions, len(made))
    assert account["chains"] == made.info["lineage"]["chains"]
    before = out.read_bytes()
    assert main(augment) == 0
    shown = capsys.readouterr().out
    assert "proposed" in shown and f"{made.n_transitions} transitions in {out}" in shown
    assert out.read_bytes() == before
    assert main([*augment, "--seed", "1", "--overwrite"]) == 0
    assert out.read_bytes() != before
    assert main(["fit", str(data), "--out", str(folder), *FIT]) == 0
    assert "next: astro-rl augment" in capsys.readouterr().out


def test_augment_writes_the_format_that_is_named(
    fitted: Fitted, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "augmented.hdf5"
    command = ["augment", str(fitted.folder), str(data), "--transitions", "50", "--out", str(out)]
    assert main([*command, "--format", "d4rl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(out)
    assert load(out, format="d4rl").n_transitions >= 50


MISTAKES = {
    "no such data": (["fit", "nowhere.npz", "--out", "new"], "nowhere.npz"),
    "no such setting": (["fit", "DATA", "--out", "new", "--set", "dynamcs.steps=3"], "dynamics"),
    "no value": (["fit", "DATA", "--out", "new", "--set", "dynamics.steps"], "dynamics.steps"),
    "no such task": (["fit", "DATA", "--out", "new", "--task", "pointmaze-medum"], "pointmaze-medium"),
    "another task": (["fit", "DATA", "--out", "new", *FIT, "--task", "antmaze-medium-stitch"], "29 numbers"),
    "too short": (["fit", "DATA", "--out", "new", "--shape", "2", "120", "120"], "would fit"),
    "turned round": (["augment", "DATA", "FIT", "--transitions", "9", "--out", "x.npz"], "First the fit"),
    "no fit": (["augment", ".", "DATA", "--transitions", "9", "--out", "x.npz"], "no fitted models"),
    "no number": (["augment", "FIT", "DATA", "--transitions", "0", "--out", "x.npz"], "transitions"),
    "no format": (["augment", "FIT", "DATA", "--transitions", "9", "--out", "x.foo"], "suffix"),
    "other data": (["augment", "FIT", "OTHER", "--transitions", "9", "--out", "x.npz"], "another dataset"),
    "nothing passes": (
        ["augment", "FIT", "DATA", "--transitions", "9", "--out", "x.npz", "--set", "search.threshold=1e-9"],
        "raise the threshold",
    ),
    "run: no such task": (["run", "pointmaze-medum-stitch", "--out", "new"], "pointmaze-medium"),
    "run: a setting": (
        ["run", "pointmaze-medium-stitch", "--out", "new", "--set", "dynamics.stepz=1"],
        "steps",
    ),
    "run: other data": (["run", "antmaze-medium-stitch", "--out", "new", "--data", "DATA"], "29 numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_message_and_status_1(
    fitted: Fitted,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mistake: str,
) -> None:
    arguments, named = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    if "OTHER" in arguments:
        save(walks(seed=9), tmp_path / "other.npz")
    places = {"DATA": str(data), "FIT": str(fitted.folder), "OTHER": "other.npz"}
    assert main([places.get(word, word) for word in arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err
    message = shown.err[shown.err.index("error: ") :]
    assert named in message
    assert not (tmp_path / "x.npz").exists() and not (tmp_path / "new" / "models").exists()


def test_run_from_making_data_to_scores(
    fitted: Fitted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight recordings of 201 states with two numbers each: the shapes that are compiled already."""
    command = ["run", "pointmaze-medium-stitch-task1", "--out", str(tmp_path / "run"), "--episodes", "8"]
    sizes = ["--transitions", "200", "--steps", "20", "--seeds", "1", "--eval-episodes", "1"]
    learner = ["--learners", "bc", "--learner-preset", "tiny"]
    told = []
    for _ in range(2):
        assert main([*command, *FIT, *sizes, *learner, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert set(told[0]["scores"]["bc"]) == {"original", "astro"}
    assert told[0]["scores"] == told[1]["scores"]
    assert np.shape(told[0]["scores"]["bc"]["astro"]) == (1,)
    assert Path(told[0]["page"]).read_text().startswith("<!DOCTYPE html>")
