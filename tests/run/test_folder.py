import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astro_rl.errors import ConfigError, DataError
from astro_rl.run import folder as folder_module
from astro_rl.run.files import jsonable, read_json, write_json
from astro_rl.run.folder import RunFolder

CONFIG = {"learner": {"name": "iql", "alpha": 10.0, "hidden": (256, 256)}, "steps": 100}


def test_a_new_folder_records_what_it_is_and_another_opening_continues_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with RunFolder(path).open_or_create(CONFIG) as run:
        assert not run.resumed
    assert RunFolder(path).config == {
        "learner": {"name": "iql", "alpha": 10.0, "hidden": [256, 256]},
        "steps": 100,
    }
    with RunFolder(path).open_or_create(CONFIG) as run:
        assert run.resumed
        assert run.notes() == []


def test_other_settings_are_refused_with_both_values(tmp_path: Path) -> None:
    RunFolder(tmp_path).open_or_create(CONFIG).close()
    before = (tmp_path / "config.json").read_bytes()
    other = {"learner": {"name": "iql", "alpha": 3.0, "extra": None}, "steps": 100}
    with pytest.raises(ConfigError) as caught:
        RunFolder(tmp_path).open_or_create(other)
    text = str(caught.value)
    assert "learner.alpha: 10.0 there, 3.0 asked for" in text
    assert "learner.hidden: [256, 256] there, '(not set)' asked for" in text
    assert "learner.extra: '(not set)' there, None asked for" in text
    assert caught.value.field == "learner.alpha, learner.hidden, learner.extra"
    assert (tmp_path / "config.json").read_bytes() == before
    # The refusal let go of the folder.
    RunFolder(tmp_path).open_or_create(CONFIG).close()


def test_true_is_not_one(tmp_path: Path) -> None:
    RunFolder(tmp_path).open_or_create({"flag": 1}).close()
    with pytest.raises(ConfigError):
        RunFolder(tmp_path).open_or_create({"flag": True})


def test_settings_that_may_change_are_recorded_anew(tmp_path: Path) -> None:
    RunFolder(tmp_path).open_or_create(CONFIG).close()
    longer = {**CONFIG, "steps": 200}
    with pytest.raises(ConfigError):
        RunFolder(tmp_path).open_or_create(longer)
    RunFolder(tmp_path).open_or_create(longer, may_change=["steps"]).close()
    assert RunFolder(tmp_path).config["steps"] == 200


def test_only_one_writer(tmp_path: Path) -> None:
    with RunFolder(tmp_path).open_or_create(CONFIG):
        with pytest.raises(ConfigError, match=f"process {os.getpid()}"):
            RunFolder(tmp_path).open_or_create(CONFIG)
        assert RunFolder(tmp_path).config["steps"] == 100  # reading needs no lock
    RunFolder(tmp_path).open_or_create(CONFIG).close()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from astro_rl.run.folder import RunFolder\n"
        "run = RunFolder(sys.argv[1]).open_or_create({'steps': 1}); print('open', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"open\n"
    with pytest.raises(ConfigError, match=f"process {child.pid}"):
        RunFolder(tmp_path).open_or_create({"steps": 1})
    child.kill()
    child.wait()
    child.stdout.close()
    RunFolder(tmp_path).open_or_create({"steps": 1}).close()


def test_a_strangers_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ConfigError, match=r"thesis\.tex"):
        RunFolder(tmp_path).open_or_create(CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    file = tmp_path / "thesis.tex"
    with pytest.raises(ConfigError, match="a file is in its way"):
        RunFolder(file).open_or_create(CONFIG)
    with pytest.raises(ConfigError, match="a file is in its way"):
        RunFolder(file / "below").open_or_create(CONFIG)


def test_a_run_killed_in_its_first_moments_can_begin_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("1\n")
    (tmp_path / "environment.json").write_text("{}")
    (tmp_path / ".config.json.tmp").write_text('{"ste')
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        assert not run.resumed and run.config["steps"] == 100


def test_records_are_rewound_together(tmp_path: Path) -> None:
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        for name in ("train", "values"):
            for step in (1, 2, 3):
                run.record_file(name).write(step, {"x": 1.0})
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        run.rewind(2)
        assert [record["step"] for record in run.record_file("values").read()] == [1, 2]
        run.records.write(3, {"x": 2.0})
        run.finish_records()
        assert [record["x"] for record in run.records.read()] == [1.0, 1.0, 2.0]
    assert {path.name for path in (tmp_path / "records").iterdir()} == {
        "train.jsonl",
        "train.parquet",
        "values.jsonl",
        "values.parquet",
    }


def test_results_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        assert run.read_result("results") is None
        run.write_result("results", {"score": np.float32(0.1), "table": np.arange(3)})
        assert run.read_result("results") == {"score": float(np.float32(0.1)), "table": [0, 1, 2]}

        def broken(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(DataError, match="No space left"):
            run.write_result("results", {"score": 2})
        monkeypatch.undo()
        assert run.read_result("results")["table"] == [0, 1, 2]
        assert not list(tmp_path.glob(".*.tmp"))
        for name in ("config", "../elsewhere", "Results"):
            with pytest.raises(ConfigError, match="Not a name"):
                run.write_result(name, {})


def test_a_folder_opened_for_reading_does_not_write(tmp_path: Path) -> None:
    RunFolder(tmp_path).open_or_create(CONFIG).close()
    run = RunFolder(tmp_path)
    for write in (lambda: run.write_result("results", {}), lambda: run.note("x"), lambda: run.rewind(0)):
        with pytest.raises(ConfigError, match="for reading"):
            write()
    assert run.records.read() == [] and not (tmp_path / "records").exists()


def test_notes_are_said_once_and_survive_a_torn_line(tmp_path: Path) -> None:
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        run.note("first")
        run.note("first")
        with (tmp_path / "notes.jsonl").open("ab") as file:
            file.write(b'{"note": "sec')
        run.note("third ±")
        assert run.notes() == ["first", "third ±"]


def test_continuing_in_another_environment_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunFolder(tmp_path).open_or_create(CONFIG).close()
    then = read_json(tmp_path / "environment.json")
    newer = {**then, "packages": {**then["packages"], "jax": "99.0"}}
    monkeypatch.setattr(folder_module, "fingerprint", lambda: newer)
    with RunFolder(tmp_path).open_or_create(CONFIG) as run:
        assert run.notes() == [
            f"continued in another environment: packages.jax: {then['packages']['jax']} before, 99.0 now"
        ]
        assert run.environment == then


def test_what_json_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    for value, field in ((float("nan"), "a.b[1]"), (object(), "a.b[1]")):
        with pytest.raises(ConfigError) as caught:
            RunFolder(tmp_path / "run").open_or_create({"a": {"b": [1, value]}})
        assert caught.value.field == field
    with pytest.raises(ConfigError, match="Only text"):
        jsonable({"a": {1: 2}})
    assert not (tmp_path / "run").exists()


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    RunFolder(tmp_path).open_or_create(CONFIG).close()
    (tmp_path / "config.json").write_text('{"steps": NaN}')
    with pytest.raises(DataError, match=r"config\.json"):
        RunFolder(tmp_path).open_or_create(CONFIG)


def test_floats_are_written_exactly(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308]
    write_json(tmp_path / "x.json", values)
    assert [x.hex() for x in json.loads((tmp_path / "x.json").read_text())] == [x.hex() for x in values]


def test_a_full_disk_is_told_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(folder_module, "write_json", no_room)
        with pytest.raises(DataError, match="disk is full") as caught:
            RunFolder(tmp_path / "run").open_or_create(CONFIG)
        assert str(tmp_path / "run") in str(caught.value)
    with RunFolder(tmp_path / "run").open_or_create(CONFIG) as run:
        assert not run.resumed
    with pytest.raises(DataError, match="disk is full"), RunFolder(tmp_path / "run").open_or_create(CONFIG):
        no_room(tmp_path, None)
