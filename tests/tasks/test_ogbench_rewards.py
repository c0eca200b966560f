"""Rewards of observations against OGBench's own relabelling, which reads the simulator's state."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ogbench.relabel_utils import relabel_dataset

from astro_rl.tasks import Task, all_tasks, get_task
from astro_rl.tasks.relabel import THRESHOLD
from astro_rl.tasks.rewards import Placed, Reach, Switched, Together
from tests.tasks.conftest import SIMULATED, Recorder, Rows, environment, stepped_rows

NEARLY = 1e-8
"""Closer to a threshold than float32 can tell in any of these environments."""


def around_the_goal(task: Task, env: Any) -> Rows:
    """States spread over both sides of every threshold of the task, a few of them on it."""
    rng = np.random.default_rng(task.goal)
    recorder = Recorder(env)
    origin = env.unwrapped.data.qpos.copy()
    for number in range(60):
        qpos, buttons = origin.copy(), rng.integers(0, 2, 2)
        if isinstance(task.rewards, Reach):
            heading = rng.uniform(0, 2 * np.pi)
            distance = task.rewards.tolerance * rng.uniform(0, 2)
            if number < 5:
                distance = task.rewards.tolerance + rng.choice([-NEARLY, NEARLY])
            start = 15 if task.xy_indices != task.rewards.xy_indices else 0
            offset = distance * np.array([np.cos(heading), np.sin(heading)])
            qpos[start : start + 2] = np.array(task.rewards.goal) + offset
        else:
            assert isinstance(task.rewards, Together)
            place_objects(task.rewards, qpos, buttons, rng, met=number % 4 == 0, edge=number < 5)
        recorder.place(qpos, buttons)
    return recorder.finish([])


def place_objects(
    rewards: Together,
    qpos: np.ndarray,
    buttons: np.ndarray,
    rng: np.random.Generator,
    met: bool,
    edge: bool,
) -> None:
    """Puts cubes, buttons, drawer and window near (or, with `met`, at) their targets."""
    cube, button, slide = (
        14,
        0,
        14 + 7 * sum(len(p.target) == 3 for p in rewards.parts if isinstance(p, Placed)),
    )
    slide += sum(isinstance(part, Switched) for part in rewards.parts)
    for part in rewards.parts:
        if isinstance(part, Switched):
            buttons[button] = part.target if met else buttons[button]
            button += 1
            continue
        assert isinstance(part, Placed)
        size = len(part.target)
        direction = rng.standard_normal(size)
        distance = part.tolerance * (rng.uniform(0, 0.9) if met else rng.uniform(0, 2))
        if edge:
            distance = part.tolerance + rng.choice([-NEARLY, NEARLY])
        where = np.array(part.target) + distance * direction / np.linalg.norm(direction)
        if size == 3:
            qpos[cube : cube + 3], cube = where, cube + 7
        else:
            qpos[slide], slide = where[0], slide + 1


@pytest.mark.parametrize("short_name", SIMULATED)
@pytest.mark.parametrize("goal", range(1, 6))
def test_rewards_equal_ogbench_relabelling_on_real_rows(short_name: str, goal: int) -> None:
    default = get_task(short_name)
    task = get_task(f"{short_name}-task{goal}")
    env = environment(default.env_id)
    env.unwrapped._reward_task_id = goal  # what the goal's own registered id would have set
    env.reset(seed=0)
    stepped, placed = stepped_rows(short_name), around_the_goal(task, env)
    disagreements, close = 0, 0
    for rows in (stepped, placed):
        theirs = {"qpos": rows.qpos, "button_states": rows.button_states}
        relabel_dataset(task.env_id, env, theirs)
        reward, success = task.rewards.reward(rows.observations), task.rewards.success(rows.observations)
        assert reward.dtype == np.float64
        near = task.rewards.threshold_gap(rows.observations) <= THRESHOLD  # pyright: ignore
        wrong = (reward != theirs["rewards"]) | (1.0 - success != theirs["masks"])
        assert not np.any(wrong & ~near), f"{np.sum(wrong & ~near)} rows differ away from a threshold"
        disagreements, close = disagreements + int(wrong.sum()), close + int(near.sum())
    assert 1 <= close <= 10 and disagreements <= close
    met = task.rewards.success(placed.observations)
    assert 0 < met.sum() < len(met), "the comparison has to see both outcomes"
    assert len(np.unique(task.rewards.reward(placed.observations))) >= (
        len(task.rewards.parts) if isinstance(task.rewards, Together) else 2
    )


@pytest.mark.parametrize("short_name", SIMULATED)
def test_rewards_equal_what_the_environment_pays_on_a_step(short_name: str) -> None:
    """Timing `pre`: a step is paid for the state it leaves."""
    task = get_task(short_name)
    env = environment(task.env_id)
    env.unwrapped._reward_task_id = task.goal
    env.reset(seed=3)
    base, recorder, outcomes = env.unwrapped, Recorder(env), set()
    rng = np.random.default_rng(3)
    for number in range(10):
        qpos, buttons = base.data.qpos.copy(), rng.integers(0, 2, 2)
        if isinstance(task.rewards, Reach):
            start = 15 if task.xy_indices != task.rewards.xy_indices else 0
            qpos[start : start + 2] = np.array(task.rewards.goal) + (0.1 if number % 2 else 3.0)
        else:
            assert isinstance(task.rewards, Together)
            place_objects(task.rewards, qpos, buttons, rng, met=number % 2 == 1, edge=False)
        recorder.place(qpos, buttons)
        if hasattr(base, "post_step"):
            base.pre_step()
            base.post_step()  # refreshes the success that a manipulation step with timing `pre` reports
        left = recorder.observe()
        _, reward, terminated, _, _ = base.step(env.action_space.sample())
        assert reward == task.rewards.reward(left)
        assert terminated == task.rewards.success(left)
        outcomes.add(bool(terminated))
    assert outcomes == {False, True}


def test_the_registered_ids_carry_the_goals_and_limits_of_the_table() -> None:
    import gymnasium

    for task in all_tasks():
        if task.suite == "ogbench":
            spec = gymnasium.spec(task.env_id)
            assert spec.kwargs["reward_task_id"] == task.goal
            assert spec.kwargs["success_timing"] == task.success_timing
            assert spec.max_episode_steps == task.max_episode_steps
            if task.is_default_goal:
                plain = gymnasium.spec(task.env_id.replace(f"-task{task.goal}", ""))
                assert plain.kwargs == {**spec.kwargs, "reward_task_id": 0}


@pytest.mark.parametrize(
    "short_name",
    [
        *("pointmaze-medium-stitch", "pointmaze-large-stitch", "pointmaze-giant-stitch"),
        *("antmaze-medium-stitch", "antmaze-large-stitch", "antmaze-giant-stitch"),
        *("humanoidmaze-medium-stitch", "humanoidmaze-large-stitch", "antsoccer-arena-stitch"),
        *("cube-single-play", "cube-double-play", "scene-play"),
    ],
)
def test_goals_and_sizes_are_the_built_environments(short_name: str) -> None:
    default = get_task(short_name)
    env = environment(default.env_id)
    base = env.unwrapped
    assert env.observation_space.shape == (default.observation_dim,)
    assert env.action_space.shape == (default.action_dim,)
    base.task_infos.clear()
    base._reward_task_id = 0
    base.set_tasks()
    assert base._reward_task_id == default.goal
    for goal, info in enumerate(base.task_infos, start=1):
        rewards = get_task(f"{short_name}-task{goal}").rewards
        if isinstance(rewards, Reach):
            assert rewards.goal == info["goal_xy"] and rewards.tolerance == base._goal_tol
            continue
        assert isinstance(rewards, Together)
        placed = [np.array(part.target) for part in rewards.parts if isinstance(part, Placed)]
        cubes = [target for target in placed if len(target) == 3]
        wanted = info["goal"] if "goal" in info else {"block_xyzs": info["goal_xyzs"]}
        np.testing.assert_array_equal(cubes, wanted["block_xyzs"])
        if "button_states" in wanted:
            states = [part.target for part in rewards.parts if isinstance(part, Switched)]
            assert states == wanted["button_states"].tolist()
            assert [target.item() for target in placed[1:]] == [wanted["drawer_pos"], wanted["window_pos"]]
    assert len(base.task_infos) == 5


def test_a_wrong_goal_would_be_seen() -> None:
    """The comparison above is sharp: a goal moved by a hundredth of a unit fails it."""
    task = get_task("pointmaze-medium-stitch")
    env = environment(task.env_id)
    env.unwrapped._reward_task_id = task.goal
    env.reset(seed=0)
    rows = around_the_goal(task, env)
    assert isinstance(task.rewards, Reach)
    moved = replace(task.rewards, goal=(task.rewards.goal[0] + 0.01, task.rewards.goal[1]))
    assert np.any(moved.success(rows.observations) != task.rewards.success(rows.observations))
