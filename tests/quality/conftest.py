"""Small datasets made locally, once a session."""

from pathlib import Path

import numpy as np
import pytest

from astro_rl.collect import make_dataset
from astro_rl.data import Dataset, from_arrays, load
from astro_rl.tasks import Task, get_task

MADE = {"pointmaze-medium-stitch": 12, "antmaze-medium-stitch": 6}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Dataset, Task]]:
    folder: Path = tmp_path_factory.mktemp("made")
    return {
        name: (
            load(make_dataset(f"{name}-v0", out=folder, episodes=episodes, val_episodes=1, workers=0)[0]),
            get_task(name),
        )
        for name, episodes in MADE.items()
    }


def with_gaps(dataset: Dataset, trajectories: int, segment: int = 10, mask: int = 10) -> Dataset:
    """Real trajectories whose every other stretch is said to be generated."""
    chosen = dataset.select(range(trajectories))
    step = np.concatenate([np.arange(rows) for rows in np.diff(chosen.offsets)])
    known = step % (segment + mask) < segment
    return from_arrays(
        np.array(chosen.observations),
        np.array(chosen.actions),
        offsets=chosen.offsets,
        extras={"source_step": np.where(known, step, -1).astype(np.int32)},
    )
