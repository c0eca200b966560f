"""Kills, crashes and changed minds: finished episodes are kept, and the bytes in the end are the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from astro_rl.collect import make_dataset
from astro_rl.errors import ConfigError, UnavailableError

NAVIGATE = "pointmaze-medium-navigate-v0"
EPISODES = 8
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    paths = make_dataset(NAVIGATE, out=tmp_path_factory.mktemp("whole"), episodes=EPISODES, workers=0)
    return [path.read_bytes() for path in paths]


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


@needs_proc
@pytest.mark.parametrize("shards_before", [1, 3])
def test_kill_at_any_time_then_the_same_call_gives_the_same_bytes(
    shards_before: int, uninterrupted: list[bytes], tmp_path: Path
) -> None:
    command = (
        "import sys; from pathlib import Path; from astro_rl.collect import make_dataset; "
        f"make_dataset({NAVIGATE!r}, out=Path(sys.argv[1]), episodes={EPISODES}, workers=2)"
    )
    shards = tmp_path / f".{NAVIGATE}.partial" / "shards"
    parent = subprocess.Popen([sys.executable, "-c", command, str(tmp_path)])
    wait_until(lambda: len(list(shards.glob("*.npz"))) >= shards_before)
    workers = children(parent.pid)
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(alive(worker) for worker in workers))
    kept = len(list(shards.glob("*.npz")))
    assert not list(tmp_path.glob("*.npz"))
    heard: list[tuple[int, int]] = []
    paths = make_dataset(
        NAVIGATE, out=tmp_path, episodes=EPISODES, workers=1, progress=lambda *p: heard.append(p)
    )
    assert [path.read_bytes() for path in paths] == uninterrupted
    assert kept >= shards_before
    assert heard[0][0] >= 2 * (kept - 1), "what was finished is not made again"
    assert not (tmp_path / f".{NAVIGATE}.partial").exists()


@needs_proc
def test_a_killed_worker_is_reported_with_its_episode(uninterrupted: list[bytes], tmp_path: Path) -> None:
    mine = set(children(os.getpid()))

    def kill_one(done: int, total: int) -> None:
        if done:
            os.kill(min(set(children(os.getpid())) - mine), signal.SIGKILL)

    with pytest.raises(UnavailableError, match=r"died while making episode \d+ of train(?s:.*)signal 9"):
        make_dataset(NAVIGATE, out=tmp_path, episodes=EPISODES, workers=1, progress=kill_one)
    assert set(children(os.getpid())) <= mine
    paths = make_dataset(NAVIGATE, out=tmp_path, episodes=EPISODES, workers=0)
    assert [path.read_bytes() for path in paths] == uninterrupted


def test_a_worker_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken" / "ogbench"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('no physics today')")
    monkeypatch.syspath_prepend(str(broken.parent))
    with pytest.raises(UnavailableError, match=r"(?s)its environment.*no physics today"):
        make_dataset(NAVIGATE, out=tmp_path / "out", episodes=2, workers=1)


def test_interrupting_stops_the_workers_and_keeps_the_episodes(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_dataset(NAVIGATE, out=tmp_path, episodes=4, workers=1, progress=interrupt)
    assert len(list((tmp_path / f".{NAVIGATE}.partial" / "shards").glob("*.npz"))) >= 1


@pytest.fixture
def half_made(tmp_path: Path) -> Path:
    def stop(done: int, total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_dataset(NAVIGATE, out=tmp_path, episodes=EPISODES, workers=0, progress=stop)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"seed": 3}, "seed"), ({"episodes": 9}, "episodes"), ({"val_episodes": 3}, "val_")],
)
def test_another_request_is_refused_and_destroys_nothing(
    changed: dict[str, Any], field: str, half_made: Path, uninterrupted: list[bytes]
) -> None:
    request: dict[str, Any] = {"episodes": EPISODES, **changed}
    with pytest.raises(ConfigError, match=rf"begun in this folder(?s:.*)field:    {field}(?s:.*)start over"):
        make_dataset(NAVIGATE, out=half_made, workers=0, **request)
    paths = make_dataset(NAVIGATE, out=half_made, episodes=EPISODES, workers=0)
    assert [path.read_bytes() for path in paths] == uninterrupted


def test_a_torn_shard_is_made_again(half_made: Path, uninterrupted: list[bytes]) -> None:
    first, second = sorted((half_made / f".{NAVIGATE}.partial" / "shards").glob("*.npz"))
    first.write_bytes(first.read_bytes()[:-100])
    flipped = bytearray(second.read_bytes())
    flipped[5000] ^= 1
    second.write_bytes(flipped)
    heard: list[int] = []
    paths = make_dataset(
        NAVIGATE, out=half_made, episodes=EPISODES, workers=0, progress=lambda done, total: heard.append(done)
    )
    assert heard[0] == 0
    assert [path.read_bytes() for path in paths] == uninterrupted


def test_two_at_once_in_one_folder_are_refused(half_made: Path) -> None:
    from astro_rl.collect.partial import PartialFolder

    with (
        PartialFolder(half_made, NAVIGATE).locked(),
        pytest.raises(ConfigError, match="Another process is making"),
    ):
        make_dataset(NAVIGATE, out=half_made, episodes=EPISODES, workers=0)


def test_a_kill_between_the_two_final_files(
    half_made: Path, uninterrupted: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from astro_rl.collect import partial

    place = partial.replace_durably

    def only_the_first(source: Path, destination: Path) -> None:
        if "-val" in source.name:
            raise KeyboardInterrupt
        place(source, destination)

    with monkeypatch.context() as patched:
        patched.setattr(partial, "replace_durably", only_the_first)
        with pytest.raises(KeyboardInterrupt):
            make_dataset(NAVIGATE, out=half_made, episodes=EPISODES, workers=0)
    assert [path.name for path in half_made.glob("*.npz")] == [f"{NAVIGATE}.npz"]
    monkeypatch.setattr("astro_rl.collect.make.build_collector", lambda recipe: pytest.fail("made again"))
    paths = make_dataset(NAVIGATE, out=half_made, episodes=EPISODES, workers=0)
    assert [path.read_bytes() for path in paths] == uninterrupted
    assert len(list(half_made.iterdir())) == 3
