"""Augmented data against the simulator: `python -m benchmarks.truth AUGMENTED --task NAME --real DATA --out F.jsonl`.

Prints the table and appends one line of JSON, with what made the data, to F. Needs numpy and the simulator; neither JAX
nor what reads other formats, so that it runs beside training on a machine with few packages.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from astro_rl.data import Dataset, load
from astro_rl.quality.truth import truth_of
from astro_rl.quality.violation import calibrate, violation_rate
from astro_rl.tasks import get_task
from astro_rl.tasks.task import Task


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("augmented", type=Path)
    parser.add_argument("--task", required=True)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--name", help="how this data is called in the record; the file's name unless given")
    parser.add_argument("--rows", type=int, default=2000, help="transitions replayed of each kind")
    parser.add_argument("--sequences", type=int, default=100, help="trajectories replayed open loop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="processes; one a core unless given, 0 for this one")
    parser.add_argument(
        "--violation", action="store_true", help="also appendix C's dynamics violation rate (minutes)"
    )
    given = parser.parse_args()
    if given.violation and given.real is None:
        parser.error("--violation is calibrated on real data: name it with --real")
    started, task = time.time(), get_task(given.task)
    augmented = read(given.augmented)
    real = None if given.real is None else read(given.real)
    report = truth_of(
        augmented,
        task,
        rows=given.rows,
        seed=given.seed,
        real=real,
        sequences=given.sequences,
        workers=given.workers,
        progress=lambda text: print(text, flush=True),
    )
    print(report.table())
    record = {"data": given.name or given.augmented.name, **report.as_json()}
    if given.violation and real is not None:
        record["violation"] = violations(augmented, real, task, given)
    record["lineage"] = augmented.info.get("lineage")
    record["seconds"] = round(time.time() - started, 1)
    print(f"{record['seconds']} s")
    if given.out is not None:
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")


def read(path: Path) -> Dataset:
    # Named, because telling formats apart asks readers that need HDF5.
    return load(path, format="ogbench" if path.suffix == ".npz" else None)


def violations(augmented: Dataset, real: Dataset, task: Task, given: argparse.Namespace) -> dict[str, Any]:
    """Calibrated on real data, then measured on augmented data."""
    calibration = calibrate(real, task, seed=given.seed, workers=given.workers)
    found = violation_rate(
        augmented, task, calibration, rows=given.rows, seed=given.seed, workers=given.workers
    ).as_json()
    stitched = "no transition" if found["stitched"] is None else f"{100 * found['stitched']:.2f} %"
    print(
        f"\nviolation rate (appendix C): {stitched}; real, held out: {100 * calibration.real_rate:.2f} %; with a step "
        f"left out: {100 * calibration.skip_rate:.2f} %  (n {calibration.samples}, "
        f"δ {calibration.threshold:.3f} typical steps, {' + '.join(calibration.compares)}, "
        f"actions from the {calibration.actions})"
    )
    return found


if __name__ == "__main__":
    main()
