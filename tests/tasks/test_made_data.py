"""Rewards of observations on datasets made locally, against OGBench's relabelling of the same files."""

from pathlib import Path

import numpy as np
import pytest
from ogbench.relabel_utils import relabel_dataset

from astro_rl.collect import make_dataset
from astro_rl.data import load
from astro_rl.tasks import get_task, relabel, successes
from tests.tasks.conftest import environment

MADE = {
    "pointmaze-medium-stitch": 8,
    "antmaze-medium-stitch": 2,
    "cube-single-play": 1,
    "cube-double-play": 1,
    "scene-play": 1,
}


@pytest.mark.parametrize("name", MADE)
def test_made_rows_are_rewarded_as_ogbench_rewards_them(name: str, tmp_path: Path) -> None:
    file, _ = make_dataset(f"{name}-v0", out=tmp_path, episodes=MADE[name], val_episodes=1, workers=0)
    dataset = load(file)
    env = environment(get_task(name).env_id)
    transitions = dataset.transition_rows()
    for goal in range(1, 6):
        task = get_task(f"{name}-task{goal}")
        env.unwrapped._reward_task_id = goal
        theirs = {key: np.asarray(column) for key, column in dataset.extras.items()}
        relabel_dataset(task.env_id, env, theirs)
        ours = relabel(dataset, task, timing="pre")
        assert ours.rewards is not None
        differs = (ours.rewards != theirs["rewards"]) | (ours.terminated == (theirs["masks"] == 1))
        (counted,) = successes(dataset, [task])
        assert differs[transitions].sum() <= counted.near_threshold
