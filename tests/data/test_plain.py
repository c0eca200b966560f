"""Plain arrays in files and dictionaries: common names, common layouts, and questions instead of guesses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings

from astro_rl.data import convert, from_arrays, from_dict, load, save, verify_store
from astro_rl.data.formats.spellings import SPELLINGS
from astro_rl.errors import ConfigError, DataError

from .strategies import assert_same, plans, small, write_columns

Columns = dict[str, np.ndarray]
FORMATS = [("plain-npz", "a.npz"), ("plain-hdf5", "a.hdf5")]


def write_hdf5(path: Path, columns: Columns) -> None:
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file[name] = column


WRITERS = [(write_columns, "a.npz"), (write_hdf5, "a.hdf5")]


def flat(steps: int = 6, next_observations: bool = True) -> Columns:
    """Two trajectories of three steps, as a replay buffer holds them."""
    observations = np.arange(steps * 2, dtype=np.float32).reshape(steps, 2)
    columns = {
        "observations": observations,
        "actions": np.full((steps, 1), 0.5, np.float32),
        "rewards": np.arange(steps, dtype=np.float32),
        "timeouts": np.arange(steps) % 3 == 2,
    }
    return {**columns, "next_observations": observations + 2} if next_observations else columns


@pytest.mark.parametrize(("format", "name"), FORMATS)
@settings(deadline=None, max_examples=15)
@given(plan=plans())
def test_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any], format: str, name: str
) -> None:
    dataset = from_arrays(**plan)
    path = tmp_path_factory.mktemp("plain") / name
    save(dataset, path, format=format)
    assert_same(load(path), dataset)
    assert dict(load(path).info) == dict(dataset.info)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("format", "name"), FORMATS)
def test_streamed_into_a_store_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, name: str, compressed: bool
) -> None:
    monkeypatch.setattr("astro_rl.data.columns.CHUNK_BYTES", 40)
    save(small(), tmp_path / name, format=format, compressed=compressed)
    convert(tmp_path / name, tmp_path / "a.astro")
    assert_same(verify_store(tmp_path / "a.astro"), small())


@pytest.mark.parametrize(("write", "name"), WRITERS)
@pytest.mark.parametrize("chunk", [8 * 2**20, 24])
def test_flat_transitions_in_a_file(
    tmp_path: Path,
    write: Callable[[Path, Columns], None],
    name: str,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("astro_rl.data.columns.CHUNK_BYTES", chunk)
    write(tmp_path / name, flat())
    dataset = load(tmp_path / name, format="plain-" + ("npz" if name.endswith("npz") else "hdf5"))
    assert dataset.lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(dataset.observations[:, 0], [0, 2, 4, 6, 6, 8, 10, 12])
    np.testing.assert_array_equal(dataset.rewards, [0, 1, 2, 0, 3, 4, 5, 0])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 1, 0, 0, 0, 1, 0])
    convert(
        tmp_path / name, tmp_path / "a.astro", source_format=None if name.endswith("npz") else "plain-hdf5"
    )
    assert_same(verify_store(tmp_path / "a.astro"), dataset)


@pytest.mark.parametrize(
    ("field", "spelling"),
    [
        (field, spelling)
        for field, spellings in SPELLINGS.items()
        if field in ("observations", "next_observations", "actions", "rewards", "terminated", "truncated")
        for spelling in spellings
    ],
)
def test_every_spelling_is_understood(field: str, spelling: str) -> None:
    columns = {**flat(), "terminated": np.zeros(6, bool), "truncated": flat()["timeouts"]}
    del columns["timeouts"]
    expected = from_dict(columns)
    columns[spelling] = columns.pop(field)
    assert_same(from_dict(columns), expected)


@pytest.mark.parametrize(
    ("name", "value", "rows"),
    [
        ("offsets", [0, 4, 6], 6),
        ("episode_ends", [4, 6], 6),
        ("episode_starts", [0, 4], 6),
        ("episode_starts", [1, 0, 0, 0, 1, 0], 6),
        ("traj_ids", [7, 7, 7, 7, 3, 3], 6),
        ("episode_ends", [3, 4], 4),
        ("traj_ids", [7, 7, 7, 3], 4),
    ],
)
def test_ways_to_tell_trajectories_apart(name: str, value: list[int], rows: int) -> None:
    """One observation more than actions in each trajectory; the marks may count the ones or the others."""
    columns = {"obs": np.arange(6.0)[:, None], "act": np.linspace(0, 1, 4)[:, None], "rew": np.arange(4.0)}
    dataset = from_dict({**columns, name: np.array(value), "energy": np.arange(4.0)})
    assert dataset.lengths.tolist() == [3, 1]
    np.testing.assert_array_equal(dataset.actions[dataset.transition_rows()], columns["act"])
    np.testing.assert_array_equal(dataset.rewards, [0, 1, 2, 0, 3, 0])
    np.testing.assert_array_equal(dataset.extras["energy"], [0, 1, 2, 2, 3, 3])


def test_one_trajectory_needs_no_marks() -> None:
    dataset = from_dict({"obs": np.zeros((5, 2)), "act": np.zeros((4, 1))})
    assert dataset.lengths.tolist() == [4]


def test_a_batch_of_trajectories() -> None:
    observations = np.arange(24.0).reshape(2, 4, 3)
    dataset = from_dict({"obs": observations, "act": np.full((2, 3, 1), 0.5), "rew": np.ones((2, 3))})
    assert dataset.lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(dataset.observations, observations.reshape(8, 3))
    np.testing.assert_array_equal(dataset.rewards, [1, 1, 1, 0, 1, 1, 1, 0])


def test_rows_or_steps_is_asked_where_it_cannot_be_told() -> None:
    columns = {"obs": np.arange(6.0)[:, None], "act": np.full((6, 1), 0.5), "episode_ends": np.array([4, 6])}
    with pytest.raises(DataError, match="cannot be told whether the last row") as error:
        from_dict(columns)
    assert 'layout="rows"' in str(error.value)
    assert from_dict(columns, layout="rows").lengths.tolist() == [3, 1]
    assert from_dict(columns, layout="steps").lengths.tolist() == [3, 1]
    terminal = {"obs": columns["obs"], "act": columns["act"], "terminals": np.array([0, 0, 0, 1, 0, 1])}
    with pytest.raises(DataError, match="cannot be told whether the last row"):
        from_dict(terminal)
    assert from_dict(terminal, layout="rows").lengths.tolist() == [3, 1]
    assert from_dict(terminal, layout="steps").lengths.tolist() == [4, 2]


def test_data_without_any_end_is_refused() -> None:
    with pytest.raises(DataError, match="Nothing says where trajectories end"):
        from_dict({"obs": np.zeros((6, 1)), "act": np.zeros((6, 1))})


def test_dones_alone_are_asked_about_and_with_company_are_not() -> None:
    columns = {**flat(), "dones": flat()["timeouts"]}
    del columns["timeouts"]
    with pytest.raises(DataError, match="over or was cut"):
        from_dict(columns)
    assert from_dict(columns, dones_mean="terminated").terminated.sum() == 2
    assert from_dict(columns, dones_mean="truncated").truncated.sum() == 2
    dataset = from_dict({**columns, "terminals": np.array([0, 0, 1, 0, 0, 0])})
    assert np.flatnonzero(dataset.terminated).tolist() == [2]
    assert np.flatnonzero(dataset.truncated).tolist() == [6]
    with pytest.raises(ConfigError, match="has an effect only"):
        from_dict(flat(), dones_mean="truncated")


def test_a_field_found_twice_is_asked_about_and_can_be_chosen() -> None:
    columns = {**flat(), "states": np.full((6, 2), 9, np.float32)}
    with pytest.raises(DataError, match="observations and states"):
        from_dict(columns)
    dataset = from_dict(columns, fields={"observations": "observations"})
    np.testing.assert_array_equal(dataset.extras["states"][0], [9, 9])


def test_a_field_under_a_name_of_its_own_is_chosen_by_hand() -> None:
    columns = flat()
    columns["proprio"] = columns.pop("observations")
    with pytest.raises(DataError, match="'observations' is missing"):
        from_dict(columns)
    assert_same(from_dict(columns, fields={"observations": "proprio"}), from_dict(flat()))
    with pytest.raises(DataError, match="chosen for 'observations' is not there"):
        from_dict(columns, fields={"observations": "nothing"})
    with pytest.raises(ConfigError, match="did you mean 'observations'"):
        from_dict(columns, fields={"observation": "proprio"})


def test_a_slip_in_an_optional_name_does_not_lose_the_column() -> None:
    columns = flat()
    columns["rewardss"] = columns.pop("rewards")
    with pytest.raises(DataError, match="almost a known one") as error:
        from_dict(columns)
    assert "rewardss" in str(error.value)


def test_what_does_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    columns = {**flat(), "seed": np.array(3), "names": np.array(["a", "b"]), "goals": np.zeros((2, 2))}
    write_columns(tmp_path / "a.npz", columns)
    dataset = load(tmp_path / "a.npz")
    assert dataset.info["left_out"] == ["goals", "names", "seed"]
    assert dataset.extras == {}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"actions": np.zeros((4, 1))}, "different lengths"),
        ({"rewards": np.zeros(5)}, "different lengths"),
        ({"next_observations": np.zeros((6, 3), np.float32)}, "do not fit the observations"),
        ({"traj_ids": np.array([1, 1, 2, 2, 1, 1])}, "not together"),
        ({"episode_ends": np.array([2, 9])}, "do not span"),
        ({"episode_ends": np.array([0.5, 6])}, "cannot be read"),
        ({"episode_ids": np.array(3)}, "cannot be read"),
        ({"episode_ends": np.array([6]), "traj_ids": np.ones(6)}, "more than one way"),
    ],
)
def test_fields_that_do_not_fit(changes: dict[str, np.ndarray], match: str) -> None:
    with pytest.raises(DataError, match=match):
        from_dict({**flat(), **changes})


def test_numbers_of_observations_and_actions_that_do_not_fit() -> None:
    columns = {"obs": np.zeros((6, 1)), "act": np.zeros((3, 1)), "episode_ends": np.array([4, 6])}
    with pytest.raises(DataError, match="do not fit together"):
        from_dict(columns)


def test_hdf5_groups_become_names_with_slashes_and_stay_so(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "a.h5", {**flat(), "infos/goal": np.zeros((6, 2))})
    dataset = load(tmp_path / "a.h5", format="plain-hdf5")
    assert list(dataset.extras) == ["infos/goal"]
    for name in ("b.h5", "b.npz", "b.astro"):
        save(dataset, tmp_path / name)
        assert_same(load(tmp_path / name), dataset)


def test_arrays_in_big_endian_and_in_fortran_order(tmp_path: Path) -> None:
    expected = from_dict(flat())
    columns = flat()
    columns["observations"] = np.asfortranarray(columns["observations"].astype(">f4"))
    columns["rewards"] = columns["rewards"].astype(">f4")
    write_columns(tmp_path / "a.npz", columns)
    assert_same(load(tmp_path / "a.npz"), expected)
    convert(tmp_path / "a.npz", tmp_path / "a.astro")
    assert_same(verify_store(tmp_path / "a.astro"), expected)


def test_the_page_lists_the_spellings_that_are_understood() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data-format.md").read_text()
    for field, spellings in SPELLINGS.items():
        assert f"| `{field}` | {', '.join(f'`{name}`' for name in spellings)} |" in page, field
