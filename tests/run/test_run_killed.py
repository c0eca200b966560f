"""`kill -9` at any moment, then the same command: the run ends with the same bytes as one that was left
alone.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

from astro_rl.run.folder import RunFolder

STUB = Path(__file__).with_name("run_stub.py")


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(STUB), str(folder)], stdout=subprocess.PIPE, text=True)


def test_killed_at_random_moments_and_continued(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    reference = start(whole)
    moments = random.Random(0)
    kills = 0
    for _ in range(4):
        process = start(killed)
        assert process.stdout is not None
        process.stdout.readline()  # killed while it trains and saves, not while Python starts
        time.sleep(moments.uniform(0.02, 0.9))
        process.kill()
        kills += process.wait() != 0
        process.stdout.close()
    assert kills > 1
    for process in (start(killed), reference):
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
    for name in ("results.json", "records/train.jsonl", "records/train.parquet", "config.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    ended = RunFolder(killed)
    assert [record["step"] for record in ended.records.read()] == [
        step for step in range(1, 61) for _ in range(2)
    ]
    assert ended.checkpoints.steps() == [55, 60]
    assert ended.notes() == []
    leftovers = [path.name for path in killed.rglob(".*") if path.name != ".lock"]
    assert leftovers == []
