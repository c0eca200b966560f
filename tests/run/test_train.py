"""Training runs: killed at any moment and continued, they end as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from astro_rl.agents.presets import learner_for
from astro_rl.augment.lineage import source_digest
from astro_rl.errors import ConfigError, DataError, TrainingError
from astro_rl.run.policy import load_policy
from astro_rl.run.train import Execution, TrainSettings, train
from tests.run.train_script import SETTINGS, run
from tests.training.stubs import counting_dataset

ROOT = Path(__file__).parents[2]
KEPT = ("config.json", "policy.safetensors", "policy.json", "results.json")


def contents(folder: Path) -> dict[str, object]:
    """What two runs must agree on: array bytes and results; records without their clock."""
    records = [json.loads(line) for line in (folder / "records" / "train.jsonl").read_text().splitlines()]
    timeless = [{key: value for key, value in record.items() if key != "time"} for record in records]
    return {"records": timeless, **{name: (folder / name).read_bytes() for name in KEPT}}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    subprocess.run([sys.executable, "-m", "tests.run.train_script", str(folder)], cwd=ROOT, check=True)
    return contents(folder)


def test_a_run_killed_at_random_moments_ends_the_same(undisturbed: dict[str, object], tmp_path: Path) -> None:
    folder, chance = tmp_path / "run", random.Random(0)
    kills = 0
    for attempt in range(12):
        process = subprocess.Popen([sys.executable, "-m", "tests.run.train_script", str(folder)], cwd=ROOT)
        records = folder / "records" / "train.jsonl"
        already = records.stat().st_size if records.exists() else 0
        deadline = time.monotonic() + 120
        # Wait until this attempt has trained a little, so that every kill falls into work, not into imports.
        while process.poll() is None and time.monotonic() < deadline:
            if attempt >= 4 or (records.exists() and records.stat().st_size != already):
                break
            time.sleep(0.005)
        if attempt < 4:
            time.sleep(chance.uniform(0, 0.3))
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        if process.wait() == 0:
            break
    assert kills >= 1, "every attempt finished before it could be killed: the test has tested nothing"
    assert contents(folder) == undisturbed


def test_a_finished_run_is_returned_as_it_is(tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = (tmp_path / "run" / "policy.safetensors").stat().st_mtime_ns
    run(tmp_path / "run")
    assert (tmp_path / "run" / "policy.safetensors").stat().st_mtime_ns == before


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    learner, dataset = learner_for("iql", preset="tiny", task=None), counting_dataset((9, 4, 6))
    train(dataset, learner, SETTINGS, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="other settings") as caught:
        train(dataset, learner, replace(SETTINGS, steps=130), out=tmp_path / "run")
    assert "training.steps" in str(caught.value)
    other = counting_dataset((9, 4, 7))
    with pytest.raises(ConfigError, match=r"dataset\.digest"):
        train(other, learner, SETTINGS, out=tmp_path / "run")


def test_where_the_data_lies_changes_nothing_but_rounding(tmp_path: Path) -> None:
    learner, dataset = learner_for("bc", preset="tiny", task=None), counting_dataset((9, 4, 6))
    on_device = train(dataset, learner, SETTINGS, out=tmp_path / "a", execution=Execution(memory="device"))
    streamed = train(dataset, learner, SETTINGS, out=tmp_path / "b", execution=Execution(memory="stream"))
    observations = np.asarray(dataset.observations)
    for seed in SETTINGS.seeds:
        first = load_policy(on_device.folder).act(observations, seed=seed)
        second = load_policy(streamed.folder).act(observations, seed=seed)
        np.testing.assert_allclose(first, second, atol=1e-4)


def test_augmented_data_is_used(tmp_path: Path) -> None:
    learner, dataset = learner_for("bc", preset="tiny", task=None), counting_dataset((9, 4, 6))
    augmented = counting_dataset((12, 12), start=50)
    plain = train(dataset, learner, SETTINGS, out=tmp_path / "a")
    mixed = train(dataset, learner, SETTINGS, out=tmp_path / "b", augmented=augmented)
    assert json.loads((mixed.folder / "config.json").read_text())["augmented"]["digest"] == augmented.digest()
    observations = np.asarray(augmented.observations)
    assert not np.allclose(
        load_policy(plain.folder).act(observations), load_policy(mixed.folder).act(observations)
    )


def test_a_diverging_run_stops_with_the_metric_the_seed_and_what_to_do(tmp_path: Path) -> None:
    dataset = counting_dataset((9, 4, 6))
    huge = replace(dataset, rewards=np.full(dataset.n_rows, 3e38, np.float32))
    with pytest.raises(TrainingError, match="no longer finite") as caught:
        train(huge, learner_for("iql", preset="tiny", task=None), SETTINGS, out=tmp_path / "run")
    assert "seed 0" in str(caught.value)
    assert "lower the learning rate" in str(caught.value)
    assert not (tmp_path / "run" / "results.json").exists()


def test_a_policy_on_disk_acts_as_the_one_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder)
    policy = load_policy(folder)
    observations = np.asarray(counting_dataset((3,)).observations)
    actions = policy.act(observations, seed=1)
    assert actions.shape == (4, 1)
    assert np.abs(actions).max() <= 1
    assert not np.array_equal(actions, policy.act(observations, seed=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"seeds": ()}, "distinct"),
        ({"seeds": (1, 1)}, "distinct"),
        ({"augmented_share": 0.0}, "share"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SETTINGS, **change)  # type: ignore[arg-type]


def test_checkpoints_fall_between_chunks() -> None:
    settings = TrainSettings(steps=10, log_every=10, checkpoint_every=15)
    with pytest.raises(ConfigError, match="between chunks"):
        train(counting_dataset((3,)), learner_for("bc", preset="tiny", task=None), settings, out="unused")


def test_augmented_data_of_another_source_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    """Its own source passes, under other rewards too; so does data without lineage."""
    learner, dataset = learner_for("bc", preset="tiny", task=None), counting_dataset((9, 4, 6))
    settings = replace(SETTINGS, steps=2, log_every=2, checkpoint_every=2)
    record = {"lineage": {"source_digest": source_digest(dataset)}}
    augmented = replace(counting_dataset((5, 5)), info=record)
    other = replace(dataset, observations=dataset.observations + 1)
    with pytest.raises(DataError, match="belongs to another dataset"):
        train(other, learner, settings, out=tmp_path / "other", augmented=augmented)
    assert not (tmp_path / "other").exists()
    relabelled = replace(dataset, rewards=np.zeros(dataset.n_rows, np.float32))
    train(relabelled, learner, settings, out=tmp_path / "own", augmented=augmented)
    train(other, learner, settings, out=tmp_path / "any", augmented=augmented, any_source=True)
    train(other, learner, settings, out=tmp_path / "bare", augmented=replace(augmented, info={}))
