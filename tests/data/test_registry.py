"""Formats told apart by content, and options that are refused where they would do nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astro_rl.data import convert, load, save
from astro_rl.data.registry import FORMATS, format_named, format_of
from astro_rl.errors import ConfigError, DataError

from .strategies import assert_same, small

OWN = [
    ("store", "a.astro"),
    ("ogbench", "a.npz"),
    ("plain-npz", "a.npz"),
    ("plain-hdf5", "a.hdf5"),
]


@pytest.mark.parametrize(("name", "file"), OWN)
def test_the_format_is_told_from_the_content_whatever_the_suffix(
    tmp_path: Path, name: str, file: str
) -> None:
    save(small(), tmp_path / file, format=name)
    renamed = (tmp_path / file).rename(tmp_path / "data.bin")
    assert format_of(renamed).name == name
    assert_same(load(renamed), small())


@pytest.mark.parametrize(("name", "file"), OWN)
@pytest.mark.parametrize(("other", "target"), OWN)
def test_every_format_converts_into_every_other(
    tmp_path: Path, name: str, file: str, other: str, target: str
) -> None:
    source, destination = tmp_path / "in" / file, tmp_path / "out" / target
    save(small(), source, format=name)
    convert(source, destination, format=other)
    assert format_of(destination).name == other
    assert_same(load(destination), small())


def test_every_format_has_a_reader_and_a_writer() -> None:
    for format in FORMATS:
        assert not format.recognises(Path("nothing-here"))
        assert format.accepts("overwrite", "write"), format.name


def test_the_suffix_decides_what_is_written(tmp_path: Path) -> None:
    for suffix, name in (
        (".astro", "store"),
        (".npz", "ogbench"),
        (".hdf5", "plain-hdf5"),
        (".h5", "plain-hdf5"),
    ):
        save(small(), tmp_path / f"a{suffix}")
        assert format_of(tmp_path / f"a{suffix}").name == name
    with pytest.raises(ConfigError, match="suffix does not say"):
        save(small(), tmp_path / "a.parquet")


def test_unknown_formats_and_options_are_refused(tmp_path: Path) -> None:
    save(small(), tmp_path / "a.npz")
    with pytest.raises(ConfigError, match="did you mean 'ogbench'"):
        format_named("ogbnch")
    with pytest.raises(ConfigError, match="did you mean 'drop_short'"):
        load(tmp_path / "a.npz", drop_shorts=True)
    with pytest.raises(ConfigError, match="no option 'layout' to read with"):
        load(tmp_path / "a.npz", layout="rows")
    with pytest.raises(ConfigError, match="no option 'compression' to write with"):
        save(small(), tmp_path / "b.npz", compression=9)
    assert not (tmp_path / "b.npz").exists()


def test_a_file_that_is_not_there_is_told_with_a_near_name(tmp_path: Path) -> None:
    save(small(), tmp_path / "antmaze-v0.npz")
    with pytest.raises(DataError, match="no such file") as error:
        load(tmp_path / "antmaze-v1.npz")
    assert "antmaze-v0.npz" in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"\x80\x04\x95 pickle", "a pickle, which is never loaded"),
        (b"\x93NUMPY\x01\x00", "one .npy array"),
        (b"hello world", "hello"),
    ],
)
def test_a_file_in_no_known_format(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match="no known format") as error:
        load(tmp_path / "a.npz")
    assert said in str(error.value)


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    save(small(), tmp_path / "inside.npz")
    with pytest.raises(DataError, match="folder is not a dataset") as error:
        load(tmp_path)
    assert "give the file" in str(error.value)
    for name in ("ogbench", "plain-npz", "plain-hdf5"):
        with pytest.raises(DataError, match="folder was given"):
            load(tmp_path, format=name)


def test_source_and_destination_have_to_differ(tmp_path: Path) -> None:
    save(small(), tmp_path / "a.npz")
    with pytest.raises(DataError, match="are the same"):
        convert(tmp_path / "a.npz", tmp_path / "." / "a.npz", overwrite=True)
    assert_same(load(tmp_path / "a.npz"), small())


def test_progress_is_reported_to_the_end(tmp_path: Path) -> None:
    save(small(), tmp_path / "a.npz")
    for target in ("a.astro", "b.npz", "b.h5"):
        done: list[int] = []
        totals: set[int] = set()

        def tell(now: int, total: int, done: list[int] = done, totals: set[int] = totals) -> None:
            done.append(now)
            totals.add(total)

        convert(tmp_path / "a.npz", tmp_path / target, progress=tell)
        assert done == sorted(done)
        assert totals == {done[-1]}, target


def test_importing_the_data_room_imports_no_file_library() -> None:
    """The command line starts at once: formats and their libraries are imported when a file needs them."""
    code = (
        "import sys, astro_rl.data; "
        "print([m for m in ('h5py', 'minari', 'gymnasium', 'pyarrow', 'mujoco') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_store_made_by_hand_with_numpy_alone_is_described_completely(tmp_path: Path) -> None:
    """What the page promises to other programs: plain arrays, and offsets that say where to cut."""
    save(small(), tmp_path / "a.astro")
    columns = {p.stem: np.load(p, allow_pickle=False) for p in (tmp_path / "a.astro").glob("*.npy")}
    assert set(columns) == {"observations", "actions", "rewards", "terminated", "truncated", "offsets"}
    first, stop = columns["offsets"][1:3]
    np.testing.assert_array_equal(columns["observations"][first:stop], small()[1].observations)
