"""Relabelling: timing, end rows, chunks, and what is counted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.tasks import get_task, relabel, successes
from astro_rl.tasks import relabel as relabel_function
from astro_rl.tasks.rewards import Reach

TASK = get_task("pointmaze-medium-stitch")
GOAL = np.array([20.0, 20.0], dtype=np.float32)


def walks(observations: np.ndarray, lengths: tuple[int, ...]) -> Dataset:
    """Trajectories of the given numbers of rows."""
    rows = len(observations)
    truncated = np.zeros(rows, dtype=bool)
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    truncated[offsets[1:] - 2] = True
    return Dataset(
        observations=observations,
        actions=np.zeros((rows, 2), dtype=np.float32),
        terminated=np.zeros(rows, dtype=bool),
        truncated=truncated,
        offsets=offsets,
        info={"source": "test"},
    )


@pytest.fixture
def dataset() -> Dataset:
    """Two walks; offsets from the goal: far, in, far, in | in, in, far."""
    offsets = np.array([3, 0.5, 2, 0, 0.9, -0.2, 1.5], dtype=np.float32)
    return walks(np.stack([GOAL[0] + offsets, np.full(7, GOAL[1])], axis=1), (4, 3))


def test_pre_pays_for_the_state_left_and_post_for_the_one_entered(dataset: Dataset) -> None:
    before, after = relabel(dataset, TASK), relabel(dataset, TASK, timing="post")
    assert before.rewards is not None and after.rewards is not None
    # rows:                          far in  far end | in in  end
    assert before.rewards.tolist() == [-1, 0, -1, 0, 0, 0, 0]
    assert before.terminated.tolist() == [False, True, False, False, True, True, False]
    assert after.rewards.tolist() == [0, -1, 0, 0, 0, -1, 0]
    assert after.terminated.tolist() == [True, False, True, False, True, False, False]
    assert before.rewards.dtype == np.float32


def test_what_was_done_is_recorded_and_nothing_else_changes(dataset: Dataset) -> None:
    labelled = relabel(dataset, TASK, timing="post")
    assert labelled.info["relabelled"]["task"] == TASK.name
    assert labelled.info["relabelled"]["success_timing"] == "post"
    assert labelled.info["source"] == "test"
    assert dataset.rewards is None and not dataset.terminated.any()
    assert labelled.observations is dataset.observations and labelled.truncated is dataset.truncated
    assert relabel(dataset, TASK).info["relabelled"]["success_timing"] == TASK.success_timing == "pre"


def test_chunks_do_not_show(dataset: Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    whole = relabel(dataset, TASK, timing="post"), successes(dataset, [TASK])
    np.save(tmp_path / "rows.npy", dataset.observations)
    mapped = replace(dataset, observations=np.load(tmp_path / "rows.npy", mmap_mode="r"))
    monkeypatch.setattr(sys.modules[relabel_function.__module__], "CHUNK_ROWS", 2)
    seen: list[tuple[int, int]] = []
    chunked = relabel(mapped, TASK, timing="post", progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_array_equal(chunked.rewards, whole[0].rewards)
    np.testing.assert_array_equal(chunked.terminated, whole[0].terminated)
    assert successes(mapped, [TASK]) == whole[1]
    assert seen == [(2, 7), (4, 7), (6, 7), (7, 7)]


def test_successes_are_counted_by_state_and_by_trajectory(dataset: Dataset) -> None:
    assert isinstance(TASK.rewards, Reach)
    tight = replace(TASK, rewards=replace(TASK.rewards, tolerance=0.1), name="tight")
    edge = replace(TASK, rewards=replace(TASK.rewards, tolerance=3.0), name="edge")
    loose, narrow, on_edge = successes(dataset, [TASK, tight, edge])
    assert (loose.task, loose.rows, loose.trajectories, loose.near_threshold) == (TASK.name, 4, 2, 0)
    assert (narrow.rows, narrow.trajectories) == (1, 1)
    assert on_edge.near_threshold == 1


def test_data_of_another_environment_is_refused(dataset: Dataset) -> None:
    for run in (
        lambda: relabel(dataset, get_task("scene-play")),
        lambda: successes(dataset, [get_task("scene-play")]),
    ):
        with pytest.raises(DataError, match="2 numbers a row"):
            run()
