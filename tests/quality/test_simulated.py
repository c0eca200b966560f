"""The upper-bound control: chains completed by the simulator, laid out as augmented data is."""

from typing import Any

import numpy as np
import pytest

from astro_rl.augment.finish import LINEAGE_COLUMNS
from astro_rl.augment.lineage import source_digest
from astro_rl.data import Dataset, check_dataset
from astro_rl.errors import ConfigError, DataError, UnavailableError
from astro_rl.quality.simulated import SimulatorCompleter, complete_in_simulator
from astro_rl.quality.truth import known_rows, truth_of
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import Task, get_task

Made = dict[str, tuple[Dataset, Task]]
SHAPE = ChainShape(pieces=3, segment=8, mask=10)


def real_chains(dataset: Dataset, count: int) -> np.ndarray:
    """Pieces that follow one another in a trajectory, so that the gaps can be crossed in time."""
    firsts = np.asarray(dataset.offsets[:-1])[np.arange(count) % len(dataset)] + 3 * np.arange(count)
    return firsts[:, None] + np.arange(SHAPE.pieces) * SHAPE.period


def complete(made: Made, name: str, chains: int, **options: Any) -> Dataset:
    dataset, task = made[name]
    options = {"jump": 1.0, "jump_xy": 1.0, "workers": 0, **options}
    return complete_in_simulator(dataset, task, SHAPE, real_chains(dataset, chains), **options)


def same(a: Dataset, b: Dataset) -> bool:
    return all(np.array_equal(column, b.columns()[name]) for name, column in a.columns().items())


def test_the_points_gaps_are_crossed_and_true_to_the_simulator(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    filled = complete(made, "pointmaze-medium-stitch", 12, attempts=4)
    check_dataset(filled)
    account = filled.info["lineage"]["completions"]
    assert account["proposed"] == 24
    assert account["kept"] >= 16
    assert account["kept"] + account["cut"] == 24
    report = truth_of(filled, task, rows=200, real=real, sequences=5)
    for kind in ("generated", "into gap", "known"):
        assert report.kinds[kind].groups["x-y"].p95_of_rms_step < 1e-4
    assert report.kinds["out of gap"].groups["x-y"].p95 <= 1.0 * report.typical_step["x-y"]["rms"] * 1.01
    assert report.kinds["generated"].population + report.kinds["into gap"].population >= 24 * 10
    assert report.walls.crossing == 0.0


def test_lineage_names_the_real_rows_and_they_are_untouched(made: Made) -> None:
    real, _ = made["pointmaze-medium-stitch"]
    filled = complete(made, "pointmaze-medium-stitch", 6, attempts=2)
    assert set(LINEAGE_COLUMNS) <= set(filled.extras)
    known = known_rows(filled)
    rows = (
        np.asarray(real.offsets)[filled.extras["source_trajectory"][known]]
        + filled.extras["source_step"][known]
    )
    np.testing.assert_array_equal(filled.observations[known], real.observations[rows])
    assert (filled.extras["weight"] == 1.0).all()
    assert filled.info["lineage"]["source_digest"] == source_digest(real)
    assert filled.rewards is not None, "labelled for the task"


def test_the_ants_misses_are_cut_and_what_was_driven_stays(made: Made) -> None:
    real, task = made["antmaze-medium-stitch"]
    filled = complete(made, "antmaze-medium-stitch", 4, jump=1e-3, jump_xy=1e-3)
    account = filled.info["lineage"]["completions"]
    assert account == {"proposed": 8, "kept": 0, "cut": 8}
    # A piece, the gap, and the state that was reached: the next piece starts a trajectory of its own.
    assert np.diff(filled.offsets).tolist() == [8 + 10 + 1] * 8
    report = truth_of(filled, task, rows=100, sequences=2, real=real)
    assert "out of gap" not in report.kinds
    assert report.kinds["generated"].contradicted == 0.0
    assert report.kinds["generated"].groups["velocities"].p95_of_rms_step < 1e-5
    apart = filled.observations[8 + 10, :2] - filled.observations[7, :2]
    wanted = real.observations[real_chains(real, 1)[0, 1], :2] - filled.observations[7, :2]
    assert (apart * wanted).sum() > 0, "it went towards the next piece"


def test_a_generous_limit_keeps_the_ants_junctions(made: Made) -> None:
    filled = complete(made, "antmaze-medium-stitch", 2, jump=1e3, jump_xy=1e3)
    assert filled.info["lineage"]["completions"] == {"proposed": 4, "kept": 4, "cut": 0}
    assert np.diff(filled.offsets).tolist() == [3 * 8 + 2 * 10] * 2


def test_same_seed_same_bytes_whatever_the_workers(made: Made) -> None:
    name = "pointmaze-medium-stitch"
    here = complete(made, name, 12, attempts=2)
    assert same(here, complete(made, name, 12, attempts=2, workers=2))
    dataset, task = made[name]
    with SimulatorCompleter(dataset, task, SHAPE, jump=1.0, jump_xy=1.0, attempts=2, workers=0) as completer:
        completer.complete(real_chains(dataset, 3), seed=7)
        assert same(here, completer.complete(real_chains(dataset, 12))), (
            "batches do not depend on earlier ones"
        )
    other = complete(made, name, 12, attempts=2, seed=1)
    assert here.n_rows != other.n_rows or not same(here, other)


def test_more_attempts_arrive_more_often(made: Made) -> None:
    name, options = "antmaze-medium-stitch", {"jump": 1.2, "jump_xy": 1.5}
    once, often = (complete(made, name, 6, attempts=n, **options).info["lineage"] for n in (1, 6))
    assert once["attempts_made"] == 12
    assert 12 < often["attempts_made"] <= 72
    assert often["arrivals"]["jump"]["0.5"] < once["arrivals"]["jump"]["0.5"]


def test_walls_between_are_driven_around(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    # From somewhere in the maze to somewhere behind a wall: a long gap, at full pace over the cells between.
    xy = real.observations
    here = int(np.argmin(np.linalg.norm(xy - np.array([0.0, 4.0]), axis=1)))
    there = int(np.argmin(np.linalg.norm(xy - np.array([4.0, 16.0]), axis=1)))
    shape = ChainShape(pieces=2, segment=2, mask=160)
    trajectory = np.searchsorted(real.offsets, [here, there], side="right") - 1
    starts = np.minimum([here, there], np.asarray(real.offsets)[trajectory + 1] - 2)[None]
    filled = complete_in_simulator(real, task, shape, starts, jump=1.0, jump_xy=1.0, workers=0)
    assert filled.info["lineage"]["completions"]["kept"] == 1
    assert truth_of(filled, task, rows=200, real=real).walls.crossing == 0.0


def test_what_makes_no_sense_is_refused(made: Made) -> None:
    name = "pointmaze-medium-stitch"
    real, task = made[name]
    with pytest.raises(ConfigError, match="attempt"):
        complete(made, name, 2, attempts=0)
    with pytest.raises(DataError, match="one trajectory"):
        complete_in_simulator(real, task, SHAPE, np.array([[0, 198]]), jump=1.0, workers=0)
    with pytest.raises(UnavailableError, match="No expert"):
        complete_in_simulator(
            made["antmaze-medium-stitch"][0],
            get_task("antmaze-umaze-v2"),
            SHAPE,
            np.array([[0, 40]]),
            jump=1.0,
            workers=0,
        )
