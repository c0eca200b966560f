"""What an inspection says is what a plain look at the whole arrays says, however small its blocks."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astro_rl.data import columns, inspection_scan, load, save
from astro_rl.data.continuity import jump_limits
from astro_rl.data.inspection import Inspection, inspect_dataset
from astro_rl.data.schema import Dataset


def dataset_of(
    observations: np.ndarray, sizes: list[int], rewards: np.ndarray | None = None, seed: int = 0
) -> Dataset:
    rng = np.random.default_rng(seed)
    rows = len(observations)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    actions = np.clip(rng.normal(0, 0.8, (rows, 3)), -1, 1).astype(np.float32)
    flags = np.zeros((2, rows), dtype=bool)
    flags[1, offsets[1:] - 2] = True
    return Dataset(observations, actions, flags[0], flags[1], offsets, rewards, info={"name": "made"})


def hovering_points(episodes: int = 30, steps: int = 200, noise: float = 0.5) -> tuple[Dataset, np.ndarray]:
    """OGBench's pointmaze `stitch` in miniature: walk to a goal under action noise, then hover there.

    Also gives the transitions that leave a state at most two steps from the goal: these idle by construction.
    """
    rng = np.random.default_rng(0)
    rows, arrived = [], []
    for _ in range(episodes):
        position, goal = rng.uniform(0, 20, 2), rng.uniform(0, 20, 2)
        for _ in range(steps + 1):
            rows.append(position)
            towards = goal - position
            arrived.append(np.linalg.norm(towards) < 0.4)
            action = towards / (np.linalg.norm(towards) + 1e-6) + rng.normal(0, noise, 2)
            position = position + 0.2 * np.clip(action, -1, 1)
    data = dataset_of(np.array(rows, dtype=np.float32), [steps + 1] * episodes)
    return data, np.array(arrived)[data.transition_rows()]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**20),
    sizes=st.lists(st.integers(2, 40), min_size=1, max_size=8),
    kind=st.sampled_from(["none", "sparse", "dense"]),
    chunk=st.sampled_from([1, 64, 500, 2**23]),
)
def test_figures_equal_those_of_the_whole_arrays(seed: int, sizes: list[int], kind: str, chunk: int) -> None:
    rng = np.random.default_rng(seed)
    rows = sum(sizes)
    observations = np.cumsum(rng.normal(size=(rows, 4)), axis=0)
    rewards = {"none": None, "sparse": (rng.random(rows) < 0.2) - 1.0, "dense": rng.normal(size=rows)}[kind]
    data = dataset_of(observations, sizes, rewards, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "CHUNK_BYTES", chunk)
        found = inspect_dataset(data, task_successes={"right": lambda o: o[:, 0] > 0})
    moving = data.transition_rows()
    for column, values in zip(found.observations, observations.T, strict=True):
        told = [column.low, column.high, column.mean, column.std]
        plain = [values.min(), values.max(), values.mean(), values.std()]
        np.testing.assert_allclose(told, plain, rtol=1e-9, atol=1e-9)
    for k, column in enumerate(found.actions):
        np.testing.assert_allclose(column.mean, data.actions[moving, k].astype(np.float64).mean(), rtol=1e-9)
    assert found.actions_at_bounds == (np.abs(data.actions[moving]) == 1).any(axis=1).mean()
    assert sum(found.lengths.histogram.counts) == len(sizes)
    if rewards is None:
        assert found.rewards is None and found.reward_histogram is None
    else:
        assert found.rewards is not None and found.reward_histogram is not None
        assert sum(found.reward_histogram.counts) == data.n_transitions
        np.testing.assert_allclose(found.rewards.mean, rewards[moving].mean(), rtol=1e-9, atol=1e-12)
        if kind == "sparse":
            values, counts = np.unique(rewards[moving], return_counts=True)
            assert found.reward_histogram.edges == tuple(values) and found.reward_histogram.counts == tuple(
                counts
            )
    met = observations[:, 0] > 0
    assert found.successes[0].rows == met.sum()
    assert found.successes[0].trajectories == len(np.unique(data.trajectory_of_row()[met]))


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = hovering_points(episodes=6)
    observations = data.observations.copy()
    observations[700:, 0] += 50  # within a trajectory
    data = replace(data, observations=observations)
    whole = inspect_dataset(data)
    monkeypatch.setattr(columns, "CHUNK_BYTES", 300)
    parts = inspect_dataset(data)
    assert parts.discontinuities == whole.discontinuities and parts.idleness == whole.idleness
    assert parts.discontinuities.transitions == 1
    (jump,) = parts.discontinuities.first
    assert (jump.trajectory, jump.step, jump.column) == (3, 699 - 603, "observations[0]")
    assert jump.after - jump.before == pytest.approx(50, abs=1)


def test_idle_tails_are_found_although_the_point_never_stands_still() -> None:
    data, arrived = hovering_points()
    found = inspect_dataset(data).idleness
    assert found is not None
    steps = np.linalg.norm(np.diff(data[0].observations, axis=0), axis=1)
    assert np.median(steps[-50:]) > 0.3 * np.median(steps[:20])  # a rule on single steps would not see it
    assert 0.85 * arrived.mean() < found.fraction < arrived.mean() + 0.02
    assert found.tail_fraction > 0.6 * arrived.mean()


def test_a_point_that_keeps_walking_is_not_idle() -> None:
    rng = np.random.default_rng(0)
    heading = np.repeat(rng.normal(size=(20, 2)), 101, axis=0)
    walk = np.cumsum(heading / np.linalg.norm(heading, axis=1, keepdims=True) * 0.2, axis=0)
    found = inspect_dataset(dataset_of(walk + rng.normal(0, 0.02, walk.shape), [101] * 20)).idleness
    assert found is not None and found.fraction < 0.01


def test_noise_has_no_idleness_to_speak_of() -> None:
    noise = np.random.default_rng(0).normal(size=(2000, 3))
    assert inspect_dataset(dataset_of(noise, [100] * 20)).idleness is None


def gait(rows: int, rng: np.random.Generator) -> np.ndarray:
    """A position, fast joint angles and heavy-tailed velocities, roughly an ant's."""
    time = np.arange(rows)[:, None]
    position = np.cumsum(0.15 + 0.1 * rng.normal(size=(rows, 2)), axis=0)
    joints = 0.6 * np.sin(time * np.array([0.9, 1.1, 1.3]) + rng.normal(0, 0.1, (rows, 3)))
    return np.hstack([position, joints, rng.standard_t(4, size=(rows, 3))])


def test_unmarked_resets_are_found_and_honest_motion_is_not() -> None:
    rng = np.random.default_rng(0)
    pieces = [gait(101, rng) + np.r_[rng.uniform(-20, 20, 2), np.zeros(6)] for _ in range(40)]
    marked = inspect_dataset(dataset_of(np.vstack(pieces), [101] * 40)).discontinuities
    assert marked.transitions == 0 and "observations[0]" in marked.watched
    merged = inspect_dataset(dataset_of(np.vstack(pieces), [404] * 10)).discontinuities
    assert (
        merged.transitions >= 28 and merged.trajectories == 10
    )  # 30 joints, of which some are near by chance
    assert all((jump.step + 1) % 101 == 0 for jump in merged.first)
    assert len(merged.first) == 10


def test_objects_that_rest_and_snap_are_not_called_teleports() -> None:
    rng = np.random.default_rng(0)
    drawer = np.repeat(rng.uniform(0, 0.3, 40), 50) + rng.normal(0, 1e-6, 2000)
    arm = np.cumsum(rng.normal(0, 0.01, (2000, 2)), axis=0)
    found = inspect_dataset(dataset_of(np.column_stack([arm, drawer]), [500] * 4)).discontinuities
    assert found.transitions == 0 and "observations[2]" not in found.watched


def test_limits_are_in_the_columns_units() -> None:
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.normal(0, 0.1, (500, 1)), axis=0)
    limit = jump_limits(np.diff(walk, axis=0), walk)
    np.testing.assert_allclose(jump_limits(np.diff(walk * 7, axis=0), walk * 7), 7 * limit)
    assert np.isinf(jump_limits(np.zeros((9, 1)), np.ones((10, 1))))


def test_constant_and_equal_columns_are_named() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(60, 2))
    shuffled = rng.permutation(base[:, 1])  # same moments up to rounding, other rows
    observations = np.column_stack([base, np.full(60, 3.0), base[:, 0], shuffled, base[:, 0]])
    found = inspect_dataset(dataset_of(observations, [30, 30]))
    assert found.constant_columns == ("observations[2]",)
    assert found.duplicated_columns == (("observations[0]", "observations[3]", "observations[5]"),)


def test_ends_are_counted_by_their_three_names() -> None:
    data = dataset_of(np.random.default_rng(0).normal(size=(12, 2)), [4, 4, 4])
    terminated, truncated = np.zeros(12, dtype=bool), np.zeros(12, dtype=bool)
    terminated[[0, 2]] = True  # in the middle, and at the end of the first
    truncated[6] = True  # at the end of the second; the third has no flag
    ends = inspect_dataset(replace(data, terminated=terminated, truncated=truncated)).ends
    assert (ends.terminated, ends.terminated_at_end, ends.truncated, ends.truncated_at_end) == (2, 1, 1, 1)
    assert ends.unflagged == 1


def test_json_is_strict_and_the_table_has_text_only() -> None:
    data = dataset_of(np.full((4, 2), 1e300), [2, 2], rewards=np.zeros(4))
    with np.errstate(over="ignore", invalid="ignore"):
        found = inspect_dataset(data)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    told = json.loads(replace(found, actions_at_bounds=float("nan")).to_json(), parse_constant=refuse)
    assert told["actions_at_bounds"] is None and told["transitions"] == 2 and told["info"] == {"name": "made"}
    assert isinstance(found, Inspection)
    assert all(isinstance(text, str) for row in (*found.table(), *found.ranges()) for text in row)
    assert ("trajectories", "2") in found.table()


def test_position_columns_narrow_what_is_watched() -> None:
    data, _ = hovering_points(episodes=4)
    found = inspect_dataset(data, position_columns=(1,))
    assert found.discontinuities.watched == ("observations[1]",)
    assert found.idleness is not None and found.idleness.columns == ("observations[1]",)


def test_the_shortest_trajectories_are_no_trouble() -> None:
    found = inspect_dataset(dataset_of(np.arange(8.0)[:, None], [2, 2, 2, 2]))
    assert found.lengths.high == 1 and found.lengths.histogram.counts == (4,)


def test_a_memory_map_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observations = np.cumsum(np.random.default_rng(0).normal(size=(200_000, 20)), axis=0).astype(np.float32)
    save(dataset_of(observations, [1000] * 200, np.zeros(200_000)), tmp_path / "large.astro")
    del observations
    monkeypatch.setattr(columns, "CHUNK_BYTES", 2**18)
    monkeypatch.setattr(inspection_scan, "SAMPLE_ROWS", 2048)
    data = load(tmp_path / "large.astro")
    seen: list[tuple[int, int]] = []
    tracemalloc.start()
    inspect_dataset(data, progress=lambda done, total: seen.append((done, total)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.observations.nbytes / 2
    assert seen[-1] == (200_000, 200_000) and seen == sorted(seen)
