"""SI, the ablation of tables 2 and 4: ASTRO's chains, completed by states first and actions after.

A state planner fills the MASK, inverse dynamics reads the actions off (`stateplan`), and ASTRO's dynamics model is only
asked how far these actions lead away from these states (δ). Chains, checks and layout are ASTRO's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from astro_rl.augment.check import measure_limits
from astro_rl.augment.fitting import Bar, Forgetful, Keeper, fit, no_bar
from astro_rl.augment.generate import Generator
from astro_rl.augment.limits import RealLimits
from astro_rl.augment.lineage import require_same_source
from astro_rl.augment.models import FittedModels, weights_digest
from astro_rl.augment.settings import PRESETS as ASTRO_PRESETS
from astro_rl.augment.settings import AstroSettings
from astro_rl.augment.shares import held_out_split, training_part
from astro_rl.augmenters.astro import FittedAstro, restore_astro
from astro_rl.augmenters.base import ReadWeights
from astro_rl.data.schema import Dataset
from astro_rl.stateplan.complete import StateCompleter
from astro_rl.stateplan.fitting import StatePlan, fit_state_plan, restore_state_plan
from astro_rl.stateplan.masks import ChainMasks
from astro_rl.stateplan.settings import PRESETS as PLAN_PRESETS
from astro_rl.stateplan.settings import InverseSettings, StatePlanSettings, StateSettings
from astro_rl.tasks.task import Task

STATES = "astro-si"


@dataclass(frozen=True)
class StatesSettings:
    """ASTRO's settings, and those of the two models that stand in for its planner."""

    astro: AstroSettings = field(default_factory=AstroSettings)
    plan: StatePlanSettings = field(default_factory=StatePlanSettings)


PRESETS: dict[str, dict[str, Any]] = {
    name: {"astro": ASTRO_PRESETS[name], "plan": PLAN_PRESETS[name]} for name in ASTRO_PRESETS
}


def plan_like(settings: AstroSettings) -> StatePlanSettings:
    """The same network, batch and number of updates as ASTRO's dynamics model: both learn sequences of states."""
    own = settings.dynamics
    shared = [item.name for item in dataclasses.fields(StateSettings) if hasattr(own, item.name)]
    return StatePlanSettings(
        StateSettings(**{name: getattr(own, name) for name in shared}),
        InverseSettings(steps=own.steps, log_every=own.log_every),
    )


@dataclass(frozen=True, eq=False)
class AstroStates:
    """SI before it has seen data. With `base`, a fit of ASTRO, only its own two models are fitted."""

    settings: StatesSettings
    base: FittedModels | None = None

    @property
    def method(self) -> str:
        return STATES

    def as_json(self) -> dict[str, Any]:
        told = asdict(self.settings)
        return told if self.base is None else {**told, "base": self.base.digest()}

    def fit(
        self,
        dataset: Dataset,
        *,
        task: Task | None = None,
        seed: int = 0,
        keeper: Keeper | None = None,
        bar: Bar = no_bar,
    ) -> FittedStates:
        """Chains need ASTRO's temporal distances and δ its dynamics model, so without a base all of ASTRO comes
        first."""
        keeper = keeper or Forgetful()
        models = self.base or fit(dataset, self.settings.astro, task=task, seed=seed, keeper=keeper, bar=bar)
        require_same_source(
            dataset, models.source_digest, what="The base", fix="give the dataset that it was fitted to"
        )
        horizon = models.planner.horizon
        training, held_out = held_out_split(dataset, models.settings.held_out, horizon)
        plan = fit_state_plan(
            training_part(dataset, training, models.settings.training_rows),
            models.normaliser,
            horizon,
            masks_of(models),
            self.settings.plan,
            jax.random.fold_in(jax.random.key(seed), 4),
            keeper=keeper,
            bar=bar,
        )
        fitted = FittedStates(models, plan, self.settings.plan, models.limits)
        generate = models.settings.generate
        with bar("measuring real windows", generate.limit_windows, "windows") as report:
            limits = measure_limits(
                fitted.completer(),
                dataset,
                models.normaliser,
                models.shape,
                generate.mode,
                windows=generate.limit_windows,
                batch=generate.completion_batch,
                seed=seed,
                xy=None if task is None else task.xy_indices,
                trajectories=held_out,
                progress=report,
            )
        return dataclasses.replace(fitted, limits=limits)


@dataclass(frozen=True, eq=False)
class FittedStates:
    """ASTRO's models, of which the planner is not asked, and the two that fill gaps instead."""

    models: FittedModels
    plan: StatePlan
    settings: StatePlanSettings
    limits: RealLimits
    """Errors of real windows that these two completed."""
    latents: Float[np.ndarray, "rows latent"] | None = None

    @property
    def method(self) -> str:
        return STATES

    @property
    def source_digest(self) -> str:
        return self.models.source_digest

    def digest(self) -> str:
        return weights_digest(self.networks())

    def completer(self) -> StateCompleter:
        models = self.models
        return self.plan.completer(self.settings.sampling, models.dynamics, models.dynamics_network)

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> Generator:
        models = dataclasses.replace(self.models, limits=self.limits)
        return Generator(
            models, dataset, task=task, seed=seed, latents=self.latents, completer=self.completer()
        )

    def lineage(self) -> dict[str, Any]:
        return {
            **FittedAstro(self.models).lineage(),
            "limits": self.limits.as_json(),
            "sampling": asdict(self.settings.sampling),
        }

    def networks(self) -> dict[str, Any]:
        return {**self.models.networks(), **self.plan.networks()}

    def description(self) -> dict[str, Any]:
        return {
            "astro": FittedAstro(self.models).description(),
            "plan": self.plan.description(),
            "plan_settings": self.settings.as_json(),
            "limits": self.limits.as_json(),
        }


def restore_states(saved: Mapping[str, Any], weights: ReadWeights) -> FittedStates:
    """From `FittedStates.description`, with the source's digest, and the weights."""
    models = restore_astro({**saved["astro"], "source_digest": saved["source_digest"]}, weights).models
    settings = StatePlanSettings.from_json(saved["plan_settings"])
    plan = restore_state_plan(saved["plan"], settings, masks_of(models), weights)
    return FittedStates(models, plan, settings, RealLimits.from_json(saved["limits"]))


def masks_of(models: FittedModels) -> ChainMasks:
    """Those that ASTRO's own planner learns from."""
    return ChainMasks(models.shape, models.planner.phase, models.planner.moved_share)
