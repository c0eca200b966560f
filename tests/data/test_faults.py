"""Damaged files, hostile files and full disks: one clear message each, and nothing left behind."""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from astro_rl.data import StoreWriter, convert, from_arrays, load, save
from astro_rl.errors import DataError

from .strategies import assert_same, small, write_columns


def big(rows: int = 60_000) -> Any:
    rng = np.random.default_rng(0)
    return from_arrays(rng.normal(size=(rows, 4)), rng.uniform(-1, 1, (rows, 2)), ends=[rows // 2, rows])


@pytest.fixture(params=["a.npz", "a.h5"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    save(big(2000), tmp_path / request.param)
    return tmp_path / request.param


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.99])
def test_a_file_that_was_cut(file: Path, kept: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(DataError, match="cut or damaged") as error:
        load(file, format="plain-hdf5" if file.suffix == ".h5" else None)
    assert str(file) in str(error.value)


def test_changed_bytes_inside_an_archive_are_found(tmp_path: Path) -> None:
    save(big(2000), tmp_path / "a.npz")
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 3] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match="cut or damaged"):
        load(tmp_path / "a.npz")
    with pytest.raises(DataError, match="cut or damaged"):
        convert(tmp_path / "a.npz", tmp_path / "a.astro")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("name", ["observations", "terminals", "qpos"])
def test_objects_are_never_unpickled(tmp_path: Path, name: str) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    columns = {"observations": np.zeros((2, 1)), "actions": np.zeros((2, 1)), "terminals": np.array([0, 1])}
    columns[name] = np.array([Trap(), Trap()], dtype=object)
    write_columns(tmp_path / "a.npz", columns)
    with pytest.raises(DataError, match="never unpickled") as error:
        load(tmp_path / "a.npz")
    assert f"field:    {name}" in str(error.value)
    assert not (tmp_path / "sprung").exists()


def test_an_archive_that_would_expand_past_the_limit_is_not_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", observations=np.zeros((10**6, 8)), actions=np.zeros((10**6, 2)))
    assert (tmp_path / "a.npz").stat().st_size < 200_000
    with pytest.raises(DataError, match="would expand past the limit; nothing was read") as error:
        load(tmp_path / "a.npz", expand_limit_bytes=2**20)
    assert "76.3 MiB" in str(error.value)
    assert "at most 1.0 MiB" in str(error.value)


def test_an_hdf5_file_that_would_expand_past_the_limit_is_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("observations", shape=(10**12, 8), dtype="f4", chunks=(1000, 8), fillvalue=0.0)
        file.create_dataset("actions", shape=(10**12, 2), dtype="f4", chunks=(1000, 2), fillvalue=0.0)
    with pytest.raises(DataError, match="would expand past the limit"):
        load(tmp_path / "a.h5", format="plain-hdf5")


def npz_with(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", content)


def npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_a_header_that_lies_about_its_array(tmp_path: Path) -> None:
    content = npy_bytes(np.zeros((4, 2), np.float32)).replace(b"(4, 2)", b"(9, 2)")
    npz_with(tmp_path / "a.npz", "observations", content)
    with pytest.raises(DataError, match="header and its data disagree") as error:
        load(tmp_path / "a.npz")
    assert "32 bytes of data" in str(error.value)


def test_an_archive_whose_directory_lies_about_sizes(tmp_path: Path) -> None:
    """A directory that promises little cannot make reading deliver more than it promises."""
    npz_with(tmp_path / "a.npz", "observations", npy_bytes(np.zeros((4, 2), np.float32)))
    content = (tmp_path / "a.npz").read_bytes()
    size = (128 + 32).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(content.replace(size, (128 + 8).to_bytes(4, "little")))
    with pytest.raises(DataError, match="damaged"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00\x10\x00{'descr': oops}\n"])
def test_a_member_that_is_not_an_array(tmp_path: Path, content: bytes) -> None:
    npz_with(tmp_path / "a.npz", "observations", content)
    with pytest.raises(DataError, match="cut or damaged"):
        load(tmp_path / "a.npz")


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match="'observations' is missing"):
        load(tmp_path / "a.npz")


def test_links_to_other_files_are_not_followed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["observations"] = np.zeros((3, 1))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["observations"] = h5py.ExternalLink("secret.h5", "/observations")
        file["actions"] = np.zeros((2, 1))
    with pytest.raises(DataError, match="'observations' is missing"):
        load(tmp_path / "a.h5", format="plain-hdf5")


@pytest.mark.parametrize("name", ["a.astro", "a.npz", "a.h5"])
def test_an_existing_destination_is_kept_unless_overwriting_is_asked_for(tmp_path: Path, name: str) -> None:
    save(small(lengths=(2,)), tmp_path / name)
    with pytest.raises(DataError, match="destination exists"):
        save(small(), tmp_path / name)
    assert load(tmp_path / name).n_trajectories == 1
    save(small(), tmp_path / name, overwrite=True)
    assert_same(load(tmp_path / name), small())


def test_files_and_folders_in_each_others_place(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file.astro").write_text("x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="file was to be written where a folder is"):
        save(small(), tmp_path / "folder.npz", overwrite=True)
    with pytest.raises(DataError, match="folder was to be written where a file is"):
        save(small(), tmp_path / "file.astro", overwrite=True)
    with pytest.raises(DataError, match="folder on the way is a file"):
        save(small(), tmp_path / "file" / "a.npz")


def test_bad_data_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    bad = small().with_rewards(np.full(12, np.inf, np.float32), np.zeros(12, bool))
    for name in ("new/a.astro", "new/a.npz", "new/a.h5"):
        with pytest.raises(DataError, match="not finite"):
            save(bad, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


class FullDisk(io.FileIO):
    """A file on a disk with room for so many bytes and no more."""

    room = 100_000

    def write(self, data: Any, /) -> int:
        FullDisk.room -= len(memoryview(data).cast("B"))
        if FullDisk.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = io.open

    def open_on_full_disk(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not any(letter in mode for letter in "wax+"):
            return real(file, mode, *rest, **options)
        raw = FullDisk(file, mode.replace("b", "").replace("t", ""))
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    monkeypatch.setattr(FullDisk, "room", 100_000)
    monkeypatch.setattr(io, "open", open_on_full_disk)
    monkeypatch.setattr(builtins, "open", open_on_full_disk)
    yield


@pytest.mark.parametrize("name", ["new/a.astro", "new/a.npz"])
@pytest.mark.usefixtures("full_disk")
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="disk is full; nothing was kept") as error:
        save(big(), tmp_path / name)
    assert "expected: about 2.9 MiB" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full_disk")
def test_a_disk_that_fills_while_trajectories_are_appended(tmp_path: Path) -> None:
    batch = big(20_000)
    with pytest.raises(DataError, match="disk is full"), StoreWriter(tmp_path / "a.astro") as writer:
        for _ in range(10):
            writer.extend(batch)
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_noticed_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DataError, match="disk is full") as error:
        save(big(), tmp_path / "a.astro")
    assert "1000 bytes free" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one mebibyte, where we may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system takes privileges that are not given here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", ["a.astro", "a.npz", "a.h5"])
def test_a_full_disk_for_real(small_disk: Path, name: str) -> None:
    with pytest.raises(DataError, match="disk is full; nothing was kept"):
        save(big(), small_disk / name)
    assert list(small_disk.iterdir()) == []
    save(small(), small_disk / name)
    assert_same(load(small_disk / name), small())


def test_a_full_disk_for_real_while_converting(small_disk: Path, tmp_path: Path) -> None:
    save(big(), tmp_path / "a.npz")
    with pytest.raises(DataError, match="disk is full; nothing was kept"):
        convert(tmp_path / "a.npz", small_disk / "a.astro")
    assert list(small_disk.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="cannot be written to"):
        save(small(), tmp_path / "a.npz")
