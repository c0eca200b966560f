"""astro-rl: fragmented offline-RL data in, longer dynamics-consistent trajectories out, and the proof that they help.

Names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astro_rl.agents.presets import learner_for
    from astro_rl.astro import Astro
    from astro_rl.collect import make_dataset
    from astro_rl.data import (
        Dataset,
        Trajectory,
        from_arrays,
        from_dict,
        from_trajectories,
        from_transitions,
        load,
        save,
    )
    from astro_rl.data.inspection import inspect_dataset
    from astro_rl.errors import AstroError
    from astro_rl.progress import progress_bar
    from astro_rl.quality.measure import measure
    from astro_rl.run.policy import Policy, load_policy
    from astro_rl.run.train import Execution, TrainResult, TrainSettings, train
    from astro_rl.stitch.geometry import ChainShape
    from astro_rl.tasks import Task, all_tasks, get_task, paper_tasks, relabel

_HOME = {
    "Astro": "astro",
    "AstroError": "errors",
    "ChainShape": "stitch.geometry",
    "Dataset": "data",
    "Execution": "run.train",
    "Policy": "run.policy",
    "Task": "tasks",
    "TrainResult": "run.train",
    "TrainSettings": "run.train",
    "Trajectory": "data",
    "all_tasks": "tasks",
    "from_arrays": "data",
    "from_dict": "data",
    "from_trajectories": "data",
    "from_transitions": "data",
    "get_task": "tasks",
    "inspect_dataset": "data.inspection",
    "learner_for": "agents.presets",
    "load": "data",
    "load_policy": "run.policy",
    "make_dataset": "collect",
    "measure": "quality.measure",
    "paper_tasks": "tasks",
    "progress_bar": "progress",
    "relabel": "tasks",
    "save": "data",
    "train": "run.train",
}

__all__ = [
    "Astro",
    "AstroError",
    "ChainShape",
    "Dataset",
    "Execution",
    "Policy",
    "Task",
    "TrainResult",
    "TrainSettings",
    "Trajectory",
    "all_tasks",
    "from_arrays",
    "from_dict",
    "from_trajectories",
    "from_transitions",
    "get_task",
    "inspect_dataset",
    "learner_for",
    "load",
    "load_policy",
    "make_dataset",
    "measure",
    "paper_tasks",
    "progress_bar",
    "relabel",
    "save",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
