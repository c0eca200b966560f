"""An episode depends on its seed, and on nothing that was done before or elsewhere."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import SeededEnv, draws_globally_in_step, numpy_globals, reset_seeded

CASES: list[tuple[str, dict[str, Any]]] = [
    ("pointmaze-teleport-v0", {}),
    ("antmaze-medium-singletask-task2-v0", {}),
    ("antsoccer-arena-v0", {}),
    ("humanoidmaze-medium-v0", {}),
    ("scene-v0", {}),
    ("scene-v0", {"mode": "data_collection"}),
]


def episode(env: gymnasium.Env, seed: int, steps: int = 40) -> bytes:
    observation, info = env.reset(seed=seed)
    actions = np.random.default_rng(seed)
    told = [info[name] for name in sorted(info) if np.asarray(info[name]).dtype.kind in "fiub"]
    seen = [observation, *told]
    for _ in range(steps):
        observation, reward, *_ = env.step(actions.uniform(-1, 1, env.action_space.shape))
        seen.extend([observation, reward])
    return b"".join(np.asarray(part, np.float64).tobytes() for part in seen)


@pytest.mark.parametrize(("env_id", "kwargs"), CASES, ids=[f"{e}{'-'.join(k)}" for e, k in CASES])
def test_same_seed_same_episode_whatever_came_before(env_id: str, kwargs: dict[str, Any]) -> None:
    env = SeededEnv(make_env(env_id, **kwargs))
    first = {seed: episode(env, seed) for seed in (3, 1, 2)}
    np.random.seed(99)
    np.random.normal(size=3)
    before = np.random.get_state(legacy=False)
    env.reset()
    again = {seed: episode(env, seed, steps=40) for seed in (2, 3, 1)}
    after = np.random.get_state(legacy=False)
    assert again == first
    assert len(set(first.values())) == 3
    assert before["gauss"] == after["gauss"]
    assert before["has_gauss"] == after["has_gauss"] == 1
    np.testing.assert_array_equal(before["state"]["key"], after["state"]["key"])
    assert before["state"]["pos"] == after["state"]["pos"]


@pytest.mark.parametrize("env_id", ["pointmaze-teleport-v0", "scene-v0"])
def test_a_fresh_environment_gives_the_same_episode(env_id: str) -> None:
    one, other = (SeededEnv(make_env(env_id)) for _ in range(2))
    episode(one, 5)
    assert episode(one, 7) == episode(other, 7)


def test_targets_of_earlier_scenes_are_forgotten() -> None:
    env = SeededEnv(make_env("scene-v0", mode="data_collection"))

    def targets(seed: int) -> dict[str, list[float]]:
        _, info = env.reset(seed=seed)
        return {name: np.ravel(info[name]).tolist() for name in info if "target" in name}

    first = [targets(seed) for seed in range(4)]
    for _ in range(20):
        env.unwrapped.set_new_target()  # pyright: ignore[reportAttributeAccessIssue]
    assert [targets(seed) for seed in range(4)] == first


def test_only_teleports_draw_in_steps() -> None:
    assert draws_globally_in_step(make_env("pointmaze-teleport-v0"))
    assert not draws_globally_in_step(make_env("pointmaze-medium-v0"))


def test_teleport_exits_follow_from_the_seed() -> None:
    """Straight into an entrance, again and again: the exits taken are the seed's, and the seed's only."""

    def exits(env: gymnasium.Env, seed: int) -> list[tuple[float, ...]]:
        env.reset(seed=seed)
        maze: Any = env.unwrapped
        found = []
        for _ in range(12):
            maze.set_xy(np.array(maze.ij_to_xy((4, 6))))
            env.step(np.zeros(2))
            found.append(tuple(np.round(maze.get_xy())))
        return found

    env = SeededEnv(make_env("pointmaze-teleport-v0"))
    first = exits(env, 0)
    assert len(set(first)) == 3
    np.random.seed(0)
    assert exits(env, 0) == first
    assert exits(env, 1) != first


def test_unseeded_resets_continue_the_seed_s_stream() -> None:
    env = SeededEnv(make_env("pointmaze-medium-v0"))

    def three(seed: int) -> list[tuple[float, ...]]:
        starts = [env.reset(seed=seed)[0], env.reset()[0], env.reset()[0]]
        return [tuple(start) for start in starts]

    assert three(4) == three(4)
    assert len(set(three(4))) == 3


def test_never_seeded_environments_differ() -> None:
    starts = {tuple(SeededEnv(make_env("pointmaze-medium-v0")).reset()[0]) for _ in range(3)}
    assert len(starts) == 3


def test_reset_seeded_takes_options() -> None:
    env = make_env("pointmaze-medium-v0")
    starts = [reset_seeded(env, 8, {"task_id": 1})[0] for _ in range(2)]
    np.testing.assert_array_equal(*starts)
    assert np.abs(starts[0]).max() <= 1.0, "task 1 starts in the corner cell"


def test_the_caller_s_generator_comes_back_even_after_an_error() -> None:
    np.random.seed(3)
    expected = np.random.RandomState(3).uniform(size=2)
    with pytest.raises(ValueError, match="inside"), numpy_globals(1):
        np.random.uniform(size=100)
        raise ValueError("inside")
    np.testing.assert_array_equal(np.random.uniform(size=2), expected)
