"""What cells measure that train nothing: geometry of selected targets, completion errors, violations, search times."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.generate import completer_of
from astro_rl.augment.models import FittedModels
from astro_rl.augment.shares import held_out_split
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.augmenters.states import FittedStates
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Completed, Completer, roll
from astro_rl.planner.metrics import Completing, completion_error
from astro_rl.planner.model import Planner
from astro_rl.quality.selection_geometry import Rule, selection_geometry
from astro_rl.quality.violation import calibrate, violation_rate
from astro_rl.stateplan.complete import StateCompleter
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.windows import find_windows
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import Task

PER_CHAINS = 10
"""The paper's times are those of so many chains."""
CALIBRATION_ROWS = 600


RULES: dict[str, Rule] = {
    "astro": "temporal",
    "pre-euc": "euclidean",
    "rand": "random",
    "original": "original",
}
"""Arms of the other tables by the rule that selects their targets."""


def geometry(
    models: FittedModels,
    dataset: Dataset,
    task: Task,
    arm: str,
    *,
    pairs: int,
    seed: int = 0,
    latents: np.ndarray | None = None,
) -> dict[str, Any]:
    """How paths turn into and out of the gaps of one rule's chains, and where its targets lie."""
    rule = RULES[arm]
    report = selection_geometry(
        models, dataset, task, rules=(rule,), pairs=pairs, examples=8, seed=seed, latents=latents
    )
    return {**asdict(report.rules[rule]), "shape": report.shape, "reach": report.reach, "cell": report.cell}


def completion(fitted: FittedAugmenter, dataset: Dataset, *, sequences: int, seed: int = 0) -> dict[str, Any]:
    """MSE of τᵃ, τˢ and τˢ_m on windows of trajectories that no model was fitted to. The same windows for all arms."""
    models, completer = parts_of(fitted)
    _, held_out = held_out_split(dataset, models.settings.held_out, completer.horizon)
    errors = completion_error(
        completer, dataset.select(held_out), models.normaliser, sequences=sequences, batch=32, seed=seed
    )
    return {"horizon": completer.horizon, "shape": vars(models.shape), **errors.to_json()}


@dataclass(frozen=True, eq=False)
class Driven:
    """States that a method's actions lead to, by ASTRO's dynamics model. What its own states look like is another
    question: a state planner, and gaps that were polished, hand back the known ones as they were given."""

    inner: StateCompleter | Completer
    models: FittedModels

    @property
    def planner(self) -> Planner:
        return self.models.planner

    @property
    def horizon(self) -> int:
        return self.inner.horizon

    def complete(
        self,
        key: Key[Array, ""],
        states: Float[np.ndarray, "batch horizon obs"],
        known: Bool[np.ndarray, "batch horizon"],
    ) -> Completed:
        done, models = self.inner.complete(key, states, known), self.models
        rolled = roll(
            models.dynamics,
            models.settings.generate.sampling,
            models.dynamics_network,
            jax.random.fold_in(key, 1),
            jnp.asarray(states[:, 0]),
            jnp.asarray(done.actions),
        )
        return Completed(np.asarray(rolled), done.actions, done.deviation)


def parts_of(fitted: FittedAugmenter) -> tuple[FittedModels, Completing]:
    """ASTRO's models, and what completes sequences with them."""
    if isinstance(fitted, FittedStates):
        return fitted.models, Driven(fitted.completer(), fitted.models)
    if not isinstance(fitted, FittedAstro):
        raise ConfigError(
            "This method completes no masked sequences.",
            field="arms",
            found=fitted.method,
            fix="leave it out of this table",
        )
    models = fitted.models
    return models, Driven(completer_of(models, models.settings.generate), models)


def violations(
    made: Dataset,
    real: Dataset,
    task: Task,
    *,
    rows: int,
    seed: int = 0,
    workers: int | None = None,
    bar: Bar = no_bar,
) -> dict[str, Any]:
    """Share of stitched transitions that no action of many tried explains (appendix C), in percent, beside that of real
    ones; None where the simulator cannot be put into a state that an observation tells."""
    if not isinstance(task.state, StateMap):
        return {"violation": None, "violation_real": None, "why_not": task.state.reason}
    few = min(CALIBRATION_ROWS, max(50, real.n_transitions // 8))
    with bar("calibrating violations", 2, "action sources") as report:
        calibration = calibrate(real, task, rows=few, seed=seed, workers=workers, progress=report)
    found = violation_rate(made, task, calibration, rows=rows, seed=seed, workers=workers)
    return {
        "violation": None if found.stitched is None else 100 * found.stitched,
        "violation_real": 100 * calibration.real_rate,
        "violation_by_kind": found.by_kind,
        "violation_rows": found.rows,
        "calibration": calibration.as_json(),
    }


def selection(
    models: FittedModels,
    dataset: Dataset,
    shape: ChainShape,
    settings: SearchSettings,
    *,
    batches: int,
    seconds: float,
    seed: int = 0,
    latents: np.ndarray | None = None,
) -> dict[str, Any]:
    """Seconds for ten accepted chains. Encoding, dropping windows and compiling happen once and are told apart."""
    started = time.perf_counter()
    table = models.temporal.encode(dataset.observations) if latents is None else latents
    encoding = time.perf_counter() - started
    windows = find_windows(table, dataset.offsets, shape.segment, models.gauge, settings.threshold)
    told: dict[str, Any] = {"threshold": settings.threshold, "shape": vars(shape), "encode_s": encoding}
    told |= {"windows": len(windows.starts), "windows_dropped": windows.dropped}
    if not len(windows.starts):
        return {**told, "proposed": 0, "accepted": 0, "seconds": None}
    search = ChainSearch(table, windows, models.gauge, shape, settings)
    search.batch(seed, 0)  # compiles
    spent, proposed, accepted, number = 0.0, 0, 0, 0
    while number < batches and spent < seconds:
        begun = time.perf_counter()
        found = search.batch(seed, number + 1)
        spent += time.perf_counter() - begun
        proposed, accepted, number = proposed + found.proposed, accepted + len(found), number + 1
    return {
        **told,
        "batches": number,
        "proposed": proposed,
        "accepted": accepted,
        "seconds": PER_CHAINS * spent / accepted if accepted else None,
    }
