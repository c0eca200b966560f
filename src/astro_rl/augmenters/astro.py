"""ASTRO itself behind the protocol: `augment.fitting` fits it, `augment.generate` proposes its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from astro_rl.augment.fitting import Bar, Keeper, fit, no_bar
from astro_rl.augment.generate import Generator
from astro_rl.augment.limits import RealLimits
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, changed
from astro_rl.augmenters.base import ReadWeights
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.task import Task
from astro_rl.temporal.model import TemporalModel

ASTRO = "astro"


@dataclass(frozen=True)
class AstroAugmenter:
    """ASTRO's settings. `shape` None: read off the data."""

    settings: AstroSettings
    shape: ChainShape | None = None

    @property
    def method(self) -> str:
        return ASTRO

    def as_json(self) -> dict[str, Any]:
        shape = None if self.shape is None else asdict(self.shape)
        return {"shape": shape, "settings": self.settings.as_json()}

    def fit(
        self,
        dataset: Dataset,
        *,
        task: Task | None = None,
        seed: int = 0,
        keeper: Keeper | None = None,
        bar: Bar = no_bar,
    ) -> FittedAstro:
        models = fit(dataset, self.settings, shape=self.shape, task=task, seed=seed, keeper=keeper, bar=bar)
        return FittedAstro(models)


@dataclass(frozen=True, eq=False)
class FittedAstro:
    """ASTRO's models. `latents`: ψ of all rows, where the fit has left them; encoded again otherwise."""

    models: FittedModels
    latents: Float[np.ndarray, "rows latent"] | None = None

    @property
    def method(self) -> str:
        return ASTRO

    @property
    def source_digest(self) -> str:
        return self.models.source_digest

    def digest(self) -> str:
        return self.models.digest()

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> Generator:
        return Generator(self.models, dataset, task=task, seed=seed, latents=self.latents)

    def lineage(self) -> dict[str, Any]:
        models = self.models
        return {
            "shape": asdict(models.shape),
            "gauge": asdict(models.gauge),
            "limits": models.limits.as_json(),
            "generate": asdict(models.settings.generate),
        }

    def networks(self) -> dict[str, Any]:
        return self.models.networks()

    def description(self) -> dict[str, Any]:
        models = self.models
        return {
            "seed": models.seed,
            "shape": asdict(models.shape),
            "why": models.why,
            "horizon": models.dynamics.horizon,
            "phase": models.planner.phase,
            "spread": list(models.dynamics.spread),
            "observation_dim": models.dynamics.observation_dim,
            "action_dim": models.dynamics.action_dim,
            "discount": models.temporal.discount,
            "gauge": asdict(models.gauge),
            "limits": models.limits.as_json(),
            "normaliser": models.normaliser._asdict(),
            "settings": models.settings.as_json(),
            **({"seeds": dict(models.seeds)} if models.seeds else {}),
            **({} if models.onestep is None else {"step_scale": list(models.onestep.scale)}),
        }


def adjusted_astro(fitted: FittedAstro, settings: Mapping[str, Any]) -> FittedAstro:
    """With other settings under `generate`."""
    own = fitted.models.settings
    models = replace(fitted.models, settings=replace(own, generate=changed(own.generate, settings)))
    return replace(fitted, models=models)


def restore_astro(saved: Mapping[str, Any], weights: ReadWeights) -> FittedAstro:
    """From `FittedAstro.description`, with the source's digest, and the weights."""
    settings = AstroSettings.from_json(saved["settings"])
    shape = ChainShape(**saved["shape"])
    normaliser = Normaliser(**{name: np.asarray(v, np.float32) for name, v in saved["normaliser"].items()})
    learner = settings.temporal.build(saved["discount"])
    dynamics = settings.dynamics.build(
        saved["horizon"], saved["observation_dim"], saved["action_dim"], tuple(saved["spread"])
    )
    planner = settings.planner.build(dynamics, shape, saved["phase"])
    key = jax.random.key(0)
    onestep, onestep_network = None, None
    if "step_scale" in saved:
        onestep = settings.onestep.build(
            saved["observation_dim"], saved["action_dim"], tuple(saved["step_scale"])
        )
        onestep_network = weights("onestep", jax.eval_shape(lambda: onestep.init(key)).network)
    encoder = jax.eval_shape(lambda: learner.init(key, saved["observation_dim"])).encoder
    return FittedAstro(
        FittedModels(
            source_digest=saved["source_digest"],
            shape=shape,
            normaliser=normaliser,
            temporal=TemporalModel(learner, weights("temporal", encoder), normaliser),
            gauge=Gauge(**saved["gauge"]),
            dynamics=dynamics,
            dynamics_network=weights("dynamics", jax.eval_shape(lambda: dynamics.init(key)).average),
            planner=planner,
            planner_network=weights("planner", jax.eval_shape(lambda: planner.init(key)).average),
            limits=RealLimits.from_json(saved["limits"]),
            settings=settings,
            seed=saved["seed"],
            why=saved["why"],
            seeds=saved.get("seeds", {}),
            onestep=onestep,
            onestep_network=onestep_network,
        )
    )
