"""`data make` against the loop of OGBench's generator (`data_gen_scripts/generate_locomaze.py`), in turns.

The loop is that script's, with the same policy that `data make` uses in place of its own (a network called through JAX
at every step, which is slower), and without its compressed file at the end. Rates are rows for each second of
processor time: other programs change them less than rates by the clock.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.collect import make_dataset
from astro_rl.collect.ant_expert import AntExpert
from astro_rl.collect.locomotion import STITCH_CELLS
from astro_rl.collect.mazes import cells_at, free_cells
from astro_rl.envs.build import make_env

ROWS, ROUNDS = 201, 3
EPISODES = {"pointmaze-medium-stitch": 100, "antmaze-medium-stitch": 40}


def processor_seconds() -> float:
    """Of this process and of its finished children."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def ogbench_loop(env: Any, expert: AntExpert | None, noise: float, episodes: int) -> None:
    maze = env.unwrapped
    walls = maze.maze_map == 1
    cells = free_cells(walls)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("observations", "actions", "terminals", "qpos", "qvel")
    }
    for _ in range(episodes):
        init = cells[np.random.randint(len(cells))]
        ends = cells_at(walls, init, STITCH_CELLS)
        goal = ends[np.random.randint(len(ends))] if ends else init
        ob, _ = env.reset(options={"task_info": {"init_ij": init, "goal_ij": goal}})
        done = False
        while not done:
            subgoal, _ = maze.get_oracle_subgoal(maze.get_xy(), maze.cur_goal_xy)
            direction = subgoal - maze.get_xy()
            direction = direction / (np.linalg.norm(direction) + 1e-6)
            agent_ob = np.concatenate([maze.get_ob(ob_type="states")[2:], direction])
            action = agent_ob[-2:] if expert is None else expert(agent_ob[:-2], agent_ob[-2:])
            action = np.clip(action + np.random.normal(0, noise, action.shape), -1, 1)
            following, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            row = (ob, action, done, info["prev_qpos"], info["prev_qvel"])
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
            ob = following


def rates(name: str, workers: int) -> dict[str, float]:
    """Rows a processor second of the loop and of `data make`, files included, and rows a second of the latter."""
    episodes, ant = EPISODES[name], name.startswith("antmaze")
    env = make_env(f"{name.removesuffix('-stitch')}-v0", terminate_at_goal=False, max_episode_steps=ROWS)
    expert = AntExpert() if ant else None
    ogbench_loop(env, expert, 0.2 if ant else 0.5, 2)
    best = {"loop": 0.0, "make": 0.0, "make_wall": 0.0}
    for round_number in range(ROUNDS):
        start = processor_seconds()
        ogbench_loop(env, expert, 0.2 if ant else 0.5, episodes)
        best["loop"] = max(best["loop"], episodes * ROWS / (processor_seconds() - start))
        with tempfile.TemporaryDirectory() as folder:
            # Workers take seconds to start, which a dataset of a million rows does not notice: make more rows here.
            count = workers * 4 * episodes
            start, clock = processor_seconds(), time.perf_counter()
            make_dataset(
                f"{name}-v0",
                out=Path(folder),
                episodes=count,
                val_episodes=1,
                seed=round_number,
                workers=workers,
            )
            made = (count + 1) * ROWS
            best["make"] = max(best["make"], made / (processor_seconds() - start))
            best["make_wall"] = max(best["make_wall"], made / (time.perf_counter() - clock))
    env.close()
    return best


def all_rates() -> dict[str, dict[str, float]]:
    workers = len(os.sched_getaffinity(0))
    return {name: rates(name, workers) for name in EPISODES}
