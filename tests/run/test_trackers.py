import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl.errors import ConfigError, MissingDependency
from astro_rl.run.folder import RunFolder
from astro_rl.run.trackers import TRACKERS, TrackerGroup, numbers_of

CONFIG = {"steps": 2, "learner": {"name": "iql"}}
Calls = list[tuple[str, Any]]


class FakeWriter:
    def __init__(self, calls: Calls, folder: str, purge_step: int) -> None:
        self.calls = calls
        calls.append(("open", (Path(folder).name, purge_step)))

    def add_text(self, name: str, text: str, step: int) -> None:
        self.calls.append(("text", (name, step)))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.calls.append(("scalar", (name, value, step)))

    def flush(self) -> None: ...

    def close(self) -> None:
        self.calls.append(("close", None))


class FakeRun:
    def __init__(self, calls: Calls) -> None:
        self.calls, self.summary = calls, {}

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.calls.append(("define", (name, step_metric)))

    def log(self, values: Mapping[str, float]) -> None:
        self.calls.append(("log", values))

    def finish(self, exit_code: int) -> None:
        self.calls.append(("finish", (dict(self.summary), exit_code)))


def fake_wandb(calls: Calls, *, key: str | None, online_works: bool = True) -> types.ModuleType:
    def init(**settings: Any) -> FakeRun:
        calls.append(("init", settings))
        if settings["mode"] == "online" and not online_works:
            raise ConnectionError("no route")
        return FakeRun(calls)

    module: Any = types.ModuleType("wandb")
    module.init, module.api = init, types.SimpleNamespace(api_key=key)
    return module


def fake_trackio(calls: Calls) -> types.ModuleType:
    module: Any = types.ModuleType("trackio")
    module.init = lambda **settings: calls.append(("init", settings))
    module.log = lambda values, step: calls.append(("log", (values, step)))
    module.finish = lambda: calls.append(("finish", None))
    return module


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "TRACKIO_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def follow(path: Path, names: list[str], *, first: int = 1) -> list[str]:
    """A short run with trackers; returns the run's notes."""
    with RunFolder(path).open_or_create(CONFIG) as folder:
        with folder.tracking(names) as tracker:
            tracker.log(first, {"loss": 1.0, "value": np.array([2.0, 4.0]), "bad": float("nan")})
            tracker.log(first + 1, {"loss": 0.5})
            tracker.finish({"score": {"mean": 50.0}, "task": "maze"})
        return folder.notes()


def test_tensorboard_is_told_everything_and_hides_an_abandoned_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    module: Any = types.ModuleType("tensorboardX")
    module.SummaryWriter = lambda folder, purge_step: FakeWriter(calls, folder, purge_step)
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    assert follow(tmp_path / "run", ["tensorboard"], first=7) == []
    assert calls == [
        ("open", ("tensorboard", 7)),
        ("text", ("config", 7)),
        ("scalar", ("loss", 1.0, 7)),
        ("scalar", ("value", 3.0, 7)),
        ("scalar", ("value/0", 2.0, 7)),
        ("scalar", ("value/1", 4.0, 7)),
        ("scalar", ("loss", 0.5, 8)),
        ("scalar", ("results/score/mean", 50.0, 8)),
        ("close", None),
    ]


@pytest.mark.parametrize(
    ("key", "works", "asked", "modes"),
    [
        ("k", True, None, ["online"]),
        (None, True, None, ["offline"]),
        ("k", False, None, ["online", "offline"]),
        ("k", True, "offline", ["offline"]),
    ],
)
def test_wandb_never_waits_for_a_login_and_falls_back_to_offline(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: Calls,
    key: str | None,
    works: bool,
    asked: str | None,
    modes: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(calls, key=key, online_works=works))
    if asked:
        monkeypatch.setenv("WANDB_MODE", asked)
    assert follow(tmp_path / "run", ["wandb"]) == []
    assert [settings["mode"] for name, settings in calls if name == "init"] == modes
    assert ("log", {"step": 2, "loss": 0.5}) in calls
    assert calls[-1] == ("finish", ({"results/score/mean": 50.0}, 0))


def test_a_continued_run_stays_the_same_run_on_the_tracker_s_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(calls, key=None))
    monkeypatch.setitem(sys.modules, "trackio", fake_trackio(calls))
    for folder in ("run", "run", "other"):
        follow(tmp_path / folder, ["wandb", "trackio"])
    begun = [settings for name, settings in calls if name == "init"]
    first, again, other = [settings for settings in begun if "id" in settings]
    assert first["id"] == again["id"] != other["id"]
    assert (first["resume"], first["config"], first["name"]) == ("allow", CONFIG, "run")
    first, again, other = [settings["name"] for settings in begun if "id" not in settings]
    assert first == again != other


def test_a_run_that_breaks_off_is_finished_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(calls, key=None))
    with (
        pytest.raises(ZeroDivisionError),
        RunFolder(tmp_path).open_or_create(CONFIG) as folder,
        folder.tracking(["wandb"]),
    ):
        raise ZeroDivisionError
    assert calls[-1] == ("finish", ({}, 1))


class Failing:
    """Works until the call of the given name."""

    def __init__(self, calls: Calls, when: str) -> None:
        self.calls, self.when = calls, when

    def _do(self, name: str) -> None:
        self.calls.append((name, None))
        if name == self.when:
            raise OSError("server gone")

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        self._do("start")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._do("log")

    def finish(self, results: Mapping[str, Any] | None) -> None:
        self._do("finish")


@pytest.mark.parametrize(
    ("when", "expected"),
    [("start", ["start"]), ("log", ["start", "log"]), ("finish", ["start", "log", "log", "finish"])],
)
def test_a_failing_tracker_is_dropped_with_one_note_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls, when: str, expected: list[str]
) -> None:
    fine: Calls = []
    plugins: dict[str, Callable[[], Any]] = {
        "broken": lambda: Failing(calls, when),
        "fine": lambda: Failing(fine, "never"),
    }
    monkeypatch.setattr("astro_rl.run.trackers.TRACKERS", plugins)
    notes = follow(tmp_path / "run", ["broken", "fine"])
    assert [name for name, _ in calls] == expected
    assert [name for name, _ in fine] == ["start", "log", "log", "finish"]
    assert len(notes) == 1
    assert "broken" in notes[0] and "server gone" in notes[0] and when in notes[0]


@pytest.mark.parametrize(
    ("name", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb"), ("trackio", "trackio")]
)
def test_a_missing_package_is_said_before_training(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=r"astro-rl\[trackers\]"):
        TrackerGroup([name], note=lambda text: None)


def test_an_unknown_tracker_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        TrackerGroup(["mlflow"], note=lambda text: None)
    assert all(name in str(caught.value) for name in TRACKERS)


def test_only_numbers_reach_a_tracker() -> None:
    values = {
        "a": 1,
        "b": {"c": np.float32(0.5)},
        "d": [1, 2],
        "e": "text",
        "f": True,
        "g": None,
        "h": np.inf,
    }
    assert numbers_of(values) == {"a": 1.0, "b/c": 0.5, "d": 1.5, "d/0": 1.0, "d/1": 2.0}


def test_real_tensorboard_files_hold_what_was_logged(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto import event_pb2 as generated

    events: Any = generated

    assert follow(tmp_path, ["tensorboard"]) == []
    (file,) = (tmp_path / "trackers" / "tensorboard").glob("events.*")
    content, position, found = file.read_bytes(), 0, []
    while position < len(content):  # length (8), its checksum (4), event, checksum (4)
        length = int.from_bytes(content[position : position + 8], "little")
        event = events.Event.FromString(content[position + 12 : position + 12 + length])
        found.extend((value.tag, value.simple_value, event.step) for value in event.summary.value)
        position += length + 16
    assert ("loss", 0.5, 2) in found and ("results/score/mean", 50.0, 2) in found
