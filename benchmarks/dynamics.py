"""The dynamics model on held-out real sequences: `python benchmarks/dynamics.py DATA.npz --task NAME --patch 1 2 6`.

For each patch it trains a model, then prints the error of rolled-out states (true actions) at several steps, in the
environment's units and as normalised MSE, for several numbers of sampling steps.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jax
import tyro
from tyro.conf import Positional

from astro_rl.augment.settings import falling
from astro_rl.data import load
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.dynamics.metrics import rollout_error
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import sequence_data, spread_of
from astro_rl.nets.dit import DiTConfig
from astro_rl.tasks import get_task
from astro_rl.training.fit import fit_chunk

HELD_OUT = 0.05


@dataclass(frozen=True)
class Arguments:
    """Train dynamics models on one dataset and measure them."""

    data: Positional[Path]
    task: str
    out: Path
    patch: tuple[int, ...] = (6,)
    reach: tuple[int, ...] = (1,)
    predicts: tuple[Literal["clean", "noise", "velocity"], ...] = ("velocity",)
    horizon: int = 180
    steps: int = 6_000
    width: int = 192
    depth: int = 4
    step_width: int = 96
    batch: int = 64
    learning_rate: float = 1e-3
    step_weight: float = 0.1
    cooldown: float = 0.5
    relative: bool = True
    sampling_steps: tuple[int, ...] = (1, 2, 5, 10, 20)
    seed: int = 0
    trajectories: int | None = None
    """Use only so many of the dataset's trajectories."""


def main(arguments: Arguments) -> None:
    dataset, task = load(arguments.data), get_task(arguments.task)
    count = min(arguments.trajectories or len(dataset), len(dataset))
    kept = count - max(1, round(HELD_OUT * count))
    training, held_out = dataset.select(range(kept)), dataset.select(range(kept, count))
    normaliser = fit_normaliser(training.observations)
    data = sequence_data(training, normaliser, arguments.horizon)
    at = tuple(step for step in (1, 6, 18, 90, 179) if step < arguments.horizon)
    for patch in arguments.patch:
        for reach in arguments.reach:
            for predicts in arguments.predicts:
                net = DiTConfig(
                    width=arguments.width,
                    depth=arguments.depth,
                    patch=patch,
                    step_width=arguments.step_width,
                    reach=reach,
                )
                model = Dynamics(
                    arguments.horizon,
                    dataset.observation_dim,
                    dataset.action_dim,
                    net=net,
                    predicts=predicts,
                    batch_size=arguments.batch,
                    learning_rate=arguments.learning_rate,
                    step_weight=arguments.step_weight,
                    cooldown=falling(arguments.steps, arguments.cooldown),
                    spread=spread_of(data, arguments.horizon)
                    if arguments.relative and predicts == "velocity"
                    else (),
                )
                state = model.init(jax.random.key(arguments.seed))
                started, info, chunk = time.time(), {}, min(500, arguments.steps)
                for step in range(0, arguments.steps, chunk):
                    state, info = fit_chunk(
                        model, state, data, jax.random.key(arguments.seed + 1), step, chunk
                    )
                    jax.block_until_ready(info)
                seconds = time.time() - started
                for sampling_steps in arguments.sampling_steps:
                    error = rollout_error(
                        model,
                        state.average,
                        held_out,
                        normaliser,
                        xy=task.xy_indices,
                        at=at,
                        sampling_steps=sampling_steps,
                    )
                    row = {
                        "data": arguments.data.stem,
                        "horizon": arguments.horizon,
                        "patch": patch,
                        "reach": reach,
                        "predicts": predicts,
                        "relative": bool(model.spread),
                        "cooldown": arguments.cooldown,
                        "step_weight": arguments.step_weight,
                        "learning_rate": arguments.learning_rate,
                        "width": arguments.width,
                        "batch": arguments.batch,
                        "updates": arguments.steps,
                        "seconds": round(seconds, 1),
                        "train": {name: float(value) for name, value in info.items()},
                        "T": sampling_steps,
                        **error.to_json(),
                    }
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments))
