"""D4RL files of the published schemas, read as d4rl and FQL's loader read them, and written so that they can.

No D4RL file can be downloaded where these tests run. `antmaze_columns` and `mujoco_columns` build files as
D4RL's own generators write them: the same datasets, groups, types and conventions. `qlearning` below is what
`d4rl.qlearning_dataset` does, said once more in plain NumPy, and `fql_antmaze` what FQL's loader makes of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astro_rl.data.formats import d4rl
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, DataError

Columns = dict[str, np.ndarray]


def qlearning(columns: Columns, max_episode_steps: int | None = None) -> Columns:
    """One transition for each file row but the last and those cut by a time limit; the next row is the next
    state."""
    picked: dict[str, list[Any]] = {name: [] for name in ("s", "a", "r", "s2", "done")}
    steps = 0
    for i in range(len(columns["rewards"]) - 1):
        if "timeouts" in columns:
            cut = bool(columns["timeouts"][i])
        else:
            cut = steps == max_episode_steps - 1 if max_episode_steps else False
        if cut:
            steps = 0
            continue
        steps = 0 if columns["terminals"][i] else steps + 1
        picked["s"].append(columns["observations"][i])
        picked["a"].append(columns["actions"][i])
        picked["r"].append(columns["rewards"][i])
        picked["s2"].append(columns["observations"][i + 1])
        picked["done"].append(bool(columns["terminals"][i]))
    return {name: np.array(values) for name, values in picked.items()}


def fql_antmaze(columns: Columns) -> Columns:
    """Reward − 1, masks from terminals, and ends where the next observation is not the next row's."""
    q = qlearning(columns)
    jump = np.linalg.norm(q["s"][1:] - q["s2"][:-1], axis=1) > 1e-6
    return {**q, "r": q["r"] - 1, "mask": 1.0 - q["done"], "end": np.append(jump, True)}


def transitions(data: Dataset) -> Columns:
    rows = data.transition_rows()
    assert data.rewards is not None
    return {
        "s": data.observations[rows],
        "a": data.actions[rows],
        "r": data.rewards[rows],
        "s2": data.observations[rows + 1],
        "mask": 1.0 - data.terminated[rows],
        "end": np.isin(rows + 1, data.end_rows),
    }


def antmaze_columns(lengths: tuple[int, ...] = (60, 41, 50), timeouts: bool = True, seed: int = 0) -> Columns:
    """Rows as `generate_ant_maze_datasets.py` and the reward relabelling leave them: success does not end
    anything."""
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    observations = rng.normal(0, 0.3, (rows, 29)).astype(np.float32)
    ends = np.cumsum(lengths) - 1
    start = 0
    for number, length in enumerate(lengths):
        heading = np.array([0.2, 0.1]) * (-1) ** number
        path = np.array([20.0 * (number % 2), 0.0]) + np.cumsum(
            rng.normal(heading, 0.05, (length, 2)), axis=0
        )
        observations[start : start + length, :2] = path
        start += length
    terminals = np.zeros(rows, dtype=np.float32)
    terminals[[20, 21, 22, ends[0] - 1]] = 1
    columns = {
        "observations": observations,
        "actions": rng.uniform(-1, 1, (rows, 8)).astype(np.float32),
        "rewards": terminals.astype(np.float32),
        "terminals": terminals,
        "infos/goal": np.tile(np.array([[0.5, 8.0]], dtype=np.float32), (rows, 1)),
        "infos/qpos": rng.normal(size=(rows, 15)).astype(np.float32),
        "infos/qvel": rng.normal(size=(rows, 14)).astype(np.float32),
    }
    if timeouts:
        columns["timeouts"] = np.isin(np.arange(rows), ends)
    return columns


def mujoco_columns(next_observations: bool = True, seed: int = 1) -> Columns:
    """Rows as `mujoco/collect_data.py` leaves them: terminals and timeouts both end a trajectory."""
    rng = np.random.default_rng(seed)
    lengths, rows = (12, 30, 7, 11), 60
    following = rng.normal(size=(rows, 11)).astype(np.float32)
    observations = np.roll(following, 1, axis=0)
    ends = np.cumsum(lengths) - 1
    observations[np.append(0, ends[:-1] + 1)] = rng.normal(size=(4, 11)).astype(np.float32)
    columns = {
        "observations": observations,
        "actions": rng.uniform(-1, 1, (rows, 3)).astype(np.float32),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "terminals": np.isin(np.arange(rows), ends[[0, 2]]),
        "timeouts": np.isin(np.arange(rows), ends[1]),
        "infos/action_log_probs": rng.normal(size=rows).astype(np.float32),
        "infos/qpos": rng.normal(size=(rows, 6)).astype(np.float32),
    }
    if next_observations:
        columns["next_observations"] = following
    return columns


def save(path: Path, columns: Columns, metadata: bool = False) -> Path:
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file.create_dataset(name, data=column, compression="gzip")
        if metadata:
            file["metadata/algorithm"] = np.bytes_("SAC")
            file["metadata/iteration"] = np.array([7], dtype=np.int32)[0]
            file["metadata/policy/fc0/weight"] = np.ones((60, 4), dtype=np.float32)
    return path


def columns_of(path: Path) -> Columns:
    found: Columns = {}
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
        )
    return {name: column for name, column in found.items() if not name.startswith("astro_rl/")}


def assert_same_columns(left: Dataset, right: Dataset) -> None:
    assert left.columns().keys() == right.columns().keys()
    for name, column in left.columns().items():
        assert column.dtype == right.columns()[name].dtype, name
        np.testing.assert_array_equal(column, right.columns()[name], err_msg=name)
    np.testing.assert_array_equal(left.offsets, right.offsets)


@pytest.mark.parametrize("seed", range(3))
def test_antmaze_equals_qlearning_dataset_and_fqls_fix(tmp_path: Path, seed: int) -> None:
    columns = antmaze_columns(seed=seed)
    data = d4rl.read(save(tmp_path / "antmaze-umaze-v2.hdf5", columns))
    ours, theirs = transitions(data), fql_antmaze(columns)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert data.lengths.tolist() == [59, 40, 49]
    assert data.info["reward_shift"] == -1.0 and data.info["d4rl"]["ends"]["jumps"] == 0
    assert data.truncated[data.end_rows - 1].all() and data.truncated.sum() == 3


def test_antmaze_is_known_by_its_published_name_and_by_its_shapes(tmp_path: Path) -> None:
    published = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5"
    for name in (published, "renamed.hdf5"):
        assert d4rl.read(save(tmp_path / name, antmaze_columns())).info["reward_shift"] == -1.0


def test_the_reward_shift_is_an_option_and_raw_rewards_stay_on_file(tmp_path: Path) -> None:
    columns = antmaze_columns()
    path = save(tmp_path / "antmaze-umaze-v2.hdf5", columns)
    raw = d4rl.read(path, reward_shift=0.0)
    assert raw.rewards is not None and set(raw.rewards.tolist()) == {0.0, 1.0}
    shifted = d4rl.read(path)
    assert shifted.rewards is not None and set(shifted.rewards.tolist()) == {-1.0, 0.0}
    for number, data in enumerate((raw, shifted)):
        again = tmp_path / f"again{number}.hdf5"
        d4rl.write(data, again)
        np.testing.assert_array_equal(columns_of(again)["rewards"], columns["rewards"])
        assert_same_columns(d4rl.read(again), data)


def test_mujoco_equals_qlearning_dataset(tmp_path: Path) -> None:
    columns = mujoco_columns(next_observations=False)
    data = d4rl.read(save(tmp_path / "hopper-medium-v2.hdf5", columns))
    ours, theirs = transitions(data), qlearning(columns)
    for name in ("s", "a", "r"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    np.testing.assert_array_equal(ours["mask"], 1 - theirs["done"])
    # After a terminal d4rl's next state is the following episode's first; no target looks at it.
    np.testing.assert_array_equal(ours["s2"][ours["mask"] == 1], theirs["s2"][~theirs["done"]])
    assert data.lengths.tolist() == [12, 29, 7, 10]


def test_mujoco_takes_the_terminal_state_from_next_observations(tmp_path: Path) -> None:
    columns = mujoco_columns()
    data = d4rl.read(save(tmp_path / "hopper-medium-v2.hdf5", columns))
    terminal = np.flatnonzero(columns["terminals"])
    made = data.end_rows[[0, 2]]
    np.testing.assert_array_equal(data.observations[made], columns["next_observations"][terminal])
    assert data.terminated[made - 1].all() and not data.truncated[made - 1].any()


def test_a_terminal_on_the_files_last_row_keeps_its_transition(tmp_path: Path) -> None:
    columns = mujoco_columns()
    columns["terminals"][-1] = True
    data = d4rl.read(save(tmp_path / "hopper-medium-v2.hdf5", columns))
    assert data.n_transitions == len(qlearning(columns)["r"]) + 1
    np.testing.assert_array_equal(data.observations[-1], columns["next_observations"][-1])


def test_a_next_observation_that_is_not_the_next_row_ends_a_trajectory(tmp_path: Path) -> None:
    columns = mujoco_columns()
    columns["next_observations"][4] += 1e-3
    data = d4rl.read(save(tmp_path / "hopper-medium-v2.hdf5", columns))
    assert data.lengths.tolist() == [5, 7, 29, 7, 10]
    np.testing.assert_array_equal(data.observations[data.end_rows[0]], columns["next_observations"][4])
    columns["next_observations"][4] -= 1e-3 - 1e-8
    assert len(d4rl.read(save(tmp_path / "hopper-medium-v1.hdf5", columns))) == 4


def test_resets_that_no_flag_tells_of_end_trajectories_in_mazes(tmp_path: Path) -> None:
    """Version 0 forgot them; umaze-diverse resets after a success that is only marked terminal."""
    columns = antmaze_columns(lengths=(60, 41, 50))
    columns["timeouts"][59] = False
    columns["timeouts"][100] = False
    columns["terminals"][:] = 0
    columns["terminals"][100] = 1
    data = d4rl.read(save(tmp_path / "antmaze-umaze-diverse-v2.hdf5", columns))
    assert data.info["d4rl"]["ends"]["jumps"] == 2
    assert data.lengths.tolist() == [59, 41, 49]  # the false transition is left out, the terminal one kept
    assert data.terminated[data.end_rows[1] - 1] and not data.terminated[data.end_rows[0] - 1]
    assert np.abs(np.diff(data[0].observations[:, :2], axis=0)).max() < 1


def test_files_without_timeouts_need_the_environments_limit(tmp_path: Path) -> None:
    columns = mujoco_columns(next_observations=False)
    del columns["timeouts"]
    path = save(tmp_path / "hopper-random-v0.hdf5", columns)
    with pytest.raises(DataError, match="max_episode_steps"):
        d4rl.read(path)
    data, theirs = d4rl.read(path, max_episode_steps=10), qlearning(columns, max_episode_steps=10)
    ours = transitions(data)
    for name in ("s", "a", "r"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    again = tmp_path / "again.hdf5"
    d4rl.write(data, again)
    assert_same_columns(d4rl.read(again), data)


@pytest.mark.parametrize("kind", ["antmaze", "antmaze end success", "mujoco", "mujoco v2"])
def test_read_then_written_files_have_the_same_columns(tmp_path: Path, kind: str) -> None:
    columns = antmaze_columns() if "antmaze" in kind else mujoco_columns(next_observations="v2" in kind)
    if kind == "antmaze end success":
        columns["terminals"][[59, 150]] = 1
    first = save(tmp_path / f"{kind}.hdf5", columns, metadata=True)
    data = d4rl.read(first)
    second = tmp_path / "second.hdf5"
    d4rl.write(data, second)
    before, after = columns_of(first), columns_of(second)
    assert before.pop("metadata/policy/fc0/weight") is not None
    assert data.info["d4rl"]["left_out"] == ["metadata/policy/fc0/weight"]
    assert before.keys() == after.keys()
    for name, column in before.items():
        assert np.asarray(column).dtype == np.asarray(after[name]).dtype, name
        np.testing.assert_array_equal(column, after[name], err_msg=name)
    again = d4rl.read(second)
    assert_same_columns(again, data)
    written = second.read_bytes()
    d4rl.write(data, second, overwrite=True)
    assert second.read_bytes() == written


def any_dataset(draw: st.DrawFn) -> Dataset:
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))
    rows = sum(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    inner = np.ones(rows, dtype=bool)
    inner[offsets[1:] - 1] = False
    return Dataset(
        observations=rng.normal(size=(rows, 3)).astype(dtype),
        actions=rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        rewards=rng.normal(size=rows).astype(dtype) if draw(st.booleans()) else None,
        terminated=inner & (rng.random(rows) < 0.3),
        truncated=inner & (rng.random(rows) < 0.3),
        offsets=offsets,
        extras={"qpos": rng.normal(size=(rows, 2)), "infos/count": rng.integers(0, 9, rows)},
        info={"env": "made up"},
    )


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_dataset_survives_being_written_and_read(tmp_path: Path, data: st.DataObject) -> None:
    dataset = data.draw(st.composite(any_dataset)())
    path = tmp_path / "any.hdf5"
    d4rl.write(dataset, path, overwrite=True)
    assert d4rl.recognises(path)
    again = d4rl.read(path)
    assert_same_columns(again, dataset)
    assert again.info["env"] == "made up"
    if dataset.rewards is not None:
        theirs = qlearning(columns_of(path))
        for name, column in transitions(dataset).items():
            if name in ("s", "a", "r", "s2"):
                np.testing.assert_array_equal(column, theirs[name], err_msg=name)


def test_relabelled_and_selected_data_is_written_exactly(tmp_path: Path) -> None:
    data = d4rl.read(save(tmp_path / "hopper-medium-v2.hdf5", mujoco_columns()))
    rewards = np.arange(data.n_rows, dtype=np.float32) - 5
    for number, changed in enumerate((data.with_rewards(rewards, data.terminated), data.select([2, 0]))):
        path = tmp_path / f"{number}.hdf5"
        d4rl.write(changed, path)
        assert_same_columns(d4rl.read(path), changed)


def test_one_row_trajectories_are_left_out_and_counted(tmp_path: Path) -> None:
    columns = antmaze_columns()
    columns["timeouts"][60] = True  # right after the first trajectory's end
    path = save(tmp_path / "antmaze-umaze-v2.hdf5", columns)
    data = d4rl.read(path)
    assert data.info["d4rl"]["dropped_rows"] == 1 and data.n_transitions == len(qlearning(columns)["r"])
    with pytest.raises(DataError, match="drop_short"):
        d4rl.read(path, drop_short=False)


BROKEN = {
    "missing": (lambda c: c.pop("terminals"), "terminals"),
    "length": (lambda c: c.update(rewards=c["rewards"][:-1]), "different lengths"),
    "integers": (lambda c: c.update(actions=c["actions"].astype(np.int32)), "int32"),
    "text": (lambda c: c.update(observations=np.full((151, 29), b"x")), "observations"),
    "axes": (lambda c: c.update(observations=c["observations"][:, 0]), "axes"),
    "nan": (lambda c: c["observations"].__setitem__((7, 3), np.nan), "row 7"),
    "actions": (lambda c: c["actions"].__setitem__((5, 1), 1.5), "outside"),
    "next": (lambda c: c.update(next_observations=c["observations"][:, :3]), "next_observations"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_bad_files_are_refused_with_the_field_that_is_wrong(tmp_path: Path, fault: str) -> None:
    columns = antmaze_columns()
    change, message = BROKEN[fault]
    change(columns)
    path = save(tmp_path / "antmaze-umaze-v2.hdf5", columns)
    with pytest.raises(DataError, match=message) as told:
        d4rl.read(path)
    assert str(path) in str(told.value)


def test_damaged_files_are_told_apart(tmp_path: Path) -> None:
    path = save(tmp_path / "antmaze-umaze-v2.hdf5", antmaze_columns())
    cut = tmp_path / "cut.hdf5"
    cut.write_bytes(path.read_bytes()[:-3000])
    page = tmp_path / "page.hdf5"
    page.write_text("<html>not found</html>")
    for bad, message in (
        (cut, "corrupt"),
        (page, "not an HDF5"),
        (tmp_path, "directory"),
        (tmp_path / "no", "exist"),
    ):
        with pytest.raises(DataError, match=message):
            d4rl.read(bad)
        assert not d4rl.recognises(bad)


def test_a_file_that_claims_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "bomb.hdf5", antmaze_columns())
    with h5py.File(path, "a") as file:
        file.create_dataset("infos/huge", shape=(10**13,), dtype="f4", chunks=(2**16,), compression="gzip")
    with pytest.raises(DataError, match="limit"):
        d4rl.read(path)


def test_nothing_is_overwritten_or_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = d4rl.read(save(tmp_path / "antmaze-umaze-v2.hdf5", antmaze_columns()))
    path = tmp_path / "out" / "copy.hdf5"
    d4rl.write(data, path)
    with pytest.raises(DataError, match="exists"):
        d4rl.write(data, path)
    before = path.read_bytes()

    with pytest.raises(DataError, match="JSON"):
        d4rl.write(replace(data, info={"score": float("nan")}), tmp_path / "nan.hdf5")
    assert not (tmp_path / "nan.hdf5").exists()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    with pytest.raises(AstroError, match="full"):
        d4rl.write(data, path, overwrite=True)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
