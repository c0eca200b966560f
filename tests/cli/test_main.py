"""The command line as a user meets it: through `main`, with its own exit codes and nothing but messages."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from astro_rl.cli.main import main
from astro_rl.cli.train import parse_settings
from astro_rl.errors import ConfigError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data")
    assert (
        main(
            [
                "data",
                "make",
                "pointmaze-medium-stitch-v0",
                "--episodes",
                "6",
                "--workers",
                "0",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    return out / "pointmaze-medium-stitch-v0.npz"


def test_inspect_as_json_is_json_and_counts_successes(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["data", "inspect", str(data), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trajectories"] == 6
    assert found["transitions"] == 1200
    assert len(found["successes"]) == 5


def test_inspect_as_a_table_into_a_pipe_is_not_cut(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "inspect", str(data)]) == 0
    shown = capsys.readouterr()
    assert "1,200" in shown.out
    assert "…" not in shown.out
    assert shown.err == ""


def test_convert_there_and_back_gives_the_same_arrays(data: Path, tmp_path: Path) -> None:
    assert main(["data", "convert", str(data), str(tmp_path / "x.astro")]) == 0
    assert main(["data", "convert", str(tmp_path / "x.astro"), str(tmp_path / "x.npz")]) == 0
    assert main(["data", "inspect", str(tmp_path / "x.astro"), "--verify", "--json"]) == 0
    before, after = np.load(data), np.load(tmp_path / "x.npz")
    assert set(before.files) == set(after.files)
    assert all(np.array_equal(before[name], after[name]) for name in before.files)


def test_train_evaluate_and_print_json(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = [
        "train",
        str(data),
        "--out",
        str(run),
        "--task",
        "pointmaze-medium-stitch-task3",
        "--preset",
        "tiny",
    ]
    options = [
        "--steps",
        "40",
        "--log-every",
        "20",
        "--checkpoint-every",
        "20",
        "--episodes",
        "2",
        "--seeds",
        "2",
    ]
    capsys.readouterr()
    assert main([*command, *options, "--evaluation-workers", "0", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["seeds"] == [0, 1]
    assert np.shape(results["evaluation"]["episodes"]["returns"]) == (2, 2)

    assert main(["evaluate", str(run), "--episodes", "2", "--evaluation-workers", "0", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["evaluation"]["episodes"] == results["evaluation"]["episodes"], (
        "the first episodes are the same"
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data", "inspect", "nowhere.npz"], "nowhere.npz"),
        (["data", "make", "pointmaze-medum-stitch-v0"], "pointmaze-medium-stitch-v0"),
        (["data", "make", "humanoidmaze-medium-stitch-v0"], "data fetch humanoidmaze-medium-stitch-v0"),
        (["tasks", "antmaze-larg-stitch"], "antmaze-large-stitch"),
        (["train", "nowhere.npz", "--out", "unused", "--task", "no-such-task"], "no-such-task"),
        (["evaluate", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_gets_one_message_that_names_it_and_status_1(
    arguments: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert named in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], (
        "something half-written was left behind"
    )


def test_the_wrong_task_for_a_dataset_is_refused_before_anything_is_written(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), "--out", str(tmp_path / "run"), "--task", "antmaze-large-stitch"]) == 1
    message = capsys.readouterr().err
    assert "antmaze-large-stitch-singletask-task1-v0" in message
    assert "29 numbers" in message
    assert not (tmp_path / "run").exists()


def test_training_without_rewards_or_task_says_what_to_do(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["train", str(data), "--out", str(tmp_path / "run"), "--preset", "tiny", "--steps", "10"]) == 1
    )
    message = capsys.readouterr().err
    assert "no rewards" in message
    assert "--task" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", [["--set", "alpah=3"], ["--set", "alpha"], ["--set", "expectile=2"]])
def test_an_unknown_or_impossible_setting_is_refused(
    option: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ["--task", "pointmaze-medium-stitch"]
    assert main(["train", str(data), "--out", str(tmp_path / "run"), *task, *option]) == 1
    assert "expected" in capsys.readouterr().err


def test_settings_are_read_as_values() -> None:
    assert parse_settings(
        ("alpha=3", "expectile=0.8", "actor=ddpgbc", "hidden=[64, 64]", "layer_norm=true", "wide=False")
    ) == {
        "alpha": 3,
        "expectile": 0.8,
        "actor": "ddpgbc",
        "hidden": (64, 64),
        "layer_norm": True,
        "wide": False,
    }
    with pytest.raises(ConfigError, match="name and a value"):
        parse_settings(("=3",))


def test_what_a_message_asks_for_can_be_given_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An HDF5 file with `terminals` alone does not say what its last rows are, and the message says how to."""
    source, destination = tmp_path / "mine.h5", tmp_path / "mine.astro"
    with h5py.File(source, "w") as file:
        file["observations"], file["u"] = np.zeros((6, 2), np.float32), np.zeros((6, 1), np.float32)
        file["terminals"] = np.array([0, 0, 1, 0, 0, 1], np.float32)
    assert main(["data", "convert", str(source), str(destination)]) == 1
    assert "--read fields=…" in capsys.readouterr().err
    renamed = ["--read", "fields={'actions': 'u'}"]
    assert main(["data", "inspect", str(source), *renamed]) == 1
    assert "--read layout=…" in capsys.readouterr().err
    assert main(["data", "convert", str(source), str(destination), *renamed, "layout=rows"]) == 0
    assert main(["data", "inspect", str(destination), "--json"]) == 0
    assert '"transitions": 4' in capsys.readouterr().out
    assert main(["data", "inspect", str(source), *renamed, "layuot=rows"]) == 1
    assert "did you mean 'layout'" in capsys.readouterr().err


def test_tasks_and_datasets_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)
    assert {"antmaze-large-stitch-singletask-task1-v0", "antmaze-umaze-v2"} <= {
        task["name"] for task in tasks
    }
    assert main(["data", "list", "--json"]) == 0
    assert any(row["make"] for row in json.loads(capsys.readouterr().out))
