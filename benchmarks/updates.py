"""Updates a second, beside matrix products in the same minutes; from memory and from the memory map."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from benchmarks.timing import fastest, matmul_flop, products, products_flop

import astro_rl
from astro_rl.agents import LEARNERS
from astro_rl.agents.base import Batch
from astro_rl.data import open_store, write_store
from astro_rl.training import (
    StreamData,
    device_data,
    init_states,
    replicate,
    seed_keys,
    train_chunk,
    train_chunk_streamed,
)

OBSERVATION_DIM, ACTION_DIM, TRAJECTORIES, LENGTH = 29, 8, 1_000, 200
SIZES = {"paper": "3 x 256", "fql": "4 x 512"}
UPDATES = {"cpu": 200, "paper": 50, "fql": 10}


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


def chunk_of(name: str, preset: Any, seeds: int, data: astro_rl.Dataset, *, stream: bool = False) -> Any:
    """A call that trains on for some updates, batches drawn included, and the learner it trains."""
    learner = astro_rl.learner_for(name, preset=preset)
    keys = seed_keys(tuple(range(seeds)))
    states = init_states(learner, keys, OBSERVATION_DIM, ACTION_DIM)
    run: Any = train_chunk_streamed if stream else train_chunk
    source: Any = StreamData(data) if stream else replicate(device_data(data), seeds)

    def chunk() -> Any:
        nonlocal states
        states, info = run(
            learner, states, keys, 0, (source,), counts=(learner.batch_size,), steps=UPDATES[preset]
        )
        return info

    return chunk


def flop_of_update(name: str, preset: Any) -> float:
    """Of the matrix products that an update of one seed needs."""
    learner = astro_rl.learner_for(name, preset=preset)
    size = learner.batch_size
    state = learner.init(jax.random.key(0), OBSERVATION_DIM, ACTION_DIM)
    observations, numbers = np.zeros((size, OBSERVATION_DIM), np.float32), np.zeros(size, np.float32)
    batch = Batch(observations, np.zeros((size, ACTION_DIM), np.float32), numbers, numbers, observations)  # type: ignore[arg-type]
    return matmul_flop(learner.update, state, batch, jax.random.key(0))


def updates_beside_products(data: astro_rl.Dataset) -> list[tuple[str, float, float, float]]:
    """(learner, size and seeds; updates a second; GFLOP of an update; percent of the peak beside it)."""
    cores = jax.device_count()
    rows = []
    for name in ("iql", "fql"):
        for preset, size in SIZES.items():
            flop = flop_of_update(name, preset)
            for seeds in (1, 4):
                works: dict[str, Callable[[], Any]] = {
                    "updates": chunk_of(name, preset, seeds, data),
                    "products": products(cores),
                }
                seconds = fastest(works)
                rate = seeds * UPDATES[preset] / seconds["updates"]
                peak = products_flop(cores) / seconds["products"]
                label = f"{name}, {size}, {seeds} seed{'s' if seeds > 1 else ''}"
                rows.append((label, rate, flop / 1e9, 100.0 * rate * flop / peak))
    return rows


def updates_of_all_learners(data: astro_rl.Dataset) -> dict[str, float]:
    seconds = fastest({name: chunk_of(name, "cpu", 2, data) for name in LEARNERS})
    return {name: 2 * UPDATES["cpu"] / taken for name, taken in seconds.items()}


def slowdown_of_the_map(data: astro_rl.Dataset) -> dict[str, float]:
    """How many percent longer a step takes from the memory map than from memory."""
    slower = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "x.astro"
        write_store(data, store)
        mapped = open_store(store)
        for preset, size in {"cpu": "3 x 128", "paper": "3 x 256"}.items():
            works = {
                "memory": chunk_of("iql", preset, 1, data),
                "map": chunk_of("iql", preset, 1, mapped, stream=True),
            }
            seconds = fastest(works)
            slower[f"iql, {size}"] = 100.0 * (seconds["map"] / seconds["memory"] - 1.0)
    return slower
