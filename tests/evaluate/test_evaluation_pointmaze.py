"""The whole path with a real environment: a policy that knows the maze succeeds, one that does not fails."""

from typing import Any

import jax
import numpy as np
import pytest

from astro_rl.evaluate import EvaluationPool

pytest.importorskip("ogbench")
ENVIRONMENT = "pointmaze-medium-singletask-task1-v0"
draw = jax.jit(jax.vmap(jax.vmap(lambda key: jax.random.uniform(key, (2,), minval=-1, maxval=1))))


def noise(observations: np.ndarray, keys: Any) -> np.ndarray:
    return np.asarray(draw(keys))


def test_a_policy_that_knows_the_way_succeeds_and_noise_does_not() -> None:
    from astro_rl.envs.build import make_env
    from astro_rl.envs.seeding import reset_seeded

    maze: Any = make_env(ENVIRONMENT)
    reset_seeded(maze, 0)

    def guided(observations: np.ndarray, keys: Any) -> np.ndarray:
        actions = np.zeros_like(observations)
        for index in np.ndindex(observations.shape[:2]):
            position = observations[index].astype(np.float64)
            target, _ = maze.unwrapped.get_oracle_subgoal(position, maze.unwrapped.cur_goal_xy)
            away = target - position
            actions[index] = away / max(1.0, float(np.linalg.norm(away)))
        return actions

    with EvaluationPool(ENVIRONMENT, lanes_per_seed=2, workers=2) as pool:
        assert (pool.spaces.observation_dim, pool.spaces.action_dim) == (2, 2)
        arrived = pool.evaluate(guided, seeds=(0, 1), episodes=2)
        lost = pool.evaluate(noise, seeds=(0, 1), episodes=2)
    assert arrived.scores.tolist() == [100.0, 100.0]
    # One reward of −1 a step until it arrives, and the episode ends there.
    np.testing.assert_array_equal(arrived.returns, 1.0 - arrived.lengths)
    assert lost.scores.tolist() == [0.0, 0.0]
    assert (lost.lengths == 1000).all() and (lost.returns == -1000).all()
    with EvaluationPool(ENVIRONMENT, lanes_per_seed=1, workers=0) as pool:
        again = pool.evaluate(guided, seeds=(1, 0), episodes=2)
    np.testing.assert_array_equal(again.returns, arrived.returns[::-1])
