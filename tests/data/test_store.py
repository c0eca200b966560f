"""The store: whole or absent, memory-mapped, and honest about damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from astro_rl.data import StoreWriter, from_arrays, open_store, verify_store, write_store
from astro_rl.errors import DataError

from .strategies import assert_same, plans, small


@settings(deadline=None, max_examples=15)
@given(plans())
def test_round_trip_is_exact(tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any]) -> None:
    dataset = from_arrays(**plan)
    folder = tmp_path_factory.mktemp("store")
    write_store(dataset, folder / "a.astro")
    found = verify_store(folder / "a.astro")
    assert_same(found, dataset)
    assert {**found.info} == {**dataset.info}
    assert found.stamp is not None
    assert found.stamp[0] == dataset.digest()


@settings(deadline=None, max_examples=15)
@given(plans())
def test_written_piece_by_piece_it_has_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any]
) -> None:
    dataset = from_arrays(**plan)
    folder = tmp_path_factory.mktemp("store")
    write_store(dataset, folder / "whole.astro")
    with StoreWriter(folder / "pieces.astro", info=dataset.info) as writer:
        for number in range(len(dataset)):
            writer.extend(dataset.select([number]))
    for file in sorted((folder / "whole.astro").iterdir()):
        assert (folder / "pieces.astro" / file.name).read_bytes() == file.read_bytes(), file.name


def test_any_reader_of_npy_reads_a_column(tmp_path: Path) -> None:
    dataset = small()
    write_store(dataset, tmp_path / "a.astro")
    found = np.load(tmp_path / "a.astro" / "observations.npy", allow_pickle=False)
    np.testing.assert_array_equal(found, dataset.observations)


def test_columns_are_read_only_maps_and_the_manifest_says_what_there_is(tmp_path: Path) -> None:
    write_store(small(), tmp_path / "a.astro")
    found = open_store(tmp_path / "a.astro")
    assert isinstance(found.observations, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        found.observations[0, 0] = 1
    manifest = json.loads((tmp_path / "a.astro" / "manifest.json").read_text())
    assert (manifest["trajectories"], manifest["rows"], manifest["transitions"]) == (3, 12, 9)
    assert manifest["columns"]["observations"]["shape"] == [12, 2]
    assert manifest["digest"] == small().digest()


def test_the_writer_takes_dictionaries_and_counts(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "a.astro", info={"made": "here"}) as writer:
        for length in (1, 5):
            writer.append({"observations": np.zeros((length + 1, 2)), "actions": np.zeros((length, 1))})
        assert (writer.trajectories, writer.rows) == (2, 8)
    found = verify_store(tmp_path / "a.astro")
    assert found.lengths.tolist() == [1, 5]
    assert found.info["made"] == "here"
    assert found.truncated.sum() == 2


@pytest.mark.parametrize(
    ("second", "match"),
    [
        ({"observations": np.zeros((2, 3)), "actions": np.zeros((1, 1))}, "another shape or type"),
        (
            {"observations": np.zeros((2, 2), np.float32), "actions": np.zeros((1, 1))},
            "another shape or type",
        ),
        ({"observations": np.zeros((2, 2)), "actions": np.zeros((1, 1)), "rewards": [0.0]}, "other columns"),
        ({"observations": np.full((2, 2), np.nan), "actions": np.zeros((1, 1))}, "not finite"),
    ],
)
def test_a_trajectory_that_does_not_fit_leaves_nothing(tmp_path: Path, second: dict, match: str) -> None:
    with pytest.raises(DataError, match=match), StoreWriter(tmp_path / "a.astro") as writer:
        writer.append({"observations": np.zeros((2, 2)), "actions": np.zeros((1, 1))})
        writer.append(second)
    assert list(tmp_path.iterdir()) == []


def test_giving_up_leaves_nothing(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "deep" / "er" / "a.astro") as writer:
        writer.extend(small())
        writer.abort()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), StoreWriter(tmp_path / "a.astro") as writer:
        writer.extend(small())
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No trajectory was written"), StoreWriter(tmp_path / "a.astro"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_overwritten_only_on_request_and_nothing_else_ever_is(tmp_path: Path) -> None:
    path = tmp_path / "a.astro"
    write_store(small(lengths=(2,)), path)
    with pytest.raises(DataError, match="destination exists"):
        write_store(small(), path)
    write_store(small(), path, overwrite=True)
    assert open_store(path).n_trajectories == 3
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("years of work")
    with pytest.raises(DataError, match="not a store, and is not overwritten"):
        write_store(small(), other, overwrite=True)
    assert (other / "chapter.tex").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.astro", "thesis"]


def test_info_has_to_be_json(tmp_path: Path) -> None:
    arrays = np.zeros((2, 1)), np.zeros((2, 1))
    write_store(
        from_arrays(*arrays, ends=[2], info={"scale": np.float32(2), "at": np.arange(2)}), tmp_path / "a"
    )
    assert open_store(tmp_path / "a").info["at"] == [0, 1]
    for bad in (object(), float("nan")):
        with pytest.raises(DataError, match="cannot be written as JSON"):
            write_store(from_arrays(*arrays, ends=[2], info={"bad": bad}), tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_store(small(), tmp_path / "a.astro")
    return tmp_path / "a.astro"


def change_manifest(store: Path, **changes: Any) -> None:
    file = store / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_missing_column(store: Path) -> None:
    (store / "actions.npy").unlink()
    with pytest.raises(DataError, match="column of the store is missing"):
        open_store(store)


def test_a_cut_column_is_noticed_on_opening(store: Path) -> None:
    file = store / "observations.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DataError, match="was cut") as error:
        open_store(store)
    assert "216 bytes" in str(error.value)
    assert "224 bytes" in str(error.value)


def test_a_column_that_is_not_what_the_manifest_says(store: Path) -> None:
    np.save(store / "observations.npy", np.zeros((24, 1), np.float32))
    with pytest.raises(DataError, match="not what the manifest says"):
        open_store(store)


def test_one_changed_bit_is_found_by_verifying(store: Path) -> None:
    file = store / "observations.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    open_store(store)
    with pytest.raises(DataError, match="bytes are not those that were written"):
        verify_store(store)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "astro-rl dataset"}', '{"format": "other"}']
)
def test_a_damaged_manifest(store: Path, text: str) -> None:
    (store / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="manifest is damaged"):
        open_store(store)


def test_a_store_of_a_newer_version(store: Path) -> None:
    change_manifest(store, format_version=2)
    with pytest.raises(DataError, match="newer version"):
        open_store(store)


def test_a_manifest_that_points_elsewhere_is_refused(store: Path) -> None:
    columns = json.loads((store / "manifest.json").read_text())["columns"]
    change_manifest(store, columns={**columns, "../../secret": columns["rewards"]})
    with pytest.raises(DataError, match="column of the store is missing"):
        open_store(store)


def test_damaged_offsets_are_noticed_on_opening(store: Path) -> None:
    np.save(store / "offsets.npy", np.array([0, 9, 4, 12]))
    with pytest.raises(DataError, match="do not rise"):
        open_store(store)


def test_what_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such store"):
        open_store(tmp_path / "none")
    (tmp_path / "file.astro").write_text("x")
    with pytest.raises(DataError, match="this is a file"):
        open_store(tmp_path / "file.astro")
    with pytest.raises(DataError, match="folder is not a store"):
        open_store(tmp_path)


def test_bytes_do_not_depend_on_when_or_where(tmp_path: Path) -> None:
    for name in ("a.astro", "b.astro"):
        write_store(small(), tmp_path / name)
    for file in sorted((tmp_path / "a.astro").iterdir()):
        assert file.read_bytes() == (tmp_path / "b.astro" / file.name).read_bytes()


def test_a_store_larger_than_memory_opens(tmp_path: Path) -> None:
    """A hundred million rows that are holes in the files: were they read, memory would not do."""
    small_store = tmp_path / "a.astro"
    write_store(small(rewards=False), small_store)
    manifest = json.loads((small_store / "manifest.json").read_text())
    trajectories, rows = 500_000, 100_500_000
    shapes = {"observations": (rows, 29), "actions": (rows, 8), "terminated": (rows,), "truncated": (rows,)}
    for name, shape in shapes.items():
        entry = manifest["columns"][name]
        with (small_store / f"{name}.npy").open("wb") as file:
            header = {"descr": entry["dtype"], "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            size = file.tell() + np.dtype(entry["dtype"]).itemsize * int(np.prod(shape))
            file.truncate(size)
        entry.update(shape=shape, bytes=size)
    np.save(small_store / "offsets.npy", np.arange(trajectories + 1) * 201)
    manifest["columns"]["offsets"].update(
        shape=[trajectories + 1], bytes=(small_store / "offsets.npy").stat().st_size
    )
    change_manifest(small_store, columns=manifest["columns"])
    found = open_store(small_store)
    assert found.n_transitions == 100_000_000
    assert found.observations.nbytes > 11 * 10**9
    assert not found[499_999].observations.any()


def test_a_changed_copy_of_an_opened_store_gets_its_own_digest(tmp_path: Path) -> None:
    write_store(small(), tmp_path / "x.astro")
    opened = open_store(tmp_path / "x.astro")
    changed = replace(opened, actions=np.zeros_like(opened.actions))
    assert opened.digest() == small().digest()
    assert changed.digest() != opened.digest()
    assert changed.digest() == replace(small(), actions=np.zeros_like(small().actions)).digest()
