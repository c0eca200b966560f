"""`astro-rl fit --method synther` and `augment`, end to end at tiny sizes, through `main`."""

import json
from pathlib import Path

import pytest

from astro_rl import load, save
from astro_rl.cli.main import main
from tests.augmenters.tiny_synther import SYNTHER_SIZES, fit_synther
from tests.fitted import walks

FIT = [
    "--method",
    "synther",
    "--preset",
    "tiny",
    "--set",
    *(f"{name}={value}" for name, value in SYNTHER_SIZES.items()),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "walks.npz"
    save(walks(), path)
    return path


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("synther") / "fit"
    assert main(["fit", str(data), "--out", str(place), *FIT]) == 0
    return place


def test_fit_augment_and_train(
    data: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line and Python end in the same weights; learners take what is made."""
    assert main(["fit", str(data), "--out", str(folder), *FIT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "folder": str(folder),
        "method": "synther",
        "models_digest": fit_synther(walks()).digest(),
    }
    out = tmp_path / "augmented.npz"
    augment = ["augment", str(folder), str(data), "--transitions", "100", "--out", str(out)]
    assert main([*augment, "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert (account["transitions"], account["trajectories"]) == (100, 100)
    before = out.read_bytes()
    assert main(augment) == 0
    shown = capsys.readouterr().out
    assert "completions" in shown and "chains" not in shown and out.read_bytes() == before
    assert main([*augment, "--overwrite", "--set", "sampling.churn=0"]) == 0
    assert load(out).info["lineage"]["settings"]["sampling"]["churn"] == 0.0
    learn = ["--learner", "iql", "--preset", "tiny", "--steps", "10", "--log-every", "10"]
    run = ["train", str(data), "--augmented", str(out), "--out", str(tmp_path / "run"), *learn]
    assert main(run) == 0


MISTAKES = {
    "no such method": (["fit", "DATA", "--out", "new", "--method", "sinther"], "did you mean 'synther'"),
    "no such setting": (
        ["fit", "DATA", "--out", "new", "--method", "synther", "--set", "denoiser.stepz=3"],
        "did you mean 'denoiser.steps'",
    ),
    "a setting of ASTRO's": (
        ["fit", "DATA", "--out", "new", "--method", "synther", "--set", "dynamics.steps=3"],
        "dynamics",
    ),
    "a shape": (["fit", "DATA", "--out", "new", *FIT, "--shape", "2", "6", "6"], "Only ASTRO makes chains"),
    "another task": (["fit", "DATA", "--out", "new", *FIT, "--task", "antmaze-medium-stitch"], "29 numbers"),
    "other data": (["augment", "FIT", "OTHER", "--transitions", "9", "--out", "x.npz"], "another dataset"),
    "no number": (["augment", "FIT", "DATA", "--transitions", "0", "--out", "x.npz"], "at least 1"),
    "no format": (["augment", "FIT", "DATA", "--transitions", "9", "--out", "x.foo"], "suffix"),
    "rounds": (
        ["augment", "FIT", "DATA", "--transitions", "9", "--out", "x.npz", "--rounds", "2"],
        "Only ASTRO",
    ),
    "a setting of the fit": (
        ["augment", "FIT", "DATA", "--transitions", "9", "--out", "x.npz", "--set", "denoiser.steps=3"],
        "decided by the fit",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_message_and_status_1(
    data: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mistake: str,
) -> None:
    arguments, named = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    save(walks(seed=9), tmp_path / "other.npz")
    places = {"DATA": str(data), "FIT": str(folder), "OTHER": "other.npz"}
    assert main([places.get(word, word) for word in arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err
    assert named in shown.err[shown.err.index("error: ") :]
    assert not (tmp_path / "x.npz").exists() and not (tmp_path / "new" / "models").exists()
