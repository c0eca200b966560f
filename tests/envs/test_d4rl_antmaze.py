"""D4RL's antmazes: against its published facts, and against OGBench's ant, which has the same body and time
step."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from astro_rl.envs.build import make_env
from astro_rl.envs.d4rl_antmaze import make
from astro_rl.envs.seeding import reset_seeded
from astro_rl.errors import AstroError
from astro_rl.tasks import get_task, project, state_of
from astro_rl.tasks.d4rl import MAZES

SMALL, MEDIUM, LARGE = "antmaze-umaze-v2", "antmaze-medium-play-v2", "antmaze-large-diverse-v2"


@cache
def built(env_id: str) -> Any:
    return make(env_id)


@cache
def ogbench_medium() -> Any:
    """OGBench's medium maze has D4RL's map, scale and origin."""
    env = make_env("antmaze-medium-singletask-v0")
    reset_seeded(env, seed=0)
    return env


def ant_and_walls(model: Any) -> dict[str, np.ndarray]:
    """Everything of a compiled model that its physics depends on, goal marks left out."""
    solid = np.flatnonzero((model.geom_contype != 0) | (model.geom_conaffinity != 0))
    bodies = ("mass", "inertia", "pos", "quat", "ipos", "iquat", "parentid")
    joints = ("type", "pos", "axis", "range", "limited", "margin", "stiffness")
    dofs = ("armature", "damping", "frictionloss")
    geoms = ("type", "pos", "quat", "size", "friction", "margin", "gap", "condim", "contype", "conaffinity")
    fields = {f"body_{name}": getattr(model, f"body_{name}") for name in bodies}
    fields |= {f"jnt_{name}": getattr(model, f"jnt_{name}") for name in (*joints, "solref", "solimp")}
    fields |= {f"dof_{name}": getattr(model, f"dof_{name}") for name in dofs}
    order = np.lexsort(np.round(np.hstack([model.geom_pos, model.geom_bodyid[:, None]])[solid], 6).T)
    for name in (*geoms, "solref", "solimp", "bodyid"):
        fields[f"geom_{name}"] = getattr(model, f"geom_{name}")[solid][order]
    torque = model.actuator_gear[:, :1] * model.actuator_ctrlrange
    fields |= {"actuator_torque": torque, "actuator_trnid": model.actuator_trnid, "qpos0": model.qpos0}
    fields["options"] = np.array(
        [model.opt.timestep, model.opt.integrator, model.opt.cone, *model.opt.gravity]
    )
    return fields


def test_the_model_is_ogbenchs_ant_in_the_same_maze() -> None:
    ours, theirs = (
        ant_and_walls(built(MEDIUM).unwrapped.model),
        ant_and_walls(ogbench_medium().unwrapped.model),
    )
    floor = np.flatnonzero(ours["geom_type"] == 0)  # a plane: where it is drawn does not matter
    assert len(floor) == 1 and floor == np.flatnonzero(theirs["geom_type"] == 0)
    for name in ours:
        if name in ("geom_pos", "geom_size"):
            ours[name], theirs[name] = (np.delete(fields[name], floor, axis=0) for fields in (ours, theirs))
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-9, err_msg=name)


def test_a_step_is_ogbenchs_step() -> None:
    """Same state, same action, same next observation: free, and in the corner that it walks into."""
    ours, theirs = built(MEDIUM).unwrapped, ogbench_medium().unwrapped
    rng = np.random.default_rng(0)
    observation, _ = ours.reset(seed=0)
    floor, wall = 0, 0
    for step in range(80):
        qpos, qvel = observation[:15].copy(), observation[15:].copy()
        if step == 40:
            qpos[:2] = -1.2  # into the wall's corner
        ours.set_state(qpos, qvel)
        theirs.set_state(qpos, qvel)
        action = rng.choice([-1.0, 1.0], 8).astype(np.float32)
        observation, *_ = ours.step(action)
        other, *_ = theirs.step(action)
        np.testing.assert_allclose(observation, other, atol=1e-9)
        touched = {ours.model.geom(geom).name for geom in ours.data.contact.geom.ravel()}
        floor, wall = floor + ("floor" in touched), wall + any(name.startswith("block") for name in touched)
    assert floor > 30 and wall > 1, "the comparison has to include contacts with both"


@pytest.mark.parametrize("env_id", [SMALL, MEDIUM, LARGE])
def test_every_wall_stands_and_every_free_cell_is_free(env_id: str) -> None:
    env, maze = built(env_id).unwrapped, MAZES[env_id]
    blocks = {}
    for row, column in maze.walls:
        geom = env.model.geom(f"block_{row}_{column}")
        blocks[row, column] = geom.pos[:2]
        np.testing.assert_array_equal(geom.pos, [*maze.center((row, column)), 1.0])
        np.testing.assert_array_equal(geom.size, [2.0, 2.0, 1.0])
    cells = {(i, j) for i in range(len(maze.rows)) for j in range(len(maze.rows[0]))}
    assert env.model.ngeom == len(blocks) + 14  # the floor, the torso and three capsules a leg
    for cell in sorted(cells - set(blocks)):
        assert all(np.abs(np.array(maze.center(cell)) - xy).max() >= 4.0 for xy in blocks.values())


@pytest.mark.parametrize("env_id", [SMALL, LARGE])
def test_resets_and_goals_fall_where_d4rls_do(env_id: str) -> None:
    env = built(env_id)
    corner = np.array(MAZES[env_id].goal_corner)
    starts, goals = [], []
    for seed in range(300):
        observation, info = env.reset(seed=seed)
        starts.append(observation)
        goals.append(info["goal"] - corner)
    starts, goals = np.array(starts), np.array(goals)
    assert starts.shape == (300, 29) and starts.dtype == np.float64
    positions = np.delete(starts[:, :15], np.s_[3:7], axis=1)  # x, y, z and eight joints
    center = np.array([0, 0, 0.75] + [0.0] * 8)
    assert np.abs(positions - center).max() <= 0.1
    np.testing.assert_allclose(positions.std(axis=0), 0.2 / np.sqrt(12), rtol=0.15)
    np.testing.assert_allclose(np.linalg.norm(starts[:, 3:7], axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(starts[:, 15:].std(axis=0), 0.1, rtol=0.2)
    # A uniform draw from [0, 1] plus one from [0, 0.5].
    assert goals.min() >= 0.0 and goals.max() <= 1.5 and goals.max() > 1.35
    np.testing.assert_allclose(goals.mean(axis=0), 0.75, atol=0.06)
    np.testing.assert_allclose(goals.std(axis=0), np.sqrt((1 + 0.25) / 12), rtol=0.15)


def test_arriving_pays_one_and_ends_the_episode() -> None:
    env = built(SMALL)
    env.reset(seed=0, options={"goal": (0.0, 8.0)})
    base = env.unwrapped
    rest = np.zeros(8, dtype=np.float32)
    qpos, qvel = base.data.qpos.copy(), np.zeros(14)
    outcomes = []
    for distance in (0.6, 0.4):
        qpos[:2] = 0.0, 8.0 - distance
        base.set_state(qpos, qvel)
        observation, reward, terminated, truncated, info = env.step(rest)
        away = np.linalg.norm(observation[:2] - [0.0, 8.0])
        outcomes.append((float(away <= 0.5), reward, terminated, info["success"]))
        assert not truncated
    assert outcomes == [(0.0, 0.0, False, 0.0), (1.0, 1.0, True, 1.0)]


def test_the_observation_is_the_state_and_the_tables_reward_is_the_environments() -> None:
    task, env = get_task(SMALL), built(SMALL)
    base = env.unwrapped
    env.reset(seed=0, options={"goal": task.rewards.goal})  # pyright: ignore[reportAttributeAccessIssue]
    rng, paid = np.random.default_rng(0), []
    for _ in range(30):
        qpos, qvel = base.data.qpos.copy(), base.data.qvel.copy()
        qpos[:2] = base.goal + rng.uniform(-0.7, 0.7, 2)
        base.set_state(qpos, qvel)
        observation, reward, terminated, _, _ = base.step(env.action_space.sample())
        np.testing.assert_array_equal(np.concatenate(state_of(task).to_qpos_qvel(observation)), observation)
        np.testing.assert_allclose(project(task)(observation), observation, atol=1e-9)
        assert task.rewards.reward(observation) == reward - 1
        assert task.rewards.success(observation) == terminated
        paid.append(reward)
    assert set(paid) == {0.0, 1.0}


@pytest.mark.parametrize(("env_id", "limit"), [(SMALL, 700), (MEDIUM, 1000)])
def test_time_limits(env_id: str, limit: int) -> None:
    env = built(env_id)
    assert env.spec is not None and env.spec.max_episode_steps == limit == get_task(env_id).max_episode_steps
    env.reset(seed=0)
    rest = np.zeros(8, dtype=np.float32)
    for step in range(1, limit + 1):
        _, reward, terminated, truncated, _ = env.step(rest)
        assert reward == 0.0 and not terminated and truncated == (step == limit)


def test_the_seed_of_reset_decides_everything() -> None:
    def episode(seed: int) -> np.ndarray:
        observation, info = env.reset(seed=seed)
        steps = [env.step(np.full(8, 0.3, dtype=np.float32))[0] for _ in range(5)]
        return np.concatenate([observation, info["goal"], *steps, env.reset()[1]["goal"]])

    env = built(SMALL)
    np.random.seed(1)
    first = episode(7)
    np.random.seed(2)
    np.testing.assert_array_equal(first, episode(7))
    assert not np.array_equal(first, episode(8))


def test_actions_are_clipped_and_pictures_are_made_only_on_request() -> None:
    env = built(SMALL).unwrapped
    reached = []
    for size in (5.0, 1.0):
        env.reset(seed=0)
        reached.append(env.step(np.full(8, size, dtype=np.float32))[0])
    np.testing.assert_array_equal(*reached)
    assert env.render() is None


def test_the_goals_mark_stands_at_the_goal() -> None:
    env = built(LARGE).unwrapped
    for seed in range(2):
        _, info = env.reset(seed=seed)
        np.testing.assert_array_equal(env.data.site("goal").xpos[:2], info["goal"])


def test_other_names_are_refused() -> None:
    with pytest.raises(AstroError, match="antmaze-umaze-v2"):
        make("antmaze-umaze-v0")
