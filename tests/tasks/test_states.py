"""A simulator put into an observation's state goes on as the recorded one did."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from astro_rl.envs.seeding import reset_seeded
from astro_rl.errors import UnavailableError
from astro_rl.tasks import all_tasks, get_task, paper_tasks, state_of

# Errors of the next observation over 800 steps each: in double precision 0 (point) and 3e-15 (ant). With the
# ball, the solver's warm start shows: 4e-11 in 99 of 100 steps, 5e-6 at worst. From float32: 1e-7, 2e-6,
# 2e-6. A step of the ant changes some number by about 3.


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        ("pointmaze-medium-stitch", np.float64, 1e-12),
        ("pointmaze-medium-stitch", np.float32, 1e-6),
        ("antmaze-medium-stitch", np.float64, 1e-12),
        ("antmaze-medium-stitch", np.float32, 2e-5),
        ("antsoccer-arena-stitch", np.float64, 2e-5),
        ("antsoccer-arena-stitch", np.float32, 2e-5),
    ],
)
def test_stepping_from_an_observations_state_meets_the_next_observation(
    name: str, dtype: type, tolerance: float, build: Callable[[str], Any]
) -> None:
    task = get_task(name)
    env = build(task.env_id)
    base, state_map = env.unwrapped, state_of(task)
    rng = np.random.default_rng(0)
    first, _ = reset_seeded(env, seed=0)
    if task.observation_dim == 42:
        base.set_agent_ball_xy(np.array([4.0, 4.0]), np.array([4.6, 4.0]))  # within reach, so that they touch
        first = base.get_ob()
    actions = rng.uniform(-1, 1, (60, task.action_dim)).astype(np.float32)
    recorded = np.array([first, *(base.step(action)[0] for action in actions)])
    qpos, qvel = state_of(task).to_qpos_qvel(recorded.astype(dtype))
    assert qpos.dtype == qvel.dtype == np.float64
    for step in rng.permutation(60):  # out of order: what the solver remembers belongs to another step
        base.set_state(qpos[step], qvel[step])
        met, *_ = base.step(actions[step])
        assert np.abs(met - recorded[step + 1]).max() < tolerance
    assert np.abs(np.diff(recorded, axis=0)).max(axis=1).min() > 100 * tolerance
    np.testing.assert_array_equal(state_map.to_observations(qpos, qvel), recorded.astype(dtype))


def test_where_the_state_does_not_follow_the_error_says_why() -> None:
    for name, missing in (("humanoidmaze-large-stitch", "heading"), ("scene-play", "gripper")):
        with pytest.raises(UnavailableError, match=missing):
            state_of(get_task(name))


def test_every_task_of_a_point_an_ant_or_a_ball_has_a_state() -> None:
    with_state = {task.observation_dim for task in all_tasks() if hasattr(task.state, "n_qpos")}
    assert with_state == {2, 29, 42}
    assert all(hasattr(task.state, "n_qpos") for task in paper_tasks() if task.suite == "d4rl")
