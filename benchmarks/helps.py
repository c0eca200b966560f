"""Does augmented data help? `python -m benchmarks.helps DATA.npz --task NAME --augmented astro=AUG.astro --out F`.

Trains each learner on the original data and on each mixture with augmented data: same updates, same seeds, final
states, every raw episode kept. With several tasks and no augmented data it shows which goals the baseline leaves room
on. On an accelerator all arms and seeds train in one program; on a CPU one arm after the other, and arms that F holds
already are left out.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro
from tyro.conf import Positional

from astro_rl.agents.presets import learner_for
from astro_rl.cli.train import parse_settings
from astro_rl.data import Dataset, load
from astro_rl.run.evaluation import evaluate_policy
from astro_rl.run.policy import Policy
from astro_rl.tasks import get_task, relabel
from astro_rl.training.arms import Arm, Table, build_table, members_of, train_arms
from astro_rl.training.loop import init_states

ORIGINAL = "original"


@dataclass(frozen=True)
class Arguments:
    """Train and evaluate all arms of one dataset."""

    data: Positional[Path]
    task: tuple[str, ...]
    out: Path
    augmented: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=PATH")] = ()
    learner: tuple[Literal["iql", "fql", "bc", "td3bc", "rebrac"], ...] = ("iql", "fql")
    preset: Literal["tiny", "cpu", "paper", "fql"] = "cpu"
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Learner settings that differ from the preset."""
    updates: int = 300_000
    chunk: int = 10_000
    seeds: int = 8
    first_seed: int = 0
    episodes: int = 50
    workers: int | None = None
    share_only: bool = False
    """Also train on each augmented dataset alone."""


def main(arguments: Arguments) -> None:
    tasks = [get_task(name) for name in arguments.task]
    datasets = {ORIGINAL: load(arguments.data)}
    for pair in arguments.augmented:
        name, _, path = pair.partition("=")
        datasets[name] = load(path)
    labels = {name: [labelled(dataset, task) for task in tasks] for name, dataset in datasets.items()}
    table, ranges = build_table(datasets, labels)
    seeds = tuple(range(arguments.first_seed, arguments.first_seed + arguments.seeds))
    arms = [
        Arm(name, (ORIGINAL,) if name == ORIGINAL else (ORIGINAL, name), k)
        for k in range(len(tasks))
        for name in datasets
    ]
    if arguments.share_only:
        arms += [
            Arm(f"{name} alone", (name,), k)
            for k in range(len(tasks))
            for name in datasets
            if name != ORIGINAL
        ]
    # An accelerator trains all arms in one program; a CPU gains nothing from that, and keeps what is done.
    together = jax.default_backend() != "cpu"
    for learner_name in arguments.learner:
        learner = learner_for(
            learner_name, preset=arguments.preset, task=tasks[0], **parse_settings(arguments.set)
        )
        done = recorded(arguments, learner_name)
        left = [arm for arm in arms if (tasks[arm.labelling].name, arm.name, list(seeds)) not in done]
        for group in [left] if together and left else [[arm] for arm in left]:
            members, keys = members_of(group, ranges, seeds)
            states, metrics, rate = trained(learner, members, keys, table, len(group), arguments)
            print(
                f"{learner_name}: {rate:.0f} updates/s for {len(group)} arms x {len(seeds)} seeds", flush=True
            )
            for number, arm in enumerate(group):
                own = slice(number * len(seeds), (number + 1) * len(seeds))
                policy = Policy(
                    learner,
                    jax.tree.map(lambda leaf, own=own: leaf[own], states),
                    seeds,
                    table.observations.shape[1],
                    table.actions.shape[1],
                )
                task = tasks[arm.labelling]
                row: dict[str, Any] = {
                    "data": arguments.data.stem,
                    "task": task.name,
                    "learner": learner_name,
                    "preset": arguments.preset,
                    "set": list(arguments.set),
                    "arm": arm.name,
                    "seeds": list(seeds),
                    "updates": arguments.updates,
                    "metrics": {name: np.asarray(values)[own].tolist() for name, values in metrics.items()},
                }
                evaluation = evaluate_policy(
                    policy, task, episodes=arguments.episodes, workers=arguments.workers
                )
                row |= {
                    name: evaluation[name] for name in ("scores", "summary", "episodes", "success_timing")
                }
                with arguments.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                scores = np.array(row["scores"])
                print(
                    f"{learner_name} {task.name} {arm.name}: {scores.mean():.1f} ± {scores.std():.1f} "
                    f"{row['scores']}",
                    flush=True,
                )


def trained(
    learner: Any, members: Any, keys: Any, table: Table, arms: int, arguments: Arguments
) -> tuple[Any, dict[str, Any], float]:
    """Final states of all members, the last chunk's metrics, and updates a second from the second chunk on."""
    per_arm = len(keys) // arms
    width, actions = table.observations.shape[1], table.actions.shape[1]
    states = jax.tree.map(np.asarray, init_states(learner, keys[:per_arm], width, actions))
    states = jax.tree.map(lambda leaf: jax.numpy.tile(leaf, (arms, *[1] * (leaf.ndim - 1))), states)
    started, counted, info = time.time(), 0, {}
    for step in range(0, arguments.updates, arguments.chunk):
        count = min(arguments.chunk, arguments.updates - step)
        states, info = train_arms(learner, states, keys, step, table, members, count)
        jax.block_until_ready(info)
        counted += count
        if step == 0:
            # The first chunk compiles.
            started, counted = time.time(), 0
    return states, info, counted / max(time.time() - started, 1e-9)


def recorded(arguments: Arguments, learner: str) -> list[tuple[str, str, list[int]]]:
    """(task, arm, seeds) that the record holds already under these very settings."""
    if not arguments.out.exists():
        return []
    rows = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    wanted = (arguments.data.stem, learner, arguments.preset, list(arguments.set), arguments.updates)
    return [
        (row["task"], row["arm"], row["seeds"])
        for row in rows
        if (row["data"], row["learner"], row["preset"], row["set"], row["updates"]) == wanted
    ]


def labelled(dataset: Dataset, task: Any) -> tuple[np.ndarray, np.ndarray]:
    relabelled = relabel(dataset, task)
    assert relabelled.rewards is not None
    return np.asarray(relabelled.rewards), np.asarray(relabelled.terminated)


if __name__ == "__main__":
    main(tyro.cli(Arguments))
