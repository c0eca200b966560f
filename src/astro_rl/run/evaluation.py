"""Score trained policies on their task: the one path by which a number in a table is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from astro_rl.errors import MissingDependency
from astro_rl.run.policy import Policy
from astro_rl.tasks.task import Task

LANES_PER_SEED = 10
"""Environments a seed; episodes beyond that follow in the same ones. Fixed, because a compiled policy may round a row
differently in a batch of another size."""


def evaluate_policy(
    policy: Policy,
    task: Task,
    *,
    episodes: int = 50,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run `episodes` episodes a seed and return scores, their summary and every raw episode, in JSON's terms."""
    from astro_rl.evaluate import EvaluationPool

    with EvaluationPool(
        task.env_id,
        lanes_per_seed=LANES_PER_SEED,
        workers=workers,
        draws_globally_in_step=task.draws_globally_in_step,
    ) as pool:
        result = pool.evaluate(acting(policy), seeds=policy.seeds, episodes=episodes, progress=progress)
    return {
        "task": task.name,
        "success_timing": task.success_timing,
        "scores": result.scores.tolist(),
        "summary": result.summary().to_json(),
        "episodes": result.to_json(),
    }


def require_environment(env_id: str) -> None:
    """Refuse before training what would only fail after it: an environment whose packages are not installed."""
    from importlib.util import find_spec

    from astro_rl.envs.build import is_d4rl

    extra, packages = (
        ("d4rl", ("mujoco", "gymnasium")) if is_d4rl(env_id) else ("ogbench", ("ogbench", "gymnasium"))
    )
    for package in packages:
        if find_spec(package) is None:
            raise MissingDependency(package, extra, f"Evaluating on {env_id!r}")


def acting(policy: Policy) -> Callable[[Any, Any], np.ndarray]:
    """All seeds' policies as one function of (seeds, lanes, obs) and (seeds, lanes) keys, compiled once."""

    @jax.jit
    def act(states: Any, observations: Any, keys: Any) -> Any:
        return jax.vmap(policy.learner.act)(states, observations, keys)

    return lambda observations, keys: np.asarray(act(policy.states, observations, keys))
