"""Records of scores made up for tests, in the very format that the runner and `benchmarks.helps` write."""

import json
from pathlib import Path
from typing import Any

TASK = "pointmaze-medium-stitch-singletask-task1-v0"


def line(arm: str, successes: list[list[bool]], **changes: Any) -> dict[str, Any]:
    """Seeds × episodes; a success ends an episode with return −10."""
    seeds = list(range(len(successes)))
    record = {
        "data": "pointmaze-medium-stitch-v0",
        "task": TASK,
        "learner": "iql",
        "preset": "tiny",
        "set": [],
        "arm": arm,
        "seeds": seeds,
        "updates": 100,
        "scores": [100.0 * sum(each) / len(each) for each in successes],
        "episodes": {
            "format": "astro-rl evaluation",
            "format_version": 1,
            "environment": "pointmaze-medium-singletask-task1-v0",
            "seeds": seeds,
            "returns": [[-10.0 if hit else -1000.0 for hit in each] for each in successes],
            "lengths": [[10 if hit else 1000 for hit in each] for each in successes],
            "successes": successes,
        },
    }
    return {**record, **changes}


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path
