"""OGBench's files: read, written back as they were, and read by OGBench itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from astro_rl.data import convert, from_arrays, load, save, verify_store
from astro_rl.data.formats.ogbench import validation_path
from astro_rl.errors import ConfigError, DataError

from .strategies import assert_same, plans, small, write_columns


def ogbench_columns(episodes: int = 4, rows: int = 6, seed: int = 0) -> dict[str, np.ndarray]:
    """What OGBench's generator writes for a pointmaze: end rows have real actions, terminals are bool."""
    rng = np.random.default_rng(seed)
    terminals = np.zeros((episodes, rows), dtype=bool)
    terminals[:, -1] = True
    return {
        "observations": rng.normal(size=(episodes * rows, 2)).astype(np.float32),
        "actions": rng.uniform(-1, 1, size=(episodes * rows, 2)).astype(np.float32),
        "terminals": terminals.ravel(),
        "qpos": rng.normal(size=(episodes * rows, 2)).astype(np.float32),
        "qvel": rng.normal(size=(episodes * rows, 2)).astype(np.float32),
    }


def read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def assert_same_columns(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, column in expected.items():
        assert (found[name].dtype, found[name].shape) == (column.dtype, column.shape), name
        assert found[name].tobytes() == column.tobytes(), name


@pytest.mark.parametrize("terminals_type", [bool, np.float32, np.uint8])
def test_a_file_is_written_again_as_it_was(tmp_path: Path, terminals_type: type) -> None:
    columns = ogbench_columns()
    columns["terminals"] = columns["terminals"].astype(terminals_type)
    columns["button_states"] = np.arange(48).reshape(24, 2)
    write_columns(tmp_path / "a-v0.npz", columns)
    dataset = load(tmp_path / "a-v0.npz")
    assert dataset.lengths.tolist() == [5, 5, 5, 5]
    assert dataset.rewards is None
    save(dataset, tmp_path / "b-v0.npz")
    assert_same_columns(read_npz(tmp_path / "b-v0.npz"), columns)


def test_the_way_over_a_store_changes_nothing(tmp_path: Path) -> None:
    columns = ogbench_columns()
    write_columns(tmp_path / "a-v0.npz", columns)
    convert(tmp_path / "a-v0.npz", tmp_path / "a.astro")
    convert(tmp_path / "a.astro", tmp_path / "b-v0.npz")
    assert_same_columns(read_npz(tmp_path / "b-v0.npz"), columns)


def test_rows_mean_what_ogbench_says(tmp_path: Path) -> None:
    columns = ogbench_columns()
    write_columns(tmp_path / "a-v0.npz", columns)
    dataset = load(tmp_path / "a-v0.npz")
    np.testing.assert_array_equal(dataset.end_rows, np.flatnonzero(columns["terminals"]))
    np.testing.assert_array_equal(dataset.actions, columns["actions"])
    np.testing.assert_array_equal(np.flatnonzero(dataset.truncated), dataset.end_rows - 1)
    assert not dataset.terminated.any()
    assert dataset.info["source"] == "ogbench"
    assert dataset.info["source_file"] == "a-v0.npz"


@pytest.mark.parametrize("own_end_rows", [False, True])
def test_rewards_and_masks_of_a_single_task(tmp_path: Path, own_end_rows: bool) -> None:
    """Success in the middle of an episode that goes on; end rows keep what the file had there."""
    columns = ogbench_columns()
    success = np.zeros(24, dtype=np.float32)
    success[[2, 3, 10]] = 1
    if own_end_rows:
        success[5] = 1
    columns.update(rewards=success - 1, masks=1 - success)
    write_columns(tmp_path / "a-v0.npz", columns)
    dataset = load(tmp_path / "a-v0.npz")
    assert np.flatnonzero(dataset.terminated).tolist() == [2, 3, 10]
    # Row 10 leaves the last transition of its episode, which therefore is not truncated.
    assert np.flatnonzero(dataset.truncated).tolist() == [4, 16, 22]
    save(dataset, tmp_path / "b-v0.npz")
    assert_same_columns(read_npz(tmp_path / "b-v0.npz"), columns)


def test_relabelled_data_is_written_with_its_new_masks(tmp_path: Path) -> None:
    columns = ogbench_columns()
    columns.update(rewards=np.zeros(24, np.float32), masks=np.ones(24, np.float32))
    columns["masks"][5] = 0
    write_columns(tmp_path / "a-v0.npz", columns)
    terminated = np.zeros(24, dtype=bool)
    terminated[1] = True
    save(
        load(tmp_path / "a-v0.npz").with_rewards(np.full(24, -2, np.float32), terminated), tmp_path / "b.npz"
    )
    masks = read_npz(tmp_path / "b.npz")["masks"]
    assert np.flatnonzero(masks == 0).tolist() == [1, 5]


@settings(deadline=None, max_examples=25)
@given(plans())
def test_any_dataset_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any]
) -> None:
    dataset = from_arrays(**plan)
    path = tmp_path_factory.mktemp("ogbench") / "a.npz"
    save(dataset, path)
    found = load(path)
    assert found.info["source"] == "ogbench"
    assert_same(found, dataset)
    assert found.info.get("lineage") == dataset.info.get("lineage")


def test_validation_data_is_written_and_read_beside_the_file(tmp_path: Path) -> None:
    train, validation = small(lengths=(3, 2)), small(lengths=(4,))
    save(train, tmp_path / "a-v0.npz", validation=validation)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-v0-val.npz", "a-v0.npz"]
    assert_same(load(tmp_path / "a-v0.npz"), train)
    assert_same(load(tmp_path / "a-v0.npz", validation=True), validation)
    assert validation_path("x/a-v0.npz") == Path("x/a-v0-val.npz")


def test_neither_file_is_written_if_one_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "a-v0.npz").write_text("mine")
    with pytest.raises(DataError, match="destination exists"):
        save(small(), tmp_path / "a-v0.npz", validation=small())
    assert [p.name for p in tmp_path.iterdir()] == ["a-v0.npz"]


def test_the_name_has_to_be_one_that_ogbench_finds(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"NAME-val\.npz"):
        save(small(), tmp_path / "a.bin", format="ogbench")


def test_same_data_same_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save(small(), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("name", ["observations", "actions", "terminals"])
def test_a_misnamed_field_is_told_with_the_name_that_was_meant(tmp_path: Path, name: str) -> None:
    columns = ogbench_columns()
    columns[name[:-1] + "z"] = columns.pop(name)
    write_columns(tmp_path / "a.npz", columns)
    with pytest.raises(DataError, match=f"field '{name}' is missing") as error:
        load(tmp_path / "a.npz", format="ogbench")
    assert f"did you mean {name[:-1] + 'z'!r}" in str(error.value)


def test_a_missing_last_terminal(tmp_path: Path) -> None:
    columns = ogbench_columns()
    columns["terminals"][-1] = False
    write_columns(tmp_path / "a.npz", columns)
    with pytest.raises(DataError, match="last trajectory is not closed"):
        load(tmp_path / "a.npz")
    assert load(tmp_path / "a.npz", close_last=True).lengths.tolist() == [5, 5, 5, 5]


def test_short_trajectories_are_dropped_while_streaming_too(tmp_path: Path) -> None:
    columns = ogbench_columns()
    columns["terminals"][[6, 7]] = True
    write_columns(tmp_path / "a.npz", columns)
    with pytest.raises(DataError, match="trajectory 1 has one row; 2 of 6"):
        load(tmp_path / "a.npz")
    convert(tmp_path / "a.npz", tmp_path / "a.astro", read_options={"drop_short": True})
    found = verify_store(tmp_path / "a.astro")
    assert found.lengths.tolist() == [5, 3, 5, 5]
    np.testing.assert_array_equal(found.observations, np.delete(columns["observations"], [6, 7], axis=0))
    assert_same(load(tmp_path / "a.npz", drop_short=True), found)


def test_the_compact_form_is_told_apart(tmp_path: Path) -> None:
    columns = ogbench_columns()
    columns["valids"] = 1 - columns["terminals"].astype(np.float32)
    write_columns(tmp_path / "a.npz", columns)
    with pytest.raises(DataError, match="compact form"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("compact", [False, True])
def test_ogbench_loads_what_we_write(tmp_path: Path, compact: bool) -> None:
    """The environment's loader gives the same arrays for our files as for its own."""
    ogbench = pytest.importorskip("ogbench")
    (tmp_path / "own").mkdir()
    for suffix, seed in (("", 0), ("-val", 1)):
        columns = ogbench_columns(seed=seed)
        write_columns(tmp_path / "own" / f"pointmaze-medium-stitch-v0{suffix}.npz", columns)
    own = tmp_path / "own" / "pointmaze-medium-stitch-v0.npz"
    ours = tmp_path / "pointmaze-medium-stitch-v0.npz"
    save(load(own), ours, validation=load(own, validation=True))
    loaded = [
        ogbench.make_env_and_datasets(
            "pointmaze-medium-stitch-v0",
            dataset_path=str(path),
            compact_dataset=compact,
            dataset_only=True,
            add_info=True,
        )
        for path in (own, ours)
    ]
    for expected, found in zip(*loaded, strict=True):
        assert expected.keys() == found.keys()
        for name in expected:
            assert expected[name].dtype == found[name].dtype
            np.testing.assert_array_equal(expected[name], found[name])


def test_ogbench_sees_our_transitions(tmp_path: Path) -> None:
    """A dataset that never came from OGBench: its loader finds exactly our transitions."""
    utils = pytest.importorskip("ogbench.utils")
    dataset = small()
    save(dataset, tmp_path / "a-v0.npz")
    found = utils.load_dataset(str(tmp_path / "a-v0.npz"))
    rows = dataset.transition_rows()
    np.testing.assert_array_equal(found["observations"], dataset.observations[rows])
    np.testing.assert_array_equal(found["next_observations"], dataset.observations[rows + 1])
    np.testing.assert_array_equal(found["actions"], dataset.actions[rows])
    np.testing.assert_array_equal(found["terminals"], dataset.truncated[rows])
