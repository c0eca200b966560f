"""The planner with feedback and without: `python -m benchmarks.planner DATA --task NAME --models DIR --out F.jsonl`.

Fits dynamics model and all before it once (or takes those in DIR), then one planner for each variant and seed: same
data, same updates. Measures each on held-out real sequences (the paper's completion errors, table 4) for several
numbers of sampling steps, and on the *same* stitched chains: how near it comes to what was asked, and which share of
the transitions the simulator contradicts.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro
from tyro.conf import Positional

from astro_rl.augment.check import measure_limits
from astro_rl.augment.fitting import Forgetful, fit, no_bar, run_stage
from astro_rl.augment.generate import Generator, completer_of
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, changed, settings_for
from astro_rl.augment.shares import held_out_split, training_part
from astro_rl.cli.train import parse_settings
from astro_rl.data import Dataset, load
from astro_rl.data.join import joined
from astro_rl.dynamics.sequences import sequence_data
from astro_rl.planner.metrics import completion_error
from astro_rl.planner.model import PlannerData
from astro_rl.quality.truth import truth_of
from astro_rl.run.models import load_models, save_models
from astro_rl.tasks import Task, get_task

Variant = Literal["mb", "reg", "sc", "astro", "steps", "residual", "full"]
VARIANTS: dict[str, dict[str, Any]] = {
    # The paper's rows of table 4: no feedback at all, one of its two losses, both.
    "mb": {"feedback": {"kind": "none"}, "correction": False, "regularisation": 0.0},
    "reg": {"feedback": {"kind": "none"}, "correction": False, "regularisation": 1.0},
    "sc": {"regularisation": 0.0},
    "astro": {},
    # Ours: δ of each step, the residual itself, δ over all states in training.
    "steps": {"feedback": {"kind": "steps"}},
    "residual": {"feedback": {"kind": "residual"}},
    "full": {"feedback": {"over": "full"}},
}


@dataclass(frozen=True)
class Arguments:
    """Train planners that differ in their feedback and measure them."""

    data: Positional[Path]
    task: str
    out: Path
    models: Path
    """Where the common models lie, or are kept once they are fitted."""
    preset: str = "cpu"
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    variants: tuple[Variant, ...] = ("mb", "reg", "sc", "astro")
    seeds: tuple[int, ...] = (0, 1)
    plan_steps: tuple[int, ...] = (1, 2, 5, 10, 20)
    updates: int | None = None
    """Of each planner. Default: what the common models were fitted with."""
    refine: int = 0
    """Steps downhill on δ when sampling. 0: algorithm 2 as it stands, so that planners are compared by themselves."""
    polish: int = 0
    """Moves of polishing. 0: a plan's own precision is what is compared."""
    transitions: int = 20_000
    rows: int = 1000
    workers: int | None = None


def main(arguments: Arguments) -> None:
    dataset, task = load(arguments.data), get_task(arguments.task)
    models = common_models(dataset, task, arguments)
    settings = changed(
        models.settings,
        {
            "generate.sampling.refine": arguments.refine,
            "generate.sampling.polish": arguments.polish,
            "planner.steps": arguments.updates or models.settings.planner.steps,
        },
    )
    training, held_out = held_out_split(dataset, settings.held_out, models.dynamics.horizon)
    part = training_part(dataset, training, settings.training_rows)
    sequences = sequence_data(part, models.normaliser, models.dynamics.horizon)
    latents = models.temporal.encode(dataset.observations)
    for seed in arguments.seeds:
        for name in arguments.variants:
            own = changed(settings, {"planner": VARIANTS[name]})
            planner = own.planner.build(models.dynamics, models.shape, models.planner.phase)
            started = time.time()
            state = run_stage(
                "planner",
                planner,
                PlannerData(sequences, models.dynamics_network),
                own,
                jax.random.key(1000 + seed),
                Forgetful(),
                no_bar,
            )
            seconds = time.time() - started
            variant = dataclasses.replace(
                models, planner=planner, planner_network=state.average, settings=own
            )
            row = {
                "data": arguments.data.stem,
                "task": task.name,
                "mode": settings.generate.mode,
                "horizon": models.dynamics.horizon,
                "shape": dataclasses.asdict(models.shape),
                "variant": name,
                "seed": seed,
                "updates": own.planner.steps,
                "refine": arguments.refine,
                "polish": arguments.polish,
                "seconds": round(seconds, 1),
                "held_out": held_out_errors(variant, dataset.select(held_out), arguments.plan_steps),
                "stitched": on_chains(
                    variant,
                    dataset,
                    task,
                    own,
                    latents,
                    held_out,
                    transitions=arguments.transitions,
                    rows=arguments.rows,
                    workers=arguments.workers,
                ),
            }
            with arguments.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            default = row["held_out"][str(settings.generate.sampling.plan_steps)]
            print(name, seed, json.dumps(default), json.dumps(row["stitched"]["summary"]), flush=True)


def common_models(dataset: Dataset, task: Task, arguments: Arguments) -> FittedModels:
    if (arguments.models / "models.json").exists():
        return load_models(arguments.models)
    settings = settings_for(arguments.preset, parse_settings(arguments.set))
    models = fit(dataset, settings, task=task)
    save_models(models, arguments.models)
    return models


def held_out_errors(
    models: FittedModels, held_out: Dataset, plan_steps: tuple[int, ...]
) -> dict[str, dict[str, Any]]:
    """By T of the planner; at the default T also by T of the dynamics model ("rollout 1" …)."""
    default, found = models.settings.generate.sampling, {}
    trials = {str(steps): {"plan_steps": steps} for steps in (*plan_steps, default.plan_steps)}
    trials |= {f"rollout {steps}": {"state_steps": steps} for steps in plan_steps}
    for name, changes in trials.items():
        sampling = dataclasses.replace(default, **changes)
        completer = completer_of(models, dataclasses.replace(models.settings.generate, sampling=sampling))
        started = time.time()
        found[name] = completion_error(completer, held_out, models.normaliser).to_json()
        found[name]["seconds"] = round(time.time() - started, 2)
    return found


def on_chains(
    models: FittedModels,
    dataset: Dataset,
    task: Task,
    settings: AstroSettings,
    latents: np.ndarray,
    held_out: np.ndarray,
    *,
    transitions: int,
    rows: int,
    workers: int | None,
) -> dict[str, Any]:
    """The search does not depend on the planner: every variant completes the same chains. Nothing is rejected here,
    so that no variant looks better for having refused its worst."""
    generate = changed(
        settings.generate,
        {"deviation_quantile": 1.0, "step_quantile": 1.0, "jump_quantile": 1.0, "jump_most": 1e9},
    )
    limits = measure_limits(
        completer_of(models, generate),
        dataset,
        models.normaliser,
        models.shape,
        generate.mode,
        windows=generate.limit_windows,
        batch=generate.completion_batch,
        seed=0,
        xy=task.xy_indices,
        trajectories=held_out,
    )
    # Beyond any error: quantiles of real windows would refuse some.
    open_limits = dataclasses.replace(
        limits,
        deviation=(1e9,) * len(limits.deviation),
        step_error=(1e9,) * len(limits.step_error),
        jump=(1e9,) * len(limits.jump),
        jump_xy=None if limits.jump_xy is None else (1e9,) * len(limits.jump_xy),
    )
    generator = Generator(
        dataclasses.replace(models, limits=open_limits),
        dataset,
        generate,
        task=task,
        seed=0,
        latents=latents,
    )
    parts, number = [], 0
    while sum(part.n_transitions for part in parts) < transitions:
        made = generator.batch(number).dataset
        number += 1
        if made is not None:
            parts.append(made)
    whole = joined(parts)
    report = truth_of(whole, task, rows=rows, real=dataset, sequences=50, workers=workers).as_json()
    first = np.asarray(whole.offsets[:-1])
    told = {name: np.asarray(whole.extras[name])[first] for name in ("deviation",) if name in whole.extras}
    kinds = {
        kind: {
            "rows": each["rows"],
            "contradicted": each["contradicted"],
            "xy_median_of_step": each["groups"].get("x-y", {}).get("median_of_rms_step"),
        }
        for kind, each in report["kinds"].items()
    }
    return {
        "summary": {
            "deviation": {name: float(np.median(values)) for name, values in told.items()},
            "kinds": kinds,
        },
        "real_windows": limits.as_json(),
        "truth": report,
    }


if __name__ == "__main__":
    main(tyro.cli(Arguments))
