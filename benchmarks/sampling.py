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

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from benchmarks.planner import on_chains
from benchmarks.timing import fastest, matmul_flop, products, products_flop
from tyro.conf import Positional

from astro_rl.augment.generate import completer_of
from astro_rl.augment.settings import changed
from astro_rl.augment.shares import held_out_split
from astro_rl.cli.train import parse_settings
from astro_rl.data import load
from astro_rl.planner.complete import Completer, _complete
from astro_rl.planner.masks import pattern
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
        completer = completer_of(own, settings.generate)
        completion_error(completer, dataset.select(held_out), models.normaliser, sequences=64)
        started = time.time()
        errors = completion_error(completer, dataset.select(held_out), models.normaliser).to_json()
        seconds = time.time() - started
        share, rate = share_of_peak(completer)
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
            "sequences_per_second": round(rate),
            "percent_of_peak": round(share, 1),
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
        speed = f"{rate:.0f} sequences/s, {share:.0f} % of peak"
        print(text or "as fitted", f"{seconds:.2f} s", speed, figures, kinds, flush=True)


def share_of_peak(completer: Completer, batch: int = 64) -> tuple[float, float]:
    """Percent of the matrix products' peak beside it, and sequences completed a second, before anything is polished."""
    completer = dataclasses.replace(completer, sampling=dataclasses.replace(completer.sampling, polish=0))
    planner = completer.planner
    states = np.zeros((batch, completer.horizon, planner.observation_dim), np.float32)
    known = np.tile(
        np.asarray(pattern(planner.shape, completer.horizon, jnp.int32(planner.phase))), (batch, 1)
    )
    key = jax.random.key(0)
    networks = completer.planner_network, completer.dynamics_network
    # What is static is bound; the rest is traced.
    flop = matmul_flop(
        lambda *given: _complete(planner, completer.sampling, *networks, *given), key, states, known
    )
    works = {"complete": lambda: completer.complete(key, states, known), "products": products(1)}
    seconds = fastest(works)
    peak = products_flop(1) / seconds["products"]
    return 100 * flop / seconds["complete"] / peak, batch / seconds["complete"]


if __name__ == "__main__":
    main(tyro.cli(Arguments))
