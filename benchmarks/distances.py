"""Temporal distances against shortest paths: `python -m benchmarks.distances DATA.npz --task NAME --out F.jsonl`.

Fits ψ at a preset's size and writes one record for every `--every` updates: agreement with true steps on the training
trajectories and on held-out ones, beside Euclidean distance. `--set discount=0.995 steps=40000` changes settings.
`--models DIR` keeps the weights, which `benchmarks.selection` takes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import tyro
from tyro.conf import Positional

from astro_rl.augment.settings import TemporalSettings, settings_for
from astro_rl.data import Dataset, load
from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.quality.distances import distance_report
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.run.weights import load_weights, save_weights
from astro_rl.stitch.auto import typical_states
from astro_rl.tasks import get_task
from astro_rl.temporal.model import TemporalModel, temporal_data
from astro_rl.training.fit import fit_chunk

HELD_OUT = 0.05
"""Share of trajectories, the last ones, that ψ is not fitted on."""


@dataclass(frozen=True)
class Arguments:
    """Fit temporal distances and hold them against the truth."""

    data: Positional[Path]
    task: str
    out: Path
    preset: str = "cpu"
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Settings of ψ that differ from the preset's."""
    seed: tuple[int, ...] = (0,)
    every: int = 5_000
    pairs: int = 10_000
    models: Path | None = None


def main(arguments: Arguments) -> None:
    dataset, task = load(arguments.data), get_task(arguments.task)
    training, held_out = held_out_split(dataset)
    grid = MazeGrid.of_task(task)
    changes = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in arguments.set)}
    settings = settings_for(arguments.preset, {"temporal": changes}).temporal
    normaliser = fit_normaliser(training.observations)
    data = temporal_data(training, normaliser)
    learner = settings.build(settings.discount or discount_for(training))
    for seed in arguments.seed:
        init_key, fit_key = jax.random.split(jax.random.key(seed))
        state, seconds = learner.init(init_key, dataset.observation_dim), 0.0
        for step in range(0, settings.steps, settings.log_every):
            started = time.time()
            state, info = fit_chunk(learner, state, data, fit_key, step, settings.log_every)
            jax.block_until_ready(info)
            seconds += time.time() - started
            done = step + settings.log_every
            if done % arguments.every and done < settings.steps:
                continue
            model = TemporalModel(learner, state.encoder, normaliser)
            report = distance_report(
                model, training, task, pairs=arguments.pairs, seed=1, held_out=held_out, grid=grid
            )
            row: dict[str, Any] = {
                "data": arguments.data.stem,
                "preset": arguments.preset,
                "changed": changes,
                "seed": seed,
                "updates": done,
                "of": settings.steps,
                "seconds": round(seconds, 1),
                "load": round(os.getloadavg()[0], 1),
                "discount": learner.discount,
                "train": {name: float(value) for name, value in info.items()},
                **report.to_json(),
            }
            with arguments.out.open("a") as file:
                file.write(json.dumps(rounded(row)) + "\n")
            print(headline(row), flush=True)
        if arguments.models is not None:
            save_model(
                arguments.models / f"{arguments.data.stem}-{seed}", settings, learner.discount, state.encoder
            )


def held_out_split(dataset: Dataset) -> tuple[Dataset, Dataset]:
    kept = len(dataset) - max(1, round(HELD_OUT * len(dataset)))
    return dataset.select(range(kept)), dataset.select(range(kept, len(dataset)))


def discount_for(dataset: Dataset) -> float:
    """As `augment` chooses it where the settings leave it open."""
    return float(np.clip(1 - 2 / typical_states(dataset.offsets), 0.99, 0.998))


def save_model(path: Path, settings: TemporalSettings, discount: float, encoder: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_weights(path.with_suffix(".safetensors"), encoder)
    known = {**dataclasses.asdict(settings), "discount": discount}
    path.with_suffix(".json").write_text(json.dumps(known))


def load_model(path: Path, training: Dataset) -> TemporalModel:
    """What `save_model` kept; `training` gives the normaliser that it was fitted under."""
    saved = json.loads(path.with_suffix(".json").read_text())
    learner = TemporalSettings(**{**saved, "hidden": tuple(saved["hidden"])}).build(saved["discount"])
    normaliser: Normaliser = fit_normaliser(training.observations)
    template = jax.eval_shape(lambda: learner.init(jax.random.key(0), training.observation_dim)).encoder
    return TemporalModel(learner, load_weights(path.with_suffix(".safetensors"), template), normaliser)


def headline(row: dict[str, Any]) -> str:
    parts = [
        f"{row['data']} seed {row['seed']} {row['changed']} {row['updates']} updates {row['seconds']} s:"
    ]
    for part, groups in row["agreement"].items():
        for group in ("all", "walled"):
            for name, found in groups[group].items():
                values = found if isinstance(found, dict) else dataclasses.asdict(found)
                parts.append(
                    f"\n  {part} {group} {name}: "
                    + ", ".join(f"{key} {value:.3f}" for key, value in values.items() if value is not None)
                )
    return "".join(parts)


def rounded(value: Any) -> Any:
    """Four digits are more than the figures' noise leaves."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(tyro.cli(Arguments))
