"""Minari's own package writes what we read, and loads and checks what we write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astro_rl.data import load, save
from astro_rl.data.formats import minari as reader
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, ConfigError, DataError

needs_minari = pytest.mark.usefixtures("minari")


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Minari's package with its folder in the test's."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    (tmp_path / "minari").mkdir()
    return pytest.importorskip("minari")


def make_dataset(seed: int = 0, sizes: tuple[int, ...] = (5, 3, 9), extras: bool = True) -> Dataset:
    rng = np.random.default_rng(seed)
    rows, offsets = sum(sizes), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inner = np.ones(rows, dtype=bool)
    inner[offsets[1:] - 1] = False
    named: dict[str, np.ndarray] = {
        "qpos": rng.normal(size=(rows, 4)),
        "infos/qpos": rng.normal(size=(rows, 4)).astype(np.float32),
        "infos/success": rng.random(rows) < 0.5,
        "lineage": rng.integers(0, 9, (rows, 2)),
    }
    return Dataset(
        observations=rng.normal(size=(rows, 6)),
        actions=rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        rewards=rng.normal(size=rows),
        terminated=inner & (rng.random(rows) < 0.2),
        truncated=inner & (rng.random(rows) < 0.2),
        offsets=offsets,
        extras=named if extras else {},
        info={"env": "made up"},
    )


def assert_same_columns(left: Dataset, right: Dataset) -> None:
    assert left.columns().keys() == right.columns().keys()
    for name, column in left.columns().items():
        assert column.dtype == right.columns()[name].dtype, name
        np.testing.assert_array_equal(column, right.columns()[name], err_msg=name)
    np.testing.assert_array_equal(left.offsets, right.offsets)


def goal_episodes(minari: Any, dtype: type = np.float64, inner_goal: bool = False) -> list[Any]:
    """Episodes as Minari's collector records gymnasium-robotics' mazes."""
    rng = np.random.default_rng(0)
    episodes = []
    for number, steps in enumerate((4, 7, 12)):
        observation = rng.normal(size=(steps + 1, 5)).astype(dtype)
        goal = observation[:, :2].copy() if inner_goal else rng.normal(size=(steps + 1, 2)).astype(dtype)
        episodes.append(
            minari.data_collector.EpisodeBuffer(
                id=number,
                seed=number,
                observations={
                    "observation": observation,
                    "achieved_goal": goal,
                    "desired_goal": np.ones((steps + 1, 2), dtype=dtype),
                },
                actions=rng.uniform(-1, 1, (steps, 3)).astype(np.float32),
                rewards=list(rng.normal(size=steps)),
                terminations=[step == 2 and number == 0 for step in range(steps)],
                truncations=[step == steps - 1 for step in range(steps)],
                infos={
                    "success": rng.random(steps + 1) < 0.5,
                    "qpos": rng.normal(size=(steps + 1, 4)),
                    "note": ["text"] * (steps + 1),
                    "late": rng.normal(size=steps),
                },
            )
        )
    return episodes


def spaces(dtype: type = np.float64) -> dict[str, Any]:
    from gymnasium.spaces import Box, Dict

    def box(size: int, kind: type) -> Box:
        return Box(-np.inf, np.inf, (size,), kind)

    goals = {"achieved_goal": box(2, dtype), "desired_goal": box(2, dtype)}
    return {
        "observation_space": Dict({"observation": box(5, dtype), **goals}),
        "action_space": Box(-1, 1, (3,), np.float32),
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
def make_with_minari(minari: Any, **options: Any) -> tuple[Path, list[Any]]:
    import warnings

    episodes = goal_episodes(minari, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "maze/test-v1", episodes, **spaces(), author="A", author_email="a@b.c", code_permalink="here"
        )
    from minari.storage.datasets_root_dir import get_dataset_path

    return Path(get_dataset_path("maze/test-v1")), episodes


def test_what_minari_wrote_is_read_from_any_of_its_three_paths(minari: Any) -> None:
    root, episodes = make_with_minari(minari)
    for path in (root, root / "data", root / "data" / "main_data.hdf5"):
        assert reader.recognises(path)
        data = load(path)
        assert data.lengths.tolist() == [4, 7, 12]
        for trajectory, episode in zip(data, episodes, strict=True):
            joined = np.hstack([episode.observations["achieved_goal"], episode.observations["observation"]])
            np.testing.assert_array_equal(trajectory.observations, joined)
            np.testing.assert_array_equal(trajectory.actions, episode.actions)
            np.testing.assert_array_equal(trajectory.rewards, episode.rewards)
            np.testing.assert_array_equal(trajectory.terminated, episode.terminations)
            np.testing.assert_array_equal(trajectory.truncated, episode.truncations)
            np.testing.assert_array_equal(trajectory.extras["qpos"], episode.infos["qpos"])
            np.testing.assert_array_equal(trajectory.extras["infos/success"], episode.infos["success"])
            np.testing.assert_array_equal(trajectory.extras["infos/late"][:-1], episode.infos["late"])
            goals = trajectory.extras["observations/desired_goal"]
            np.testing.assert_array_equal(goals, episode.observations["desired_goal"])
        assert data.observations.dtype == np.float64
        assert data.info["left_out"] == ["infos/note"]


def test_the_goal_is_joined_only_where_the_observation_lacks_it(minari: Any) -> None:
    root, episodes = make_with_minari(minari, inner_goal=True)
    np.testing.assert_array_equal(load(root)[1].observations, episodes[1].observations["observation"])


def test_keys_are_chosen_and_ordered_by_the_caller(minari: Any) -> None:
    root, episodes = make_with_minari(minari)
    data = load(root, observation_keys=("observation", "desired_goal"))
    entries = episodes[2].observations
    np.testing.assert_array_equal(
        data[2].observations, np.hstack([entries["observation"], entries["desired_goal"]])
    )
    assert "observations/achieved_goal" in data.extras
    with pytest.raises(DataError, match="achieved_goal"):
        load(root, observation_keys=("pose",))


def test_other_dictionaries_need_a_choice(tmp_path: Path, minari: Any) -> None:
    root, _ = make_with_minari(minari)
    with h5py.File(root / "data" / "main_data.hdf5", "a") as file:
        for group in file.values():
            group.move("observations/observation", "observations/arm")
    with pytest.raises(DataError, match="observation_keys"):
        load(root)
    assert load(root, observation_keys=("arm",)).observation_dim == 5


def test_reading_and_writing_import_neither_minari_nor_gymnasium(tmp_path: Path) -> None:
    """Only h5py is needed: users without the extra can still convert."""
    script = (
        "import sys; sys.modules['minari'] = sys.modules['gymnasium'] = None\n"
        "from astro_rl.data.formats import minari\nfrom pathlib import Path\n"
        f"minari.write(minari.read(Path({str(tmp_path / 'a-v0')!r})), Path({str(tmp_path / 'b-v0')!r}))\n"
    )
    save(make_dataset(), tmp_path / "a-v0", format="minari")
    subprocess.run([sys.executable, "-c", script], check=True)
    assert_same_columns(load(tmp_path / "a-v0"), load(tmp_path / "b-v0"))


def test_minari_loads_what_we_write(tmp_path: Path, minari: Any) -> None:
    data = make_dataset()
    save(data, tmp_path / "minari" / "ours-v0", format="minari")
    theirs = minari.load_dataset("ours-v0")
    assert (theirs.total_episodes, theirs.total_steps) == (3, data.n_transitions)
    assert theirs.spec.observation_space.shape == (6,) and theirs.action_space.shape == (2,)
    assert "ours-v0" in minari.list_local_datasets()
    for episode, trajectory in zip(theirs, data, strict=True):
        np.testing.assert_array_equal(episode.observations, trajectory.observations)
        np.testing.assert_array_equal(episode.actions, trajectory.actions)
        np.testing.assert_array_equal(episode.rewards, trajectory.rewards)
        np.testing.assert_array_equal(episode.terminations, trajectory.terminated)
        np.testing.assert_array_equal(episode.truncations, trajectory.truncated)
        np.testing.assert_array_equal(episode.infos["success"], trajectory.extras["infos/success"])
        assert episode.observations.dtype == np.float64
        assert all(theirs.observation_space.contains(row) for row in episode.observations)
        assert all(theirs.action_space.contains(row) for row in episode.actions)
    theirs.set_seed(0)
    assert len(list(theirs.sample_episodes(2))) == 2
    assert len(theirs.filter_episodes(lambda episode: len(episode) > 3)) == 2
    direct = minari.MinariDataset(tmp_path / "minari" / "ours-v0" / "data")
    np.testing.assert_array_equal(direct[1].actions, data[1].actions)


def test_minari_splits_combines_and_extends_what_we_write(tmp_path: Path, minari: Any) -> None:
    import warnings

    for name in ("one-v0", "two-v0"):
        save(make_dataset(extras=False), tmp_path / "minari" / name, format="minari")
    one, two = (minari.load_dataset(name) for name in ("one-v0", "two-v0"))
    first, rest = minari.split_dataset(one, sizes=[1, 2], seed=0)
    assert (len(first), len(rest)) == (1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = minari.combine_datasets([one, two], "both-v0")
    assert len(both) == 6
    np.testing.assert_array_equal(
        load(tmp_path / "minari" / "both-v0").observations[:17], make_dataset().observations
    )
    steps = 4
    one.update_dataset_from_buffer(
        [
            minari.data_collector.EpisodeBuffer(
                observations=np.zeros((steps + 1, 6)),
                actions=np.zeros((steps, 2), dtype=np.float32),
                rewards=np.zeros(steps),
                terminations=[False] * steps,
                truncations=[False] * steps,
            )
        ]
    )
    assert load(tmp_path / "minari" / "one-v0").lengths.tolist() == [4, 2, 8, 4]


def test_a_dictionary_is_written_as_a_dictionary_again(tmp_path: Path, minari: Any) -> None:
    root, episodes = make_with_minari(minari)
    data = load(root)
    save(data, tmp_path / "minari" / "again-v0", format="minari")
    theirs = minari.load_dataset("again-v0")
    assert theirs.observation_space == spaces()["observation_space"]
    for key, column in episodes[1].observations.items():
        np.testing.assert_array_equal(theirs[1].observations[key], column)
    assert_same_columns(load(tmp_path / "minari" / "again-v0"), data)
    swapped = load(root, observation_keys=("desired_goal", "observation"))
    save(swapped, tmp_path / "swapped-v0", format="minari")
    assert_same_columns(load(tmp_path / "swapped-v0"), swapped)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**20), sizes=st.lists(st.integers(2, 5), min_size=1, max_size=4))
def test_any_dataset_survives_being_written_and_read(tmp_path: Path, seed: int, sizes: list[int]) -> None:
    data = make_dataset(seed, tuple(sizes))
    if seed % 3 == 0:
        data = Dataset(**{**vars(data), "rewards": None})
    path = tmp_path / "any-v0"
    save(data, path, format="minari", overwrite=True)
    again = load(path)
    assert_same_columns(again, data)
    assert again.info["env"] == "made up"


def test_episode_numbers_are_numbers_not_text(tmp_path: Path) -> None:
    data = make_dataset(sizes=(2,) * 12)
    save(data, tmp_path / "many-v0", format="minari")
    assert_same_columns(load(tmp_path / "many-v0"), data)


def episode(file: h5py.File, number: int) -> h5py.Group:
    group = file[f"episode_{number}"]
    assert isinstance(group, h5py.Group)
    return group


def cut(group: h5py.Group, name: str, rows: int) -> None:
    values = np.asarray(group[name])[:rows]
    del group[name]
    group[name] = values


def drop(group: h5py.Group, name: str) -> None:
    del group[name]


def put(group: h5py.Group, name: str, values: Any) -> None:
    del group[name]
    group[name] = values


FAULTS = {
    "no rewards": (lambda e: drop(e, "rewards"), "rewards"),
    "too few observations": (lambda e: cut(e, "observations", 3), r"3 rows for 4 actions"),
    "too few flags": (lambda e: cut(e, "truncations", 3), "truncations"),
    "discrete": (lambda e: put(e, "actions", np.zeros((4, 2), dtype=np.int64)), "discrete"),
    "dictionary of actions": (
        lambda e: (drop(e, "actions"), e.create_dataset("actions/a", data=[1.0])),
        "dictionary or a tuple",
    ),
    "nan": (lambda e: put(e, "observations", np.full((5, 6), np.nan)), "finite"),
    "other width": (lambda e: put(e, "observations", np.zeros((5, 7))), "different shapes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_episodes_are_refused_by_name(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "bad-v0"
    save(make_dataset(extras=False), path, format="minari")
    change, message = FAULTS[fault]
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        change(episode(file, 0))
    with pytest.raises(DataError, match=message):
        load(path, format="minari")


def test_episodes_without_a_step_are_refused_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "short-v0"
    data = make_dataset(extras=False)
    save(data, path, format="minari")
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        for name in ("actions", "rewards", "terminations", "truncations"):
            cut(episode(file, 1), name, 0)
        cut(episode(file, 1), "observations", 1)
    with pytest.raises(DataError, match="trajectory 1"):
        load(path)
    assert_same_columns(load(path, drop_short=True), data.select([0, 2]))


def test_other_mistakes_have_their_own_messages(tmp_path: Path) -> None:
    path = tmp_path / "some-v0"
    save(make_dataset(), path, format="minari")
    with pytest.raises(ConfigError, match="no effect"):
        load(path, observation_keys=("observation",))
    with pytest.raises(DataError, match="exists"):
        save(make_dataset(), path, format="minari")
    with pytest.raises(ConfigError, match="NAME-v0"):
        save(make_dataset(), tmp_path / "x", format="minari", dataset_id="a b")
    with pytest.raises(DataError, match="limit"):
        load(path, expand_limit_bytes=100)
    metadata = path / "data" / "metadata.json"
    metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "data_format": "arrow"}))
    with pytest.raises(DataError, match="HDF5 backend"):
        load(path)
    data_file = path / "data" / "main_data.hdf5"
    metadata.unlink()
    data_file.write_bytes(data_file.read_bytes()[:2000])
    with pytest.raises(DataError, match="corrupt"):
        load(path)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "__setitem__", full)
    with pytest.raises(AstroError, match="full"):
        save(make_dataset(), tmp_path / "out" / "x-v0", format="minari")
    assert list(tmp_path.iterdir()) == []
