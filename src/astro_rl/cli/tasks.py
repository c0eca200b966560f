"""`astro-rl tasks`: the task table, or one row of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tyro.conf import Positional

from astro_rl.cli.output import print_json, print_table
from astro_rl.tasks.task import Task


@dataclass(frozen=True)
class Tasks:
    """List the tasks, or say everything about one."""

    name: Positional[str | None] = None
    """A task, such as antmaze-large-stitch or pointmaze-medium-stitch-task3."""
    all: bool = False
    """Every goal, not only each dataset's default one."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from astro_rl.tasks import all_tasks, get_task

        if self.name is not None:
            facts = facts_of(get_task(self.name))
            if self.json:
                print_json(facts)
            else:
                print_table(None, ("", ""), list(facts.items()))
            return 0
        chosen = [task for task in all_tasks() if self.all or task.is_default_goal]
        if self.json:
            print_json([facts_of(task) for task in chosen])
            return 0
        rows = [
            (
                t.name,
                t.observation_dim,
                t.action_dim,
                t.horizon,
                f"{t.segment}/{t.mask}",
                t.discount,
                t.iql_alpha,
                t.fql_alpha,
            )
            for t in chosen
        ]
        print_table(None, ("task", "obs", "act", "L", "l/M", "γ", "IQL α", "FQL α"), rows)
        return 0


def facts_of(task: Task) -> dict[str, Any]:
    """A task's row in JSON's terms."""
    return {
        "name": task.name,
        "suite": task.suite,
        "dataset": task.dataset,
        "environment": task.env_id,
        "goal": task.goal,
        "default_goal": task.is_default_goal,
        "observation_dim": task.observation_dim,
        "action_dim": task.action_dim,
        "max_episode_steps": task.max_episode_steps,
        "horizon": task.horizon,
        "segment": task.segment,
        "mask": task.mask,
        "discount": task.discount,
        "iql_alpha": task.iql_alpha,
        "fql_alpha": task.fql_alpha,
        "fql_settings": dict(task.fql_settings),
        "xy_indices": None if task.xy_indices is None else list(task.xy_indices),
        "success_timing": task.success_timing,
        "published": {f"{cell.learner}/{cell.method}": cell.score for cell in task.published},
    }
