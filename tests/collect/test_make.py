"""Whole datasets: the same bytes from any number of workers, files that OGBench loads, and clear refusals."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl.collect import make_dataset, partial
from astro_rl.errors import AstroError, ConfigError, DataError, UnavailableError

STITCH = "pointmaze-medium-stitch-v0"


def content(paths: tuple[Path, Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_dataset(STITCH, out=tmp_path_factory.mktemp("made"), episodes=24, workers=0)


def test_any_number_of_workers_makes_the_same_bytes(made: tuple[Path, Path], tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    many = make_dataset(
        STITCH, out=tmp_path / "new" / "folder", episodes=24, workers=3, progress=lambda *p: heard.append(p)
    )
    assert content(many) == content(made)
    assert heard[0] == (0, 26)
    assert heard[-1] == (26, 26)
    assert heard == sorted(heard)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"{STITCH}-val.npz",
        f"{STITCH}.made.json",
        f"{STITCH}.npz",
    ]


def test_ogbench_loads_what_was_made(made: tuple[Path, Path]) -> None:
    ogbench = pytest.importorskip("ogbench")
    _, train, val = ogbench.make_env_and_datasets(STITCH, dataset_path=str(made[0]), add_info=True)
    with np.load(made[0], allow_pickle=False) as arrays:
        assert arrays.files == ["observations", "actions", "terminals", "qpos", "qvel"]
        stored = {name: arrays[name] for name in arrays.files}
    inner = ~stored["terminals"]
    np.testing.assert_array_equal(train["observations"], stored["observations"][inner])
    np.testing.assert_array_equal(train["actions"], stored["actions"][inner])
    np.testing.assert_array_equal(train["qpos"], stored["qpos"][inner])
    assert train["terminals"].sum() == 24
    assert len(val["observations"]) == 2 * 200


def test_ogbench_relabels_what_was_made(made: tuple[Path, Path]) -> None:
    ogbench = pytest.importorskip("ogbench")
    name = "pointmaze-medium-stitch-singletask-task2-v0"
    _, train, _ = ogbench.make_env_and_datasets(name, dataset_path=str(made[0]))
    assert set(np.unique(train["rewards"])) == {-1.0, 0.0}


def test_report_says_how_the_files_came_about(made: tuple[Path, Path]) -> None:
    report = json.loads((made[0].parent / f"{STITCH}.made.json").read_text())
    assert report["request"]["seed"] == 0
    assert report["request"]["recipe"]["noise"] == 0.5
    assert report["files"][made[0].name]["rows"] == 24 * 201
    assert report["files"][made[0].name]["bytes"] == made[0].stat().st_size


def test_more_episodes_begin_with_the_same_ones(made: tuple[Path, Path], tmp_path: Path) -> None:
    more = make_dataset(STITCH, out=tmp_path, episodes=27, val_episodes=3, workers=0)
    for few, many in zip(made, more, strict=True):
        with np.load(few, allow_pickle=False) as first, np.load(many, allow_pickle=False) as longer:
            for name in first.files:
                np.testing.assert_array_equal(first[name], longer[name][: len(first[name])])


def test_seeds_splits_and_episodes_differ(made: tuple[Path, Path], tmp_path: Path) -> None:
    other = make_dataset(STITCH, out=tmp_path, episodes=2, seed=1, workers=0)
    starts = []
    for path in (*made, *other):
        with np.load(path, allow_pickle=False) as arrays:
            starts.append(arrays["observations"][::201])
    together = np.concatenate(starts)
    assert len(np.unique(together, axis=0)) == len(together) == 24 + 2 + 2 + 1


def test_a_store_holds_the_same_rows(made: tuple[Path, Path], tmp_path: Path) -> None:
    from astro_rl.data import load

    stores = make_dataset(STITCH, out=tmp_path, episodes=24, workers=0, format="store")
    for store, npz in zip(stores, made, strict=True):
        assert store.suffix == ".astro"
        assert load(store).digest() == load(npz).digest()
    assert len(list(tmp_path.iterdir())) == 3


def test_the_same_request_returns_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_dataset(STITCH, out=tmp_path, episodes=2, workers=0)
    monkeypatch.setattr("astro_rl.collect.make.build_collector", lambda recipe: pytest.fail("made again"))
    assert make_dataset(STITCH, out=tmp_path, episodes=2, workers=0) == first
    assert len(list(tmp_path.iterdir())) == 3


def test_files_of_another_origin_are_not_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / f"{STITCH}.npz"
    theirs.write_bytes(b"precious")
    with pytest.raises(DataError, match="this request did not make it"):
        make_dataset(STITCH, out=tmp_path, episodes=2, workers=0)
    assert theirs.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [theirs]
    make_dataset(STITCH, out=tmp_path, episodes=2, workers=0, overwrite=True)
    assert theirs.read_bytes()[:2] == b"PK"
    with pytest.raises(DataError, match="this request did not make it"):
        make_dataset(STITCH, out=tmp_path, episodes=3, workers=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "pointmaze-medium-stich-v0"}, UnavailableError, "pointmaze-medium-stitch-v0"),
        (
            {"name": "humanoidmaze-medium-stitch-v0"},
            UnavailableError,
            "astro-rl data fetch humanoidmaze-medium",
        ),
        ({"name": "antsoccer-arena-navigate-v0"}, UnavailableError, "astro-rl data fetch antsoccer-arena"),
        ({"name": "antmaze-umaze-v2"}, UnavailableError, "astro-rl data fetch antmaze-umaze-v2"),
        ({"episodes": 0}, ConfigError, "expected: 1 or more"),
        ({"episodes": 5, "val_episodes": 0}, ConfigError, "needs the validation file"),
        ({"episodes": 5, "seed": -1}, ConfigError, "field:    seed"),
        ({"episodes": 5, "workers": -1}, ConfigError, "field:    workers"),
        ({"episodes": 5, "format": "hdf5"}, ConfigError, "astro-rl data convert"),
    ],
)
def test_requests_that_make_no_sense_leave_nothing(
    arguments: dict[str, Any], error: type[AstroError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        make_dataset(**{"name": STITCH, "out": tmp_path / "out", "workers": 0, **arguments})
    assert not (tmp_path / "out").exists() or arguments.get("workers") == -1


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_where_the_folder_should_be(inside: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"file:     .*/file"):
        make_dataset(STITCH, out=tmp_path / "file" / inside, episodes=2, workers=0)
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "disk is full.*finished episodes are kept"),
        (errno.EROFS, "cannot be written"),
        (errno.EACCES, "cannot be written"),
        (errno.EIO, "cannot be used"),
    ],
)
def test_refusals_of_the_system_are_explained(code: int, message: str) -> None:
    error = partial.explain(OSError(code, os.strerror(code), "there"), Path("out"))
    assert isinstance(error, DataError)
    assert re.search(f"(?s){message}", str(error))
    assert "there" in str(error)


def test_a_disk_that_fills_up_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[str] = []
    save: Any = np.savez

    def full_after_one(file: Any, **columns: np.ndarray) -> None:
        if saved:
            file.write(b"half a file")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        saved.append(file.name)
        save(file, **columns)

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full_after_one)
        with pytest.raises(DataError, match="The disk is full"):
            make_dataset(STITCH, out=tmp_path, episodes=24, workers=0)
    assert [path.name for path in (tmp_path / f".{STITCH}.partial" / "shards").iterdir()] == [
        "train-0000000.npz"
    ]
    assert make_dataset(STITCH, out=tmp_path, episodes=24, workers=0)[0].exists()


def test_a_disk_full_for_the_final_file_leaves_none(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def refuse(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr("astro_rl.collect.npz_writer.os.fsync", refuse)
        patched.setattr("astro_rl.collect.partial._write_json", lambda path, content: path.write_text("{}"))
        with pytest.raises(DataError, match="The disk is full"):
            make_dataset(STITCH, out=tmp_path, episodes=24, workers=0)
    assert not list(tmp_path.rglob(f"{STITCH}*.npz"))


def test_a_disk_too_small_is_told_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 100_000})
    monkeypatch.setattr("astro_rl.collect.make.shutil.disk_usage", lambda path: usage)
    with pytest.raises(DataError, match=r"0 MB free(?s:.*)expected: \d+ MB: 5500 episodes"):
        make_dataset(STITCH, out=tmp_path, workers=0)
