"""How fast is it here? `make bench`, or `python -m benchmarks.speed updates` for a part of it.

Run nothing else meanwhile, and compare figures of one run with each other only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from astro_rl.run.devices import use_all_cores

use_all_cores()

from benchmarks import generation, storage, updates  # noqa: E402

from astro_rl.cli.output import print_table  # noqa: E402
from astro_rl.run.fingerprint import fingerprint  # noqa: E402


def measure_updates() -> Any:
    rows = updates.updates_beside_products(updates.random_dataset())
    print_table(
        "Updates, batches drawn included",
        ("learner", "updates/s", "GFLOP an update", "% of the matrix products' peak"),
        [(label, f"{rate:,.1f}", f"{flop:.2f}", f"{share:.0f}") for label, rate, flop, share in rows],
    )
    return rows


def measure_learners() -> Any:
    rates = updates.updates_of_all_learners(updates.random_dataset())
    table = [(name, f"{rate:,.0f}") for name, rate in rates.items()]
    print_table("All learners, 3 x 128, 2 seeds", ("learner", "updates/s"), table)
    return rates


def measure_map() -> Any:
    slower = updates.slowdown_of_the_map(updates.random_dataset())
    table = [(name, f"{percent:+.1f}") for name, percent in slower.items()]
    print_table("A step from the memory map, beside one from memory", ("learner", "% longer"), table)
    return slower


def measure_store() -> Any:
    found = storage.opening()
    table = [
        ("rows", f"{found['rows']:,}"),
        ("time (ms)", f"{found['ms']:.1f}"),
        ("most memory the process ever held, imports included (MB)", f"{found['mb']:.0f}"),
    ]
    print_table("Opening a store", ("", ""), table)
    return found


def measure_generation() -> Any:
    rates = generation.all_rates()
    header = ("dataset", "OGBench's loop", "data make", "ratio", "data make, by the clock, all cores")
    table = [
        (
            name,
            f"{r['loop']:,.0f}",
            f"{r['make']:,.0f}",
            f"{r['make'] / r['loop']:.2f}",
            f"{r['make_wall']:,.0f}",
        )
        for name, r in rates.items()
    ]
    print_table("Making data, rows for each second of processor time", header, table)
    return rates


PARTS: dict[str, Callable[[], Any]] = {
    "updates": measure_updates,
    "learners": measure_learners,
    "map": measure_map,
    "store": measure_store,
    "generation": measure_generation,
}


def main(chosen: list[str]) -> None:
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise SystemExit(f"no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    figures = {name: PARTS[name]() for name in chosen or PARTS}
    print(json.dumps({"figures": figures, "environment": fingerprint()}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
