"""Downloads from a server on this machine that breaks off, lies, stalls and loses files; nothing leaves the
machine."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import h5py
import numpy as np
import pytest

from astro_rl.data import download as download_module
from astro_rl.data import fetch as fetch_module
from astro_rl.data.catalogue import KnownDataset
from astro_rl.data.download import HostFailed, Patience, download
from astro_rl.data.fetch import fetch, fetch_known
from astro_rl.errors import AstroError, DataError, UnavailableError

ROWS, VAL_ROWS = 30_000, 300
QUICK = Patience(timeout=2.0, attempts=3, sleep=lambda _: None)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def archive(rows: int, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        observations=rng.normal(size=(rows, 2)).astype(np.float32),
        actions=rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        terminals=np.arange(rows) % 100 == 99,
    )
    return buffer.getvalue()


def d4rl_file(tmp_path: Path) -> bytes:
    path = tmp_path / "source.hdf5"
    with h5py.File(path, "w") as file:
        for name, size in (("observations", 29), ("actions", 8)):
            file.create_dataset(name, data=np.ones((50, size), dtype=np.float32), compression="gzip")
        for name in ("rewards", "terminals", "timeouts"):
            file.create_dataset(name, data=np.zeros(50, dtype=np.float32), compression="gzip")
    return path.read_bytes()


@dataclass
class Host:
    """What a server holds, how it misbehaves, and what it was asked."""

    files: dict[str, bytes]
    breaks_after: int | None = None
    """Bytes of a body after which the connection is cut."""
    breaks: int = 0
    """How many answers are cut, -1 for all."""
    continues: bool = True
    """Whether it understands Range."""
    errors: list[int] = field(default_factory=list)
    """Statuses to answer with before anything else."""
    spoils: int = 0
    """How many answers have a byte changed."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""

    @property
    def template(self) -> str:
        return self.address + "/{folder}/{file}"


@pytest.fixture
def serve() -> Iterator[object]:
    running: list[ThreadingHTTPServer] = []

    def start(host: Host) -> Host:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self, host)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(server)
        host.address = f"http://127.0.0.1:{server.server_port}"
        return host

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def answer(handler: BaseHTTPRequestHandler, host: Host) -> None:
    wanted = handler.headers.get("Range")
    host.asked.append((handler.path, wanted))
    body = host.files.get(handler.path.rsplit("/", 1)[-1])
    if host.errors or body is None:
        handler.send_error(host.errors.pop(0) if host.errors else 404)
        return
    start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and host.continues else 0
    if start >= len(body):
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(body)}")
        handler.end_headers()
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    part = bytearray(body[start:])
    handler.send_header("Content-Length", str(len(part)))
    handler.end_headers()
    if host.spoils:
        host.spoils -= 1
        part[len(part) // 2] ^= 0xFF
    if host.breaks and host.breaks_after is not None:
        host.breaks -= 1
        part = part[: host.breaks_after]
    handler.wfile.write(part)


@pytest.fixture
def files() -> dict[str, bytes]:
    return {"maze-v0.npz": archive(ROWS), "maze-v0-val.npz": archive(VAL_ROWS, seed=1)}


@pytest.fixture
def known() -> KnownDataset:
    names = ("maze-v0.npz", "maze-v0-val.npz")
    return KnownDataset("maze-v0", "ogbench", names, (ROWS, VAL_ROWS), (300, 3), "ogbench", names)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


WHOLE = ["maze-v0-val.npz", "maze-v0-val.npz.sha256", "maze-v0.npz", "maze-v0.npz.sha256"]


def test_both_files_arrive_with_their_digests(tmp_path: Path, serve, files, known) -> None:
    host = serve(Host(files))
    seen: list[tuple[int, int]] = []
    paths = fetch_known(
        known, tmp_path / "new" / "data", hosts=[host.template], patience=QUICK,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert [path.name for path in paths] == ["maze-v0.npz", "maze-v0-val.npz"]
    assert left(paths[0].parent) == WHOLE
    for path in paths:
        assert path.read_bytes() == files[path.name]
        noted = path.with_name(path.name + ".sha256").read_text()
        assert noted == f"{hashlib.sha256(files[path.name]).hexdigest()}  {path.name}\n"
    assert (len(files["maze-v0.npz"]),) * 2 in seen
    assert [path for path, _ in host.asked] == ["/ogbench/maze-v0.npz", "/ogbench/maze-v0-val.npz"]


def test_what_is_there_already_is_kept_without_asking_anyone(tmp_path: Path, files, known) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    fetch_known(known, tmp_path, hosts=[])
    assert left(tmp_path) == WHOLE
    fetch_known(known, tmp_path, hosts=[])


def test_a_broken_off_download_continues_where_it_was(tmp_path: Path, serve, files, known) -> None:
    host = serve(Host(files, breaks_after=100_000, breaks=3))
    fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert (tmp_path / "maze-v0.npz").read_bytes() == files["maze-v0.npz"]
    ranges = [wanted for path, wanted in host.asked if path.endswith("v0.npz")]
    assert ranges == [None, "bytes=100000-", "bytes=200000-", "bytes=300000-"]


def test_the_next_call_continues_too_and_so_does_a_mirror(tmp_path: Path, serve, files, known) -> None:
    broken = serve(Host(files, breaks_after=100_000, breaks=1))
    broken.files = {}
    partial = tmp_path / ".maze-v0.npz.part"
    partial.write_bytes(files["maze-v0.npz"][:150_000])
    mirror = serve(Host(files))
    fetch_known(known, tmp_path, hosts=[broken.template, mirror.template], patience=QUICK)
    assert mirror.asked[0] == ("/ogbench/maze-v0.npz", "bytes=150000-")
    assert left(tmp_path) == WHOLE


def test_a_host_that_cannot_continue_starts_again(tmp_path: Path, serve, files, known) -> None:
    host = serve(Host(files, breaks_after=100_000, breaks=1, continues=False))
    fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert (tmp_path / "maze-v0.npz").read_bytes() == files["maze-v0.npz"]


def test_a_partial_file_that_is_whole_is_not_fetched_again(tmp_path: Path, serve, files, known) -> None:
    (tmp_path / ".maze-v0.npz.part").write_bytes(files["maze-v0.npz"])
    host = serve(Host(files))
    fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert left(tmp_path) == WHOLE and len(host.asked) == 2


def test_leftovers_of_another_file_are_found_by_their_checksum(tmp_path: Path, serve, files, known) -> None:
    """A partial file may be of an older version, or longer than the file: the end result is right all the
    same."""
    for leftover in (b"x" * 5000, b"x" * 10**6):
        folder = tmp_path / str(len(leftover))
        folder.mkdir()
        (folder / ".maze-v0.npz.part").write_bytes(leftover)
        fetch_known(known, folder, hosts=[serve(Host(files)).template], patience=QUICK)
        assert (folder / "maze-v0.npz").read_bytes() == files["maze-v0.npz"]
        assert left(folder) == WHOLE


def test_missing_files_are_looked_for_at_the_mirror_at_once(tmp_path: Path, serve, files, known) -> None:
    official, mirror = serve(Host({})), serve(Host(files))
    fetch_known(known, tmp_path, hosts=[official.template, mirror.template], patience=QUICK)
    assert left(tmp_path) == WHOLE
    assert len(official.asked) == 2  # once a file: asking again for what is not there changes nothing


def test_passing_faults_are_waited_out_with_growing_pauses(tmp_path: Path, serve, files, known) -> None:
    pauses: list[float] = []
    host = serve(Host(files, errors=[503, 500]))
    fetch_known(known, tmp_path, hosts=[host.template], patience=Patience(2.0, 3, 1.0, pauses.append))
    assert pauses == [1.0, 2.0] and left(tmp_path) == WHOLE


def test_a_dead_host_is_given_up_and_the_mirror_serves(tmp_path: Path, serve, files, known) -> None:
    dead, mirror = "http://127.0.0.1:9/{folder}/{file}", serve(Host(files))
    fetch_known(known, tmp_path, hosts=[dead, mirror.template], patience=QUICK)
    assert left(tmp_path) == WHOLE


def test_a_stalled_connection_times_out(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(HostFailed, match="timed out"):
            download(url, tmp_path / "x", Patience(timeout=0.1, attempts=2, sleep=lambda _: None))


def test_a_host_that_never_gets_anywhere_is_given_up(tmp_path: Path, serve, files) -> None:
    host = serve(Host(files, breaks_after=0, breaks=-1))
    with pytest.raises(HostFailed, match="3 attempts"):
        download(f"{host.address}/maze-v0.npz", tmp_path / "x", QUICK)
    assert len(host.asked) == 3


def test_damaged_bytes_are_never_kept(tmp_path: Path, serve, files, known) -> None:
    spoiling, mirror = serve(Host(files, spoils=9)), serve(Host(files))
    fetch_known(known, tmp_path / "a", hosts=[spoiling.template, mirror.template], patience=QUICK)
    assert (tmp_path / "a" / "maze-v0.npz").read_bytes() == files["maze-v0.npz"]
    with pytest.raises(UnavailableError, match=r"checksum|whole archive|damaged"):
        fetch_known(known, tmp_path / "b", hosts=[serve(Host(files, spoils=9)).template], patience=QUICK)
    assert left(tmp_path / "b") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>please log in</html>", "not a whole archive"),
        (archive(ROWS // 2), "15,000 rows"),
        (b"", "not a whole archive"),
    ],
    ids=["page", "rows", "empty"],
)
def test_other_files_under_the_right_name_are_refused(
    tmp_path: Path, serve, files, known, content: bytes, message: str
) -> None:
    host = serve(Host({**files, "maze-v0.npz": content}))
    with pytest.raises(UnavailableError, match=message):
        fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert left(tmp_path) == []


def test_other_numbers_of_rows_pass_if_asked_for(tmp_path: Path, serve, files, known) -> None:
    host = serve(Host({**files, "maze-v0.npz": archive(400)}))
    paths = fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK, any_size=True)
    with np.load(paths[0], allow_pickle=False) as arrays:
        assert len(arrays["observations"]) == 400


def test_changed_and_wrong_local_files_are_told_and_left_alone(tmp_path: Path, serve, files, known) -> None:
    fetch_known(known, tmp_path, hosts=[serve(Host(files)).template], patience=QUICK)
    path = tmp_path / "maze-v0.npz"
    path.write_bytes(files["maze-v0.npz"][:-1000])
    with pytest.raises(DataError, match="changed since"):
        fetch_known(known, tmp_path, hosts=[])
    (tmp_path / "maze-v0.npz.sha256").unlink()
    with pytest.raises(DataError, match="not the dataset"):
        fetch_known(known, tmp_path, hosts=[])
    assert path.read_bytes() == files["maze-v0.npz"][:-1000]


def test_a_full_disk_is_told_before_the_download_and_during_it(
    tmp_path: Path, serve, files, known, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = serve(Host(files))
    usage = type("usage", (), {"free": 1000})
    with monkeypatch.context() as patch:
        patch.setattr(download_module.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(DataError, match="too full") as told:
            fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert "1000 bytes free" in str(told.value) and left(tmp_path) == []

    def full(path: Path, mode: str = "r") -> object:
        if path.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return real(path, mode)

    real = Path.open
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DataError, match="too full"):
        fetch_known(known, tmp_path, hosts=[host.template], patience=QUICK)
    assert left(tmp_path) == []


def test_two_processes_do_not_write_the_same_file(tmp_path: Path, known) -> None:
    with (
        fetch_module._alone(tmp_path / "maze-v0.npz"),
        pytest.raises(DataError, match="Another process"),
    ):
        fetch_known(known, tmp_path, hosts=[])
    assert left(tmp_path) == []


def test_failure_names_the_file_its_place_and_the_other_ways(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as told:
        fetch("antmaze-medium-stitch-v0", tmp_path, hosts=[])
    text = str(told.value)
    assert str(tmp_path / "antmaze-medium-stitch-v0.npz") in text
    assert "astro-rl data make antmaze-medium-stitch-v0" in text
    with pytest.raises(UnavailableError) as told:
        fetch("humanoidmaze-medium-stitch-v0", tmp_path, hosts=["http://127.0.0.1:9/{file}"], patience=QUICK)
    assert "data make" not in str(told.value) and "127.0.0.1:9" in str(told.value)
    with pytest.raises(UnavailableError, match="antmaze-medium-stitch-v0"):
        fetch("antmaze-medium-stich-v0", tmp_path, hosts=[])
    (tmp_path / "file").touch()
    with pytest.raises(AstroError, match="folder"):
        fetch("antmaze-medium-stitch-v0", tmp_path / "file", hosts=[])


def test_d4rl_files_are_fetched_under_their_published_name_and_checked(tmp_path: Path, serve) -> None:
    content = d4rl_file(tmp_path)
    published = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5"
    host = serve(Host({published: content}))
    (path,) = fetch("antmaze-umaze-v2", tmp_path / "d", hosts=[host.template], patience=QUICK, any_size=True)
    assert path.name == "antmaze-umaze-v2.hdf5" and path.read_bytes() == content
    assert host.asked == [(f"/offline_rl/ant_maze_v2/{published}", None)]
    with pytest.raises(UnavailableError, match="50 rows") as told:
        fetch("antmaze-umaze-v2", tmp_path / "e", hosts=[host.template], patience=QUICK)
    assert "rename" in str(told.value)
    spoilt = bytearray(content)
    spoilt[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    bad = serve(Host({published: bytes(spoilt)}))
    with pytest.raises(UnavailableError):
        fetch("antmaze-umaze-v2", tmp_path / "f", hosts=[bad.template], patience=QUICK, any_size=True)
