"""A fit that is killed and continued ends in the same bytes as one that was left alone, and leaves nothing behind."""

import json
import signal
from pathlib import Path

import pytest

from astro_rl import Astro
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.folder import RunFolder
from tests.fitted import Fitted, fit, walks

SCRIPT = Path(__file__).with_name("front_door_script.py")


def test_killed_in_two_stages_and_continued(fitted: Fitted, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    for stage, step in (("dynamics", "20"), ("planner", "20")):
        process = fitted.python(SCRIPT, "fit", str(killed), "{}", f"fitting {stage}", step)
        assert process.returncode == -signal.SIGKILL, process.stderr
        assert (killed / "checkpoints" / stage / f"{20:012d}").is_dir()
        with pytest.raises(DataError, match=r"(?s)has not finished.*same astro-rl fit command"):
            Astro.load(killed, fitted.dataset)
    continued = fit(walks(), out=killed)
    assert continued.models.digest() == fitted.stitcher.models.digest()
    names = sorted(path.relative_to(killed) for path in killed.rglob("*") if path.is_file())
    assert names == sorted(
        path.relative_to(fitted.folder) for path in fitted.folder.rglob("*") if path.is_file()
    )
    for name in names:
        if name.name not in (".lock", "environment.json"):
            assert (killed / name).read_bytes() == (fitted.folder / name).read_bytes(), name
    assert RunFolder(killed).notes() == []


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
