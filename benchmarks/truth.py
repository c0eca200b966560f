"""Augmented data against the simulator: `python -m benchmarks.truth AUGMENTED --task NAME --real DATA --out F.jsonl`.

Prints the table and appends one line of JSON, with what made the data, to F. Needs numpy and the simulator; neither JAX
nor what reads other formats, so that it runs beside training on a machine with few packages.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from astro_rl.data import load
from astro_rl.quality.truth import truth_of
from astro_rl.tasks import get_task


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
    started, task = time.time(), get_task(given.task)
    augmented = load(given.augmented)
    real = None if given.real is None else load(given.real)
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
    if given.violation:
        record["violation"] = violations(augmented, real, given)
    record["lineage"] = augmented.info.get("lineage")
    record["seconds"] = round(time.time() - started, 1)
    print(f"{record['seconds']} s")
    if given.out is not None:
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")


def violations(augmented, real, given) -> dict:  # noqa: ANN001
    raise SystemExit("not yet")


if __name__ == "__main__":
    main()
