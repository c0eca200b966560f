"""DiffStitch behind the protocol of `augmenters.base`: fitted to a dataset, saved, restored, proposing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from astro_rl.augment.finish import LINEAGE_COLUMNS, Finisher, projection
from astro_rl.augment.fittable import checked_normaliser
from astro_rl.augment.fitting import Bar, Forgetful, Keeper, no_bar
from astro_rl.augment.lineage import source_digest
from astro_rl.augment.models import weights_digest
from astro_rl.augment.settings import changed
from astro_rl.augment.shares import held_out_split, training_part
from astro_rl.augmenters.base import ReadWeights
from astro_rl.augmenters.diffstitch.fill import GapFiller
from astro_rl.augmenters.diffstitch.limits import UNMEASURED, StitchLimits, measure_stitch_limits
from astro_rl.augmenters.diffstitch.propose import Stitcher
from astro_rl.augmenters.diffstitch.settings import DiffStitchSettings
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.dynamics.onestep import OneStep
from astro_rl.dynamics.sequences import sequence_data
from astro_rl.errors import DataError
from astro_rl.nets.mlp import MLP
from astro_rl.stateplan.fitting import (
    StatePlan,
    fit_stage,
    fit_state_plan,
    restore_state_plan,
    transitions_of,
)
from astro_rl.tasks.relabel import check_width
from astro_rl.tasks.task import Task

DIFFSTITCH = "diffstitch"


@dataclass(frozen=True)
class DiffStitch:
    """DiffStitch with its settings, before it has seen data."""

    settings: DiffStitchSettings

    @property
    def method(self) -> str:
        return DIFFSTITCH

    def as_json(self) -> dict[str, Any]:
        return self.settings.as_json()

    def fit(
        self,
        dataset: Dataset,
        *,
        task: Task | None = None,
        seed: int = 0,
        keeper: Keeper | None = None,
        bar: Bar = no_bar,
    ) -> FittedDiffStitch:
        """State planner, inverse dynamics, one-step dynamics, then the deviations of real gaps."""
        settings, keeper = self.settings, keeper or Forgetful()
        if task is not None:
            check_width(dataset, task)
        require_room(dataset, settings)
        normaliser = checked_normaliser(dataset)
        training, held_out = held_out_split(dataset, settings.held_out, settings.horizon)
        part = training_part(dataset, training, settings.training_rows)
        plan_key, step_key = jax.random.split(jax.random.key(seed))
        plan = fit_state_plan(
            part,
            normaliser,
            settings.horizon,
            settings.masks(),
            settings.state_plan(),
            plan_key,
            keeper=keeper,
            bar=bar,
        )
        onestep = settings.onestep.build(dataset.observation_dim, dataset.action_dim, plan.inverse.scale)
        transitions = transitions_of(sequence_data(part, normaliser, 2), part)
        judged = fit_stage("onestep", onestep, transitions, settings.onestep, step_key, keeper, bar)
        fitted = FittedDiffStitch(
            source_digest=source_digest(dataset),
            normaliser=normaliser,
            plan=plan,
            onestep=onestep,
            onestep_network=judged.network,
            limits=UNMEASURED,
            settings=settings,
            seed=seed,
        )
        with bar("measuring real gaps", settings.generate.limit_windows, "gaps") as report:
            limits = measure_stitch_limits(
                fitted.filler(dataset, task),
                dataset,
                held_out,
                shortest=settings.shortest,
                longest=settings.longest,
                windows=settings.generate.limit_windows,
                seed=seed,
            )
            report(settings.generate.limit_windows, settings.generate.limit_windows)
        return dataclasses.replace(fitted, limits=limits)


@dataclass(frozen=True, eq=False)
class FittedDiffStitch:
    """Three models and what they were fitted to."""

    source_digest: str
    normaliser: Normaliser
    plan: StatePlan
    onestep: OneStep
    onestep_network: MLP
    limits: StitchLimits
    settings: DiffStitchSettings
    seed: int

    @property
    def method(self) -> str:
        return DIFFSTITCH

    def digest(self) -> str:
        return weights_digest(self.networks())

    def filler(self, dataset: Dataset, task: Task | None) -> GapFiller:
        generate = self.settings.generate
        finisher = Finisher(
            dataset, self.normaliser, self.limits.as_real(), projection(dataset, task), task=task
        )
        return GapFiller(
            self.plan,
            self.onestep,
            self.onestep_network,
            self.normaliser,
            finisher.observations,
            generate.sampling,
            generate.completion_batch,
        )

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> Stitcher:
        settings = self.settings
        return Stitcher(
            self.filler(dataset, task),
            self.limits,
            dataset,
            settings.generate,
            reach=(settings.shortest, settings.longest),
            task=task,
            seed=seed,
        )

    def lineage(self) -> dict[str, Any]:
        fit = self.settings.as_json()
        return {
            "columns": list(LINEAGE_COLUMNS),
            "limits": self.limits.as_json(),
            "generate": fit.pop("generate"),
            "fit": fit,
        }

    def networks(self) -> dict[str, Any]:
        return {**self.plan.networks(), "onestep": self.onestep_network}

    def description(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            **self.plan.description(),
            "limits": self.limits.as_json(),
            "normaliser": self.normaliser._asdict(),
            "settings": self.settings.as_json(),
        }


def restore_diffstitch(saved: Mapping[str, Any], weights: ReadWeights) -> FittedDiffStitch:
    """From `FittedDiffStitch.description`, with the source's digest, and the weights."""
    settings = DiffStitchSettings.from_json(saved["settings"])
    normaliser = Normaliser(**{name: np.asarray(v, np.float32) for name, v in saved["normaliser"].items()})
    plan = restore_state_plan(saved, settings.state_plan(), settings.masks(), weights)
    onestep = settings.onestep.build(saved["observation_dim"], saved["action_dim"], tuple(saved["scale"]))
    template = jax.eval_shape(lambda: onestep.init(jax.random.key(0))).network
    return FittedDiffStitch(
        source_digest=saved["source_digest"],
        normaliser=normaliser,
        plan=plan,
        onestep=onestep,
        onestep_network=weights("onestep", template),
        limits=StitchLimits.from_json(saved["limits"]),
        settings=settings,
        seed=saved["seed"],
    )


def adjusted_diffstitch(fitted: FittedDiffStitch, settings: Mapping[str, Any]) -> FittedDiffStitch:
    """The same fit with other settings of those under `generate`, named without that word."""
    generate = changed(fitted.settings.generate, settings)
    return dataclasses.replace(fitted, settings=dataclasses.replace(fitted.settings, generate=generate))


def require_room(dataset: Dataset, settings: DiffStitchSettings) -> None:
    """Refuses, before anything is learned, trajectories that are too few or too short."""
    long_enough = int((np.diff(dataset.offsets) >= settings.horizon).sum())
    if long_enough == 0:
        raise DataError(
            "No trajectory is long enough for a sequence of the state planner.",
            field="horizon",
            found=f"{settings.horizon} states; the longest trajectory has {int(dataset.lengths.max()) + 1}",
            fix="shorten the sequence and its gaps (horizon, shortest, longest)",
        )
    pieces = int((np.diff(dataset.offsets) >= settings.generate.piece).sum())
    if pieces < 2:
        raise DataError(
            "A stitch leads from one trajectory to another, and each gives a piece.",
            found=f"{pieces} trajectories that hold a piece",
            expected=f"2 or more of at least {settings.generate.piece} states",
            fix="shorten the pieces (generate.piece), or hand the recording in as several trajectories",
        )
