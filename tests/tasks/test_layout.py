"""Projections leave real rows alone and make generated ones valid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from astro_rl.tasks import Task, all_tasks, get_task, project
from astro_rl.tasks.layout import Layout
from tests.tasks.conftest import Rows

KINDS = [task.name for task in all_tasks() if task.goal == 1 and task.suite == "ogbench"]


def assert_valid(layout: Layout, rows: np.ndarray) -> None:
    for part in layout.unit_vectors:
        np.testing.assert_allclose(np.linalg.norm(rows[..., part.start : part.stop], axis=-1), 1.0, atol=1e-5)
    for part in layout.one_hot:
        hot = rows[..., part.start : part.stop]
        assert np.all((hot == 0) | (hot == 1)) and np.all(hot.sum(axis=-1) == 1)
    for part in layout.bounds:
        assert np.all(
            (rows[..., part.index] >= part.low - 1e-6) & (rows[..., part.index] <= part.high + 1e-6)
        )


def test_real_rows_stay(simulated: tuple[Task, Rows]) -> None:
    task, rows = simulated
    projected = project(task)(rows.observations)
    assert projected.dtype == rows.observations.dtype
    change = np.abs(projected - rows.observations).max(axis=1)
    later = np.delete(change, rows.starts)
    assert later.max() < 1e-5
    # OGBench's ant starts from a quaternion that is not unit; only that may move, and only there.
    assert task.layout is not None
    quaternions = [k for p in task.layout.unit_vectors for k in range(p.start, p.stop)]
    others = np.delete(projected - rows.observations, quaternions, axis=1)
    assert np.abs(others).max(initial=0.0) < 1e-5


@pytest.mark.parametrize("name", KINDS)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_any_rows_become_valid_and_then_stay(name: str, data: st.DataObject) -> None:
    task = get_task(name)
    values = st.floats(-20, 20, width=32)
    shape = (3, task.observation_dim)
    rows = data.draw(arrays(np.float32, shape, elements=values, fill=values))
    before = rows.copy()
    projected = project(task)(rows)
    assert task.layout is not None and task.layout.size == task.observation_dim
    assert_valid(task.layout, projected)
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_allclose(project(task)(projected), projected, atol=1e-6)
    np.testing.assert_array_equal(project(task)(rows[0]), projected[0])


def test_slightly_wrong_rows_move_slightly(simulated: tuple[Task, Rows]) -> None:
    task, rows = simulated
    valid = project(task)(rows.observations).astype(np.float64)
    noise = np.random.default_rng(0).normal(0, 0.01, valid.shape)
    back = project(task)(valid + noise)
    assert np.abs(back - valid).max() < 0.06
    assert np.linalg.norm(back - valid) <= np.linalg.norm(noise) * 1.001


def test_a_button_is_decided_and_a_directionless_vector_gets_one() -> None:
    task = get_task("scene-play")
    rows = np.zeros((2, 40))
    rows[:, 28:30] = [[0.4, 0.6], [0.9, 0.8]]
    projected = project(task)(rows)
    assert projected[:, 28:30].tolist() == [[0, 1], [1, 0]]
    assert projected[0, 22:26].tolist() == [1, 0, 0, 0] and projected[0, 15:17].tolist() == [1, 0]
    ant = project(get_task("antmaze-umaze-v2"))(np.full(29, 9.0))
    assert ant[3:7].tolist() == [0.5, 0.5, 0.5, 0.5] and ant[7] < 1.0
