"""Truth reports on data whose faults are known, because they were put there."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays, save
from astro_rl.errors import DataError
from astro_rl.quality.openloop import gap_rows
from astro_rl.quality.truth import differences, known_rows, truth_of
from astro_rl.tasks import Task, get_task
from tests.quality.conftest import with_gaps

Made = dict[str, tuple[Dataset, Task]]


def changed(dataset: Dataset, observations: np.ndarray, actions: np.ndarray | None = None) -> Dataset:
    return from_arrays(
        observations.astype(np.float32),
        dataset.actions if actions is None else actions,
        offsets=dataset.offsets,
        extras=dict(dataset.extras),
    )


@pytest.mark.parametrize("name", ["pointmaze-medium-stitch", "antmaze-medium-stitch"])
def test_real_rows_under_the_name_of_generated_ones_are_true(made: Made, name: str) -> None:
    real, task = made[name]
    report = truth_of(with_gaps(real, 3), task, rows=60, sequences=2, real=real)
    assert set(report.kinds) == {"generated", "into gap", "out of gap", "known", "real", "other action"}
    for kind in ("generated", "into gap", "out of gap", "known", "real"):
        found = report.kinds[kind]
        assert found.contradicted == 0.0
        assert all(group.p95_of_rms_step < 1e-4 for group in found.groups.values())
    assert report.kinds["into gap"].population == 3 * 10
    assert report.kinds["generated"].population == 3 * 10 * 9
    assert report.kinds["other action"].groups["x-y"].median_of_rms_step > 0.03
    assert report.walls.crossing == report.walls.inside == 0.0
    assert report.divergence["gap"].generated["end"].p95 < 1e-4
    assert report.divergence["gap"].steps == 11, "ten generated states lie between known ones"
    assert report.divergence["whole"].real is not None


def test_errors_are_measured_in_steps_and_by_kind(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    honest = with_gaps(real, 8)
    known = known_rows(honest)
    step = truth_of(honest, task, rows=50, sequences=1, real=real).typical_step["x-y"]["rms"]
    assert step == pytest.approx(
        np.sqrt(np.square(np.diff(real[0].observations, axis=0)).sum(axis=1).mean()), rel=0.1
    )
    # Every generated state 0.6 of a step off to the right: into a gap the claim is that much wrong, within the gap
    # both ends are off alike, and out of it the other way round.
    moved = np.array(honest.observations)
    moved[~known, 0] += 0.6 * step
    report = truth_of(changed(honest, moved), task, rows=100, sequences=4, real=real)
    for kind, expected in (("into gap", 0.6), ("out of gap", 0.6), ("generated", 0.0), ("known", 0.0)):
        assert report.kinds[kind].groups["x-y"].median_of_rms_step == pytest.approx(expected, abs=0.01)
    assert report.kinds["into gap"].xy_above == {"0.25": 1.0, "0.5": 1.0, "1.0": 0.0}
    # The actions are those that lead to where the states really were.
    gap = report.divergence["gap"].generated
    assert gap["1"].median == pytest.approx(0.6 * step, rel=1e-3)
    assert gap["end"].median < 1e-5
    assert report.divergence["whole"].generated["end of gap"].median < 1e-5


def test_wrong_actions_are_contradicted(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    honest = with_gaps(real, 8)
    actions = np.array(honest.actions)
    actions[~known_rows(honest)] *= -1
    report = truth_of(changed(honest, np.array(honest.observations), actions), task, rows=200, real=real)
    assert report.kinds["generated"].contradicted > 0.9
    # The first generated state is reached by the action of the known row before it.
    assert report.kinds["into gap"].contradicted == 0.0
    assert report.kinds["out of gap"].contradicted > 0.9
    assert report.divergence["gap"].generated["10"].median > 1.0


def test_walls_are_seen_where_the_line_crosses_and_where_a_state_stands_inside(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    # Cells (1, 2) and (1, 5) are free and the two between them are walls; a cell's side is 4.
    a, b = (4.0, 0.0), (16.0, 0.0)
    inside = (9.0, 0.0)
    rows = np.array([a, a, b, a, inside, a], np.float32)
    made_up = from_arrays(rows, np.zeros((6, 2), np.float32), offsets=[0, 6])
    report = truth_of(made_up, task, rows=5, real=real)
    assert report.walls.transitions == 5
    assert report.walls.crossing == pytest.approx(4 / 5)
    assert report.walls.inside == pytest.approx(1 / 6)
    assert report.walls.crossing_real == 0.0
    assert report.kinds["generated"].contradicted == pytest.approx(4 / 5)


def test_data_without_lineage_counts_as_generated_and_no_real_data_is_needed(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    plain = from_arrays(real[0].observations, np.pad(real[0].actions, ((0, 1), (0, 0))), offsets=[0, 201])
    report = truth_of(plain, task, rows=20, sequences=1)
    assert set(report.kinds) == {"generated", "real", "other action"}
    assert "for want of known ones" in report.scale_from
    report = truth_of(with_gaps(real, 2), task, rows=20, sequences=1)
    assert report.scale_from == "known rows of the augmented data"
    assert report.divergence["whole"].real is None


def test_a_quaternion_and_its_negative_are_one_rotation() -> None:
    task = get_task("antmaze-medium-stitch")
    one = np.zeros((1, 29))
    one[0, :7] = (1, 2, 0.5, 0.5, -0.5, 0.5, -0.5)
    other = one.copy()
    other[0, 3:7] *= -1
    assert not differences(task, one, other).any()


def test_first_gaps_of_trajectories() -> None:
    known = np.array([1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 0], bool)
    begins, stops = gap_rows(known, np.array([0, 6, 8, 11]))
    assert begins.tolist() == [1, -1, 9]
    assert stops.tolist() == [3, -1, 11], "the last one has no known state behind it"


def test_the_report_is_json_and_a_table_and_follows_from_its_seed(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    reports = [truth_of(with_gaps(real, 3), task, rows=30, sequences=2, real=real, seed=s) for s in (0, 0, 1)]
    texts = [json.dumps(report.as_json()) for report in reports]
    assert texts[0] == texts[1] != texts[2]
    lines = reports[0].table().splitlines()
    assert any(line.startswith("out of gap") for line in lines)
    assert sum("other action" in line for line in lines) == 1


def test_another_environments_real_data_is_refused(made: Made) -> None:
    augmented, task = made["pointmaze-medium-stitch"]
    with pytest.raises(DataError, match="not of the environment"):
        truth_of(augmented, task, real=made["antmaze-medium-stitch"][0])


def test_the_benchmark_reads_files_and_needs_few_packages(made: Made, tmp_path: Path) -> None:
    real, task = made["pointmaze-medium-stitch"]
    for name, data in (("augmented.npz", with_gaps(real, 3)), ("real.npz", real)):
        save(data, tmp_path / name)
    program = (
        "import sys\n"
        "for absent in ('h5py', 'orbax', 'pyarrow', 'equinox', 'optax', 'tyro', 'matplotlib', 'jax'):\n"
        "    sys.modules[absent] = None\n"
        "from benchmarks.truth import main\n"
        "main()\n"
    )
    arguments = (
        f"augmented.npz --task {task.name} --real real.npz --out out.jsonl --rows 40 --sequences 2".split()
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--workers", "0"],
        cwd=tmp_path,
        env={"PYTHONPATH": root, "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (record,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert record["data"] == "augmented.npz"
    assert record["kinds"]["out of gap"]["population"] == 3 * 10
    assert record["kinds"]["generated"]["contradicted"] == 0.0
