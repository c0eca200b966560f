"""The one-step model on held-out real sequences: `python -m benchmarks.onestep DATA.npz --task NAME --out F.jsonl`.

Trains f as a fit does, then measures it on trajectories that it has not seen: one step from real states, and rolled
out under the true actions, in the units of `benchmarks.dynamics`, so that the two can be held against each other.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from tyro.conf import Positional

from astro_rl.augment.settings import settings_for
from astro_rl.augment.shares import held_out_split
from astro_rl.data import load
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.dynamics.sequences import draw_sequences, sequence_data, steps_of
from astro_rl.tasks import get_task
from astro_rl.training.fit import fit_chunk


@dataclass(frozen=True)
class Arguments:
    """Train one-step models on one dataset and measure them."""

    data: Positional[Path]
    task: str
    out: Path
    preset: str = "cpu"
    steps: int | None = None
    horizon: int = 30
    sequences: int = 256
    seed: int = 0


def main(arguments: Arguments) -> None:
    dataset, task = load(arguments.data), get_task(arguments.task)
    changes = {} if arguments.steps is None else {"onestep.steps": arguments.steps}
    settings = settings_for(arguments.preset, changes)
    training, held_out = held_out_split(dataset, settings.held_out, arguments.horizon)
    normaliser = fit_normaliser(dataset.observations)
    data = sequence_data(dataset.select(training), normaliser, 2)
    model = settings.onestep.build(dataset.observation_dim, dataset.action_dim, steps_of(data))
    state, info = model.init(jax.random.key(arguments.seed)), {}
    started = time.time()
    for step in range(0, settings.onestep.steps, settings.onestep.log_every):
        state, info = fit_chunk(
            model, state, data, jax.random.key(arguments.seed + 1), step, settings.onestep.log_every
        )
    jax.block_until_ready(info)
    seconds = time.time() - started
    unseen = sequence_data(dataset.select(held_out), normaliser, arguments.horizon)
    states, actions = draw_sequences(jax.random.key(2), unseen, arguments.sequences, arguments.horizon)

    def one(here: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = model.predict(state.network, here, action)
        return after, after

    _, rolled = jax.lax.scan(one, states[:, 0], jnp.moveaxis(actions[:, :-1], 1, 0))
    rolled = jnp.concatenate([states[:, :1], jnp.moveaxis(rolled, 0, 1)], axis=1)
    apart = np.asarray(rolled - states) * normaliser.scale
    planes = np.linalg.norm(apart[..., list(task.xy_indices or ())], axis=-1)
    at = [step for step in (1, 6, 18) if step < arguments.horizon]
    scale = jnp.asarray(model.scale)
    change = (jnp.diff(rolled, axis=1) - jnp.diff(states, axis=1)) / scale
    row: dict[str, Any] = {
        "data": arguments.data.stem,
        "model": {"hidden": list(model.hidden), "members": model.members, "batch": model.batch_size},
        "updates": settings.onestep.steps,
        "seconds": round(seconds, 1),
        "train": {name: float(value) for name, value in info.items()},
        "one_step_mse": float(jnp.square(model.misses(state.network, states, actions)).mean()),
        "rolled_step_mse": float(jnp.square(change).mean()),
        "normalised_mse": float(jnp.square(rolled - states).mean()),
        "steps": at,
        "xy": [float(planes[:, step].mean()) for step in at],
    }
    with arguments.out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments))
