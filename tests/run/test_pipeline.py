"""`run`: what can be refused early is, and what has been done is not done again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from astro_rl import get_task
from astro_rl.data import Dataset, save
from astro_rl.errors import ConfigError, UnavailableError
from astro_rl.run import pipeline
from astro_rl.run.pipeline import Plan, Stopwatch, run_pipeline
from astro_rl.run.train import TrainResult, TrainSettings
from tests.fitted import SHAPE, SIZES, Fitted, walks

TASK = "pointmaze-medium-stitch-task1"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Data that no environment made: what a run does with it is the same, and its models are compiled already."""
    data = tmp_path_factory.mktemp("data") / "walks.npz"
    save(walks(), data)
    return Plan(
        task=get_task(TASK),
        data=data,
        preset="tiny",
        settings=SIZES,
        shape=SHAPE,
        transitions=300,
        learners=("bc",),
        learner_preset="tiny",
        training=TrainSettings(steps=20, seeds=(0, 1), log_every=10, checkpoint_every=10, episodes=0),
    )


class Trains:
    """`run.train.train`, but for the training: which arm was given what, and a score a seed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Dataset, Dataset | None]] = []

    def __call__(self, dataset: Dataset, learner: Any, settings: Any, **given: Any) -> TrainResult:
        self.calls.append((given["out"].name, dataset, given["augmented"]))
        return TrainResult(given["out"], settings.seeds, {"evaluation": {"scores": [50.0, 75.0]}})


def test_both_arms_are_trained_and_what_is_done_is_not_done_again(
    fitted: Fitted, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "train", trains := Trains())
    said: list[str] = []
    outcome = run_pipeline(plan, tmp_path, say=said.append)
    assert [line.split(":")[0] for line in said] == ["data", "chains", "augmented"]
    (original, whole, nothing), (astro, same, augmented) = trains.calls
    assert (original, astro) == ("train-original-bc", "train-astro-bc")
    assert nothing is None and same is whole and augmented is outcome.augmented
    assert outcome.augmented.n_transitions >= 300
    assert outcome.augmented.info["lineage"]["task"] == plan.task.name
    assert whole.info["relabelled"]["task"] == plan.task.name, "both arms learn the task's reward"
    assert outcome.augmented.info["relabelled"]["task"] == plan.task.name
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["scores"] == {"bc": {"original": [50.0, 75.0], "astro": [50.0, 75.0]}}
    assert set(summary["seconds"]) == {"data", "fit", "augment", "truth", "original bc", "astro bc"}
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert {"real", "generated"} <= set(truth["kinds"])

    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "fit" / "models").iterdir()}
    monkeypatch.setattr("astro_rl.run.augment.Generator", None)
    again = run_pipeline(plan, tmp_path)
    assert again.augmented.digest() == outcome.augmented.digest()
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"settings": {"dynamics.stepz": 3}}, "dynamics.steps"),
        ({"learner_settings": {"alpah": 3}}, "alp"),
        ({"transitions": 0}, "transitions"),
        ({"rounds": 0}, "rounds"),
        ({"shape": (2, 1, 6)}, "segment"),
        ({"episodes": 5}, "leave one of them out"),
        ({"preset": "tinny"}, "tiny"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_made(
    plan: Plan, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        run_pipeline(dataclasses.replace(plan, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_dataset_that_cannot_be_made_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"(?s)cannot be made here.*data fetch humanoidmaze.*--data"):
        run_pipeline(Plan(task=get_task("humanoidmaze-medium-stitch"), preset="tiny"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_stage_that_was_resumed_counts_all_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 2.0, 10.0, 13.0])
    monkeypatch.setattr(pipeline.time, "perf_counter", lambda: next(times))
    with pytest.raises(KeyboardInterrupt), Stopwatch(tmp_path / "stages.json")("fit"):
        raise KeyboardInterrupt
    with Stopwatch(tmp_path / "stages.json")("fit"):
        pass
    assert json.loads((tmp_path / "stages.json").read_text()) == {"fit": 5.0}
