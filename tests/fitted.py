"""One small dataset, one tiny fit of it, and what it takes to make both again in another process.

Compiling costs far more than running at these sizes. All datasets here have the same shape, so that one compilation
serves them all, and processes that tests start read the compiled programs of this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from astro_rl import Astro, from_arrays
from astro_rl.augment.fitting import no_bar
from astro_rl.data import Dataset

TRAJECTORIES, ROWS = 8, 201
SHAPE = (2, 6, 6)
SIZES: dict[str, Any] = {
    "temporal.steps": 300,
    "temporal.log_every": 100,
    "dynamics.steps": 40,
    "dynamics.log_every": 20,
    "planner.steps": 40,
    "planner.log_every": 20,
    "onestep.steps": 40,
    "onestep.log_every": 20,
    "generate.search.threshold": 30.0,
    "generate.search.tolerance": 6.0,
    # Models that learned for so short a time miss every junction by far.
    "generate.jump_most": 1e6,
    "generate.limit_windows": 32,
    "generate.completion_batch": 32,
    "generate.rewards.hidden": (16,),
    "generate.rewards.steps": 500,
}
REPOSITORY = Path(__file__).parents[1]


def walks(seed: int = 0, *, rewards: bool = True, **changes: Any) -> Dataset:
    """A point that walks about in a box, as plain arrays of no benchmark. What is rewarded is being near the
    middle."""
    generator = np.random.default_rng(seed)
    shape = (TRAJECTORIES, ROWS)
    heading = generator.uniform(0, 2 * np.pi, (TRAJECTORIES, 1)) + np.cumsum(
        generator.normal(0, 0.2, shape), axis=1
    )
    actions = (0.8 * np.stack([np.cos(heading), np.sin(heading)], axis=-1)).astype(np.float32)
    start = generator.uniform(-2, 2, (TRAJECTORIES, 1, 2))
    places = (start + 0.25 * np.cumsum(actions, axis=1) - 0.25 * actions).reshape(-1, 2)
    values: dict[str, Any] = {
        "observations": places.astype(np.float32),
        "actions": actions.reshape(-1, 2),
        "offsets": np.arange(TRAJECTORIES + 1) * ROWS,
        "rewards": -np.linalg.norm(places, axis=1).astype(np.float32) if rewards else None,
    }
    return from_arrays(**{**values, **changes})


def fit(dataset: Dataset, **changes: Any) -> Astro:
    return Astro.fit(
        dataset, **{"preset": "tiny", "shape": SHAPE, "settings": SIZES, "bar": no_bar, **changes}
    )


@dataclass(frozen=True)
class Fitted:
    """A finished fit in a folder."""

    stitcher: Astro
    dataset: Dataset
    folder: Path
    compiled: Path

    def python(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A script in a process of its own, which need not compile what has been compiled here."""
        environment = {
            **os.environ,
            "JAX_COMPILATION_CACHE_DIR": str(self.compiled),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
        }
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@contextmanager
def kept_compilations(folder: Path) -> Iterator[None]:
    """Programs compiled meanwhile are kept in `folder`, for other processes."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]
    for name, value in zip(names, (str(folder), 0), strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """The fit of `walks()`. One augmentation has been made from it, so that its programs are there too."""
    base = tmp_path_factory.getbasetemp()
    # Workers of one session share what they compile.
    compiled = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    dataset, folder = walks(), tmp_path_factory.mktemp("fitted") / "fit"
    with kept_compilations(compiled):
        stitcher = fit(dataset, out=folder)
        stitcher.augment(100, bar=no_bar)
    return Fitted(stitcher, dataset, folder, compiled)
