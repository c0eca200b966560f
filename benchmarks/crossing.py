"""How often the simulator's control arrives: `python -m benchmarks.crossing DATA --task NAME --attempts 1 4 16`.

Real windows whose middle is taken out, so that every gap can be crossed in its time: was crossed, in fact. Prints how
far arrivals miss the real state, in typical steps, and the share within the limits.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from astro_rl.augment.check import real_windows
from astro_rl.data import load
from astro_rl.quality.simulated import SimulatorCompleter
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import get_task


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", required=True)
    parser.add_argument("--mask", type=int, default=12)
    parser.add_argument("--segment", type=int, default=12)
    parser.add_argument("--attempts", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--jump", type=float, default=1.3)
    parser.add_argument("--jump-xy", type=float, default=2.0)
    parser.add_argument("--windows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    dataset, task = load(given.data), get_task(given.task)
    shape = ChainShape(2, given.segment, given.mask)
    windows = real_windows(dataset, 2 * given.segment + given.mask)
    firsts = np.random.default_rng(given.seed).choice(windows, given.windows, replace=False)
    starts = firsts[:, None] + np.arange(2) * shape.period
    for attempts in given.attempts:
        started = time.time()
        with SimulatorCompleter(
            dataset,
            task,
            shape,
            jump=given.jump,
            jump_xy=given.jump_xy,
            attempts=attempts,
            workers=given.workers,
        ) as completer:
            record = completer.complete(starts, seed=given.seed).info["lineage"]
        row = {
            "data": given.data.name,
            "windows": given.windows,
            "seconds": round(time.time() - started, 1),
            **record,
        }
        share = record["completions"]["kept"] / record["completions"]["proposed"]
        arrivals = record["arrivals"]
        print(
            f"{attempts} attempts: {100 * share:.0f} % arrive; misses at 10, 50, 90 %: {arrivals}", flush=True
        )
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
