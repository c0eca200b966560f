"""How fast is it here? `make bench`. Run nothing else meanwhile; compare figures of one run with each other only."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astro_rl.run.devices import use_all_cores

use_all_cores()

import jax  # noqa: E402
import numpy as np  # noqa: E402

import astro_rl  # noqa: E402
from astro_rl.agents import LEARNERS  # noqa: E402
from astro_rl.cli.output import print_table  # noqa: E402
from astro_rl.data import open_store, write_store  # noqa: E402
from astro_rl.run.fingerprint import fingerprint  # noqa: E402
from astro_rl.training import (  # noqa: E402
    StreamData,
    device_data,
    init_states,
    replicate,
    seed_keys,
    train_chunk,
    train_chunk_streamed,
)

OBSERVATION_DIM, ACTION_DIM, TRAJECTORIES, LENGTH = 29, 8, 1_000, 200
UPDATES = 100


def random_dataset() -> astro_rl.Dataset:
    """Ant-sized rows. Their values do not matter to speed."""
    generator = np.random.default_rng(0)
    rows = TRAJECTORIES * (LENGTH + 1)
    return astro_rl.from_arrays(
        generator.normal(size=(rows, OBSERVATION_DIM)).astype(np.float32),
        generator.uniform(-1, 1, (rows, ACTION_DIM)).astype(np.float32),
        offsets=np.arange(TRAJECTORIES + 1) * (LENGTH + 1),
        rewards=np.full(rows, -1.0, np.float32),
    )


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The fastest of a few: what else the machine did only ever makes it slower."""
    jax.block_until_ready(work())
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(work())
        taken.append(time.perf_counter() - start)
    return min(taken)


def updates_a_second(
    name: str, preset: Any, seeds: int, dataset: astro_rl.Dataset, *, stream: bool = False
) -> float:
    learner = astro_rl.learner_for(name, preset=preset)
    keys = seed_keys(tuple(range(seeds)))
    states = init_states(learner, keys, OBSERVATION_DIM, ACTION_DIM)
    run: Any = train_chunk_streamed if stream else train_chunk
    source: Any = StreamData(dataset) if stream else replicate(device_data(dataset), seeds)

    def chunk() -> Any:
        nonlocal states
        states, info = run(learner, states, keys, 0, (source,), counts=(learner.batch_size,), steps=UPDATES)
        return info

    return seeds * UPDATES / seconds(chunk)


def main() -> None:
    dataset = random_dataset()
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "x.astro"
        write_store(dataset, store)
        results["open a store (ms)"] = 1e3 * seconds(lambda: open_store(store).n_rows)
        mapped = open_store(store)
        for name in ("iql", "fql"):
            for seeds in (1, 2, 4):
                results[f"{name}, paper size, {seeds} seed(s): updates/s"] = updates_a_second(
                    name, "paper", seeds, dataset
                )
        for name in LEARNERS:
            results[f"{name}, cpu size, 2 seeds: updates/s"] = updates_a_second(name, "cpu", 2, dataset)
        results["iql, cpu size, 2 seeds, streamed from disk: updates/s"] = updates_a_second(
            "iql", "cpu", 2, mapped, stream=True
        )
    print_table(None, ("what", "figure"), [(name, f"{value:,.1f}") for name, value in results.items()])
    print(json.dumps({"figures": results, "environment": fingerprint()}, indent=2))


if __name__ == "__main__":
    main()
