"""Augmentation to disk: killed or out of room, the same call goes on to the same bytes; every format comes back."""

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl import load
from astro_rl.augment.fitting import no_bar
from astro_rl.data import Dataset, open_store
from astro_rl.errors import ConfigError, DataError
from astro_rl.run import shards as shards_module
from tests.fitted import Fitted

SCRIPT = Path(__file__).with_name("front_door_script.py")
WANTED = 5000
"""Three batches of some 2,000."""


@pytest.fixture(scope="module")
def whole(fitted: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "augmented.npz"
    fitted.stitcher.augment(WANTED, out=out, bar=no_bar)
    return out


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def same(one: Dataset, other: Dataset) -> bool:
    columns, others = one.columns(), other.columns()
    return columns.keys() == others.keys() and all(
        np.array_equal(columns[name], others[name]) for name in columns
    )


def test_the_file_holds_what_memory_would(fitted: Fitted, whole: Path) -> None:
    made = fitted.stitcher.augment(WANTED, bar=no_bar)
    read = load(whole)
    assert read.digest() == made.digest()
    assert read.info["lineage"] == made.info["lineage"]
    assert names(whole.parent) == ["augmented.npz"]


def test_killed_and_continued_is_the_same_file(fitted: Fitted, whole: Path, tmp_path: Path) -> None:
    out, parts = tmp_path / "augmented.npz", tmp_path / "augmented.npz.parts"
    options = json.dumps({"fit": str(fitted.folder), "transitions": WANTED})
    process = fitted.python(SCRIPT, "augment", str(out), options, "augmenting", "1")
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert not out.exists()
    shard = open_store(parts / "round0-00000.astro")
    before = (parts / "round0-00000.json").stat().st_mtime_ns
    assert shard.n_transitions > 0, "a finished shard is a dataset of its own"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards_module, "_write", written := Counting(shards_module._write))
        fitted.stitcher.augment(WANTED, out=out, bar=no_bar)
    assert before and written.numbers[0] == 1, "the finished shard is read, not made again"
    assert out.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["augmented.npz"]


class Counting:
    """`shards._write`, and which batches it wrote; with `room`, on a disk that fills after so many."""

    def __init__(self, real: Any, room: int | None = None) -> None:
        self.real, self.room, self.numbers = real, room, []

    def __call__(self, batch: Any, folder: Path, prefix: str, number: int) -> Any:
        self.numbers.append(number)
        if self.room is not None and len(self.numbers) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.real(batch, folder, prefix, number)


def test_a_full_disk_leaves_finished_shards_and_the_same_call_goes_on(
    fitted: Fitted, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full at each of three moments: a shard's own column, the assembled store, the file itself."""
    out, parts = tmp_path / "augmented.npz", tmp_path / "augmented.npz.parts"

    def refused() -> str:
        with pytest.raises(DataError, match=r"(?s)disk is full.*same command continues") as caught:
            fitted.stitcher.augment(WANTED, out=out, bar=no_bar)
        assert not out.exists()
        assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]
        return str(caught.value)

    with monkeypatch.context() as full:
        full.setattr(shards_module, "_write", Counting(shards_module._write, room=1))
        assert str(parts) in refused()
    assert names(parts) == [
        ".lock",
        "config.json",
        "environment.json",
        "round0-00000.astro",
        "round0-00000.json",
    ]
    assert open_store(parts / "round0-00000.astro").n_transitions > 0
    for module, name in (
        ("astro_rl.data.store_writer", "seal_store"),
        ("astro_rl.data.formats.ogbench", "write_npz"),
    ):
        with monkeypatch.context() as full:
            full.setattr(f"{module}.{name}", no_room)
            refused()
    fitted.stitcher.augment(WANTED, out=out, bar=no_bar)
    assert out.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["augmented.npz"]


def no_room(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_finished_file_is_found_again_and_another_is_not_replaced_unasked(
    fitted: Fitted, whole: Path, tmp_path: Path
) -> None:
    before = whole.stat().st_mtime_ns
    fitted.stitcher.augment(WANTED, out=whole, bar=no_bar)
    assert whole.stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match=r"(?s)something else at the destination.*other settings"):
        fitted.stitcher.augment(WANTED + 1, out=whole, bar=no_bar)
    mine = tmp_path / "notes.npz"
    mine.write_text("mine")
    with pytest.raises(ConfigError, match=r"(?s)something else.*did not make"):
        fitted.stitcher.augment(100, out=mine, bar=no_bar)
    assert mine.read_text() == "mine" and names(tmp_path) == ["notes.npz"]
    made = fitted.stitcher.augment(100, out=mine, overwrite=True, bar=no_bar)
    assert made.n_transitions >= 100 and names(tmp_path) == ["notes.npz"]


def test_what_a_kill_left_beside_a_finished_file_is_removed(fitted: Fitted, tmp_path: Path) -> None:
    out, parts = tmp_path / "augmented.astro", tmp_path / "augmented.astro.parts"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("astro_rl.run.generation.shutil.rmtree", lambda *_, **__: None)
        fitted.stitcher.augment(100, out=out, bar=no_bar)
    assert parts.is_dir()
    fitted.stitcher.augment(100, out=out, bar=no_bar)
    assert names(tmp_path) == ["augmented.astro"]


def test_other_settings_do_not_continue_what_was_begun(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards_module, "_write", Counting(shards_module._write, room=0))
    out = tmp_path / "augmented.astro"
    with pytest.raises(DataError, match="disk is full"):
        fitted.stitcher.augment(100, out=out, bar=no_bar)
    with pytest.raises(ConfigError, match=r"(?s)other settings.*seed: 0 there, 1 asked for"):
        fitted.stitcher.augment(100, out=out, seed=1, bar=no_bar)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.astro", None),
        ("a.npz", None),
        ("a.hdf5", None),
        ("a.hdf5", "d4rl"),
        ("augmented-v0", "minari"),
        ("a.npz", "plain-npz"),
    ],
)
def test_every_format_comes_back_with_lineage_and_is_found_again(
    fitted: Fitted, tmp_path: Path, name: str, format: str | None
) -> None:
    made = fitted.stitcher.augment(100, bar=no_bar)
    read = fitted.stitcher.augment(100, out=tmp_path / name, format=format, bar=no_bar)
    assert same(read, made)
    assert np.array_equal(read.offsets, made.offsets)
    assert read.info["lineage"] == made.info["lineage"]
    again = fitted.stitcher.augment(100, out=tmp_path / name, format=format, bar=no_bar)
    assert same(again, made)
    assert names(tmp_path) == [name]


def test_ogbenchs_own_loader_takes_the_file(fitted: Fitted, whole: Path) -> None:
    """As `ogbench.make_env_and_datasets(dataset_path=…)` reads it: flat transitions with next observations."""
    from ogbench.utils import load_dataset

    theirs, ours = load_dataset(str(whole)), load(whole)
    assert len(theirs["observations"]) == ours.n_transitions
    rows = ours.transition_rows()
    assert np.array_equal(theirs["observations"], ours.observations[rows])
    assert np.array_equal(theirs["next_observations"], ours.observations[rows + 1])
    assert np.array_equal(theirs["actions"], ours.actions[rows])
    assert np.flatnonzero(theirs["terminals"]).tolist() == (np.cumsum(ours.lengths) - 1).tolist()
    assert theirs["observations"].dtype == np.float32


@pytest.mark.parametrize(
    ("name", "format", "named"),
    [("a.foo", None, "suffix"), ("a.h5", "ogbench", "NAME-val"), ("a.npz", "ogbnech", "ogbench")],
)
def test_a_destination_that_cannot_be_written_is_refused_before_work(
    fitted: Fitted, tmp_path: Path, name: str, format: str | None, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        fitted.stitcher.augment(100, out=tmp_path / name, format=format, bar=no_bar)
    assert names(tmp_path) == []


def test_two_rounds_share_the_number_and_the_second_starts_from_both(fitted: Fitted, tmp_path: Path) -> None:
    once = fitted.stitcher.augment(400, bar=no_bar)
    made = fitted.stitcher.augment(400, rounds=2, bar=no_bar)
    assert made.n_transitions >= 400
    assert made.info["lineage"]["rounds"] == 2
    first, second = (part for part in np.split(np.arange(len(made)), [first_round(made, once)]))
    halves = [int(made.lengths[part].sum()) for part in (first, second)]
    assert 200 <= halves[0] < 220 and 180 <= halves[1] < 220
    known = made.extras["source_trajectory"] >= 0
    rows = np.asarray(fitted.dataset.offsets)[made.extras["source_trajectory"][known]]
    rows = rows + made.extras["source_step"][known]
    assert np.array_equal(made.observations[known], fitted.dataset.observations[rows]), (
        "origins are recordings"
    )
    on_disk = fitted.stitcher.augment(400, rounds=2, out=tmp_path / "a.astro", bar=no_bar)
    assert on_disk.digest() == made.digest()
    for account in (made.info["lineage"][name] for name in ("chains", "completions")):
        assert account["kept"] + sum(account["rejected"].values()) == account["proposed"]


def first_round(made: Dataset, once: Dataset) -> int:
    """Trajectories that one round alone begins with as well."""
    count = 0
    while count < len(once) and np.array_equal(made[count].observations, once[count].observations):
        count += 1
    return count
