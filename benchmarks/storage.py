"""A store of a hundred million rows: what opening it takes, in time and in memory, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from astro_rl.data import from_arrays, open_store, write_store

TRAJECTORIES, ROWS = 500_000, 201

OPEN = """
import json, sys, time
from pathlib import Path
from astro_rl.data import open_store
start = time.perf_counter()
found = open_store(sys.argv[1])
seconds = time.perf_counter() - start
# Not ru_maxrss: it starts from what the process that started this one held.
peak = next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM")) / 1024
print(json.dumps({"rows": found.n_rows, "ms": 1e3 * seconds, "mb": peak}))
"""


def sparse_store(place: Path) -> None:
    """Ant-sized columns that are holes in their files: opening reads headers, sizes and offsets, not rows."""
    two_rows = np.zeros((2, 29), np.float32), np.zeros((2, 8), np.float32)
    write_store(from_arrays(*two_rows, offsets=np.array([0, 2]), rewards=np.zeros(2, np.float32)), place)
    manifest = json.loads((place / "manifest.json").read_text())
    total = TRAJECTORIES * ROWS
    for name, entry in manifest["columns"].items():
        if name == "offsets":
            np.save(place / "offsets.npy", np.arange(TRAJECTORIES + 1) * ROWS)
            shape = [TRAJECTORIES + 1]
        else:
            shape = [total, *entry["shape"][1:]]
            with (place / f"{name}.npy").open("wb") as file:
                header = {"descr": entry["dtype"], "fortran_order": False, "shape": tuple(shape)}
                np.lib.format.write_array_header_1_0(file, header)
                file.truncate(file.tell() + np.dtype(entry["dtype"]).itemsize * int(np.prod(shape)))
        entry.update(shape=shape, bytes=(place / f"{name}.npy").stat().st_size)
    manifest.update(trajectories=TRAJECTORIES, rows=total, transitions=total - TRAJECTORIES)
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert open_store(place).n_rows == total


def opening() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "large.astro"
        sparse_store(place)
        answer = subprocess.run(
            [sys.executable, "-c", OPEN, str(place)], capture_output=True, text=True, check=True
        )
    return json.loads(answer.stdout)
