"""Augmented data and its controls for one dataset: `python -m benchmarks.proof DATA --task NAME --out DIR`.

Fits ASTRO once, then writes DIR/ARM.astro for each arm, and a line of DIR/proof.jsonl with what was fitted, how long
everything took and what became of every proposal. Arms:

    astro          chains completed by the models
    regenerated    real windows masked and completed by the same models: no new connection
    simulated      the chains of `astro`, completed by the simulator: the upper bound

`benchmarks.truth` and `benchmarks.helps` go on from there. Runs without a run folder's packages, so that a bare machine
with an accelerator will do.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro
from tyro.conf import Positional

from astro_rl.augment.fitting import Bar, fit
from astro_rl.augment.generate import Generator
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import changed, settings_for
from astro_rl.augment.verdicts import largest_jumps
from astro_rl.cli.train import parse_settings
from astro_rl.data import Dataset, load
from astro_rl.data.join import joined, trajectories_for
from astro_rl.progress import progress_bar
from astro_rl.quality.simulated import complete_in_simulator
from astro_rl.run.augment import augment
from astro_rl.run.models import load_models, save_models
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import Task, get_task

Arm = Literal["astro", "regenerated", "simulated"]


@dataclass(frozen=True)
class Arguments:
    """Fit once, write all arms."""

    data: Positional[Path]
    task: str
    """Any goal of the dataset's environment: arms are relabelled for the goal that learners are trained on."""
    out: Path
    preset: str = "cpu"
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    arms: tuple[Arm, ...] = ("astro", "regenerated", "simulated")
    transitions: int = 1_000_000
    seed: int = 0
    workers: int | None = None
    models: Path | None = None
    """Models fitted before; they are loaded instead."""
    shape: tuple[int, int, int] | None = None
    """Pieces, l and M. Default: read off the data."""
    base: Path | None = None
    """Models fitted before, of which all is taken that would come out the same (`augment.sharing`)."""


def main(arguments: Arguments) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    task, dataset = get_task(arguments.task), load(arguments.data)
    settings = settings_for(arguments.preset, parse_settings(arguments.set))
    seconds: dict[str, float] = {}
    bar = timed(seconds)
    if arguments.models is None:
        base = None if arguments.base is None else load_models(arguments.base)
        shape = None if arguments.shape is None else ChainShape(*arguments.shape)
        models = fit(dataset, settings, shape=shape, task=task, seed=arguments.seed, base=base, bar=bar)
        save_models(models, arguments.out / "models")
    else:
        models = load_models(arguments.models)
    latents = models.temporal.encode(dataset.observations)
    print(models.why, flush=True)
    told: dict[str, Any] = {}
    for arm in arguments.arms:
        started = time.perf_counter()
        made = build(arm, models, dataset, task, arguments, latents, bar)
        seconds[arm] = round(time.perf_counter() - started, 2)
        made.save(arguments.out / f"{arm}.astro", overwrite=True)
        lineage = dict(made.info.get("lineage", {}))
        told[arm] = {
            "transitions": made.n_transitions,
            "trajectories": len(made),
            "generated_share": float(np.mean(made.extras["source_step"] < 0)),
            "chains": lineage.get("chains"),
            "completions": lineage.get("completions"),
            "transitions_per_second": round(made.n_transitions / seconds[arm]),
        }
        print(arm, told[arm], flush=True)
    row = {
        "data": arguments.data.stem,
        "task": task.name,
        "device": str(jax.devices()[0]),
        "preset": arguments.preset,
        "set": list(arguments.set),
        "shape": asdict(models.shape),
        "why": models.why,
        "slowness": models.gauge.slowness,
        "limits": models.limits.as_json(),
        "models_digest": models.digest(),
        "seconds": seconds,
        "arms": told,
    }
    with (arguments.out / "proof.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def build(
    arm: Arm,
    models: FittedModels,
    dataset: Dataset,
    task: Task,
    arguments: Arguments,
    latents: np.ndarray,
    bar: Bar,
) -> Dataset:
    settings = models.settings.generate
    if arm == "regenerated":
        # Unfiltered: hardly any window as long as a chain moves all the time, and a search for those is endless.
        settings = changed(settings, {"chains": "regenerated", "filter_real": False})
    if arm != "simulated":
        return augment(
            models,
            dataset,
            arguments.transitions,
            task=task,
            settings=settings,
            seed=arguments.seed,
            latents=latents,
        )
    generator = Generator(models, dataset, settings, task=task, seed=arguments.seed, latents=latents)
    jump, jump_xy = largest_jumps(generator.finisher.limits, settings)
    parts, missing, number = [], arguments.transitions, 0
    while missing > 0:
        found = generator.batch(number)
        part = complete_in_simulator(
            dataset,
            task,
            models.shape,
            found.starts,
            jump=jump,
            jump_xy=jump_xy,
            seed=arguments.seed + number,
            workers=arguments.workers,
        )
        parts.append(part)
        missing -= part.n_transitions
        number += 1
    made = joined(parts)
    return made.select(range(trajectories_for(made.lengths, arguments.transitions)))


def timed(seconds: dict[str, float]) -> Bar:
    """Bars that also note how long each took."""
    from contextlib import contextmanager

    @contextmanager
    def bar(description: str, total: int, unit: str) -> Any:
        started = time.perf_counter()
        with progress_bar(description, total, unit) as report:
            yield report
        seconds[description] = round(time.perf_counter() - started, 2)
        print(f"{description}: {seconds[description]} s", flush=True)

    return bar


if __name__ == "__main__":
    main(tyro.cli(Arguments))
