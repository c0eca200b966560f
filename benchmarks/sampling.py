"""What sampling costs and gains: `python -m benchmarks.sampling DATA --task NAME --models DIR --out F.jsonl`.

The same fitted models and the same chains, completed under several sampling settings (`--try plan_steps=2,refine=10`),
nothing rejected. For each: completion errors on held-out sequences, and what the simulator says of transitions inside
gaps and at their ends.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from benchmarks.planner import on_chains
from tyro.conf import Positional

from astro_rl.augment.settings import changed
from astro_rl.augment.shares import held_out_split
from astro_rl.cli.train import parse_settings
from astro_rl.data import load
from astro_rl.planner.complete import Completer
from astro_rl.planner.metrics import completion_error
from astro_rl.run.models import load_models
from astro_rl.tasks import get_task


@dataclass(frozen=True)
class Arguments:
    """Complete the same chains under different sampling settings."""

    data: Positional[Path]
    task: str
    models: Path
    out: Path
    tries: tuple[str, ...] = ("",)
    """Settings under generate.sampling, comma by comma; empty is what the models were fitted with."""
    transitions: int = 15_000
    rows: int = 600
    workers: int | None = None


def main(arguments: Arguments) -> None:
    dataset, task, models = load(arguments.data), get_task(arguments.task), load_models(arguments.models)
    _, held_out = held_out_split(dataset, models.settings.held_out, models.dynamics.horizon)
    latents = models.temporal.encode(dataset.observations)
    for text in arguments.tries:
        changes = parse_settings(tuple(part for part in text.split(",") if part))
        settings = changed(models.settings, {"generate": {"sampling": changes}})
        own = dataclasses.replace(models, settings=settings)
        completer = Completer(
            models.planner, models.planner_network, models.dynamics_network, settings.generate.sampling
        )
        completion_error(completer, dataset.select(held_out), models.normaliser, sequences=64)
        started = time.time()
        errors = completion_error(completer, dataset.select(held_out), models.normaliser).to_json()
        seconds = time.time() - started
        stitched = on_chains(
            own,
            dataset,
            task,
            settings,
            latents,
            held_out,
            transitions=arguments.transitions,
            rows=arguments.rows,
            workers=arguments.workers,
        )
        row = {
            "data": arguments.data.stem,
            "sampling": dataclasses.asdict(settings.generate.sampling),
            "seconds_256_sequences": round(seconds, 3),
            "held_out": errors,
            "stitched": stitched,
        }
        with arguments.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        figures = {name: round(errors[name], 4) for name in ("action_mse", "state_mse", "known_mse")}
        kinds = {
            kind: {name: float(np.round(value, 3)) for name, value in each.items() if value is not None}
            for kind, each in stitched["summary"]["kinds"].items()
            if kind in ("generated", "into gap", "out of gap")
        }
        print(text or "as fitted", f"{seconds:.2f} s", figures, kinds, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments))
