"""A fit that is killed and continued ends in the same bytes as one that was left alone, and leaves nothing behind."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from astro_rl import Astro
from astro_rl.errors import ConfigError, DataError
from astro_rl.run import fit as fit_module
from astro_rl.run.folder import RunFolder
from tests.fitted import Fitted, fit, walks

SCRIPT = Path(__file__).with_name("front_door_script.py")


def test_killed_and_continued(fitted: Fitted, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    process = fitted.python(SCRIPT, "fit", str(killed), "{}", "fitting temporal", "200")
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert (killed / "checkpoints" / "temporal" / f"{200:012d}").is_dir()
    with pytest.raises(DataError, match=r"(?s)has not finished.*same astro-rl fit command"):
        Astro.load(killed, fitted.dataset)
    assert_ends_like(fitted, killed)


def test_what_the_disk_holds_at_any_moment_can_be_continued(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of the folder, taken while the fit writes it, are what a kill would have left there."""
    monkeypatch.setattr(fit_module, "SAVE_SECONDS", 0.0)
    whole = tmp_path / "whole"
    moments = {
        ("fitting temporal", 300),
        ("fitting dynamics", 20),
        ("fitting planner", 20),
        ("measuring real windows", 32),
    }

    @contextmanager
    def bar(described: str, total: int, unit: str) -> Iterator[Callable[[int, int], None]]:
        def report(now: int, total: int) -> None:
            if (described, now) in moments:
                shutil.copytree(whole, tmp_path / f"{described} {now}")

        yield report

    fit(walks(), out=whole, bar=bar)
    for described, now in moments:
        assert_ends_like(fitted, tmp_path / f"{described} {now}")


def assert_ends_like(fitted: Fitted, folder: Path) -> None:
    """The same call, and the same files as of the fit that was left alone."""
    continued = fit(walks(), out=folder)
    assert continued.models.digest() == fitted.stitcher.models.digest()
    names, expected = (
        sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
        for root in (folder, fitted.folder)
    )
    assert names == expected
    for name in names:
        if name.name not in (".lock", "environment.json"):
            assert (folder / name).read_bytes() == (fitted.folder / name).read_bytes(), name
    assert RunFolder(folder).notes() == []


def test_a_finished_fit_is_read_and_not_repeated(fitted: Fitted) -> None:
    before = {path: path.stat().st_mtime_ns for path in (fitted.folder / "models").iterdir()}
    again = fit(walks(), out=fitted.folder)
    assert again.models.digest() == fitted.stitcher.models.digest()
    assert {path: path.stat().st_mtime_ns for path in (fitted.folder / "models").iterdir()} == before


def test_another_fit_in_the_same_folder_is_refused_by_what_differs(fitted: Fitted) -> None:
    with pytest.raises(ConfigError, match=r"(?s)other settings.*seed: 0 there, 1 asked for"):
        fit(walks(), out=fitted.folder, seed=1)
    with pytest.raises(ConfigError, match="source_digest"):
        fit(walks(1), out=fitted.folder)


def test_records_of_every_stage_are_kept(fitted: Fitted) -> None:
    for stage, steps in (("temporal", [100, 200, 300]), ("dynamics", [20, 40]), ("planner", [20, 40])):
        lines = (fitted.folder / "records" / f"{stage}.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == steps
