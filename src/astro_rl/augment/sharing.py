"""Which parts of another fit can be taken as they are: those that would come out the same.

A part is taken when everything that decides it is equal: the data, the seed, the part's own settings, and what it is
built on, which has to be taken too. Fits are functions of exactly that, so a base saves time and changes no weight.

    temporal   data, temporal settings, γ, training_rows                               seed
    shape      temporal; patch, mode, distinct                                         (only where none is given)
    gauge      temporal; l, M, calibration
    dynamics   data, dynamics settings, horizon, held_out, training_rows               seed
    planner    dynamics; planner settings, l, M, phase                                 seed
    onestep    data, onestep settings, held-out part, training_rows                    seed
    limits     planner, onestep; mode, sampling, number of windows, batch, x-y known or not
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from math import lcm
from typing import Any

from astro_rl.augment.limits import RealLimits
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, Stage
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.onestep import OneStep
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT
from astro_rl.nets.mlp import MLP
from astro_rl.stitch.auto import AutoShape
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.model import TemporalModel

Recipe = Mapping[str, Any]
GIVEN = "given"
"""Why a chain has its shape, where it was told."""


def patch_of(settings: AstroSettings) -> int:
    """Steps that l and M have to be multiples of."""
    return lcm(settings.dynamics.net.patch, settings.planner.net.patch)


def temporal_recipe(settings: AstroSettings, discount: float) -> Recipe:
    own = replace(settings.temporal, discount=discount)
    return {**_flat("temporal", asdict(own)), "training_rows": settings.training_rows}


def dynamics_recipe(settings: AstroSettings, horizon: int) -> Recipe:
    return {
        **_flat("dynamics", asdict(settings.dynamics)),
        "horizon": horizon,
        "held_out": settings.held_out,
        "training_rows": settings.training_rows,
    }


def planner_recipe(settings: AstroSettings, shape: ChainShape, phase: int) -> Recipe:
    """How many pieces a chain has is not in it: training masks repeat with the period, over the models' horizon."""
    return {
        **_flat("planner", asdict(settings.planner)),
        "segment": shape.segment,
        "mask": shape.mask,
        "phase": phase,
    }


def onestep_recipe(settings: AstroSettings, horizon: int) -> Recipe:
    """Which trajectories are held out depends on the horizon: those too short for it do not count."""
    return {
        **_flat("onestep", asdict(settings.onestep)),
        "horizon": horizon,
        "held_out": settings.held_out,
        "training_rows": settings.training_rows,
    }


def limits_recipe(settings: AstroSettings, shape: ChainShape, knows_plane: bool) -> Recipe:
    generate = settings.generate
    return {
        "mode": generate.mode,
        "sampling": asdict(generate.completion),
        "limit_windows": generate.limit_windows,
        "completion_batch": generate.completion_batch,
        "pieces": shape.pieces if generate.mode == "rollout" else 2,
        "x-y known": knows_plane,
    }


def shape_recipe(settings: AstroSettings) -> Recipe:
    generate = settings.generate
    return {
        "patch": patch_of(settings),
        "generate.mode": generate.mode,
        "generate.search.distinct": generate.search.distinct,
    }


@dataclass(frozen=True)
class Lender:
    """Gives what it can of a base, part by part, and None for what has to be made."""

    base: FittedModels | None
    source: str
    """The new fit's `augment.lineage.source_digest`."""
    settings: AstroSettings
    seed: int
    any_seed: Collection[Stage] = ()
    """Stages that are taken though the base has another seed. That they cannot be is an error then."""

    def __post_init__(self) -> None:
        if self.any_seed and self.base is None:
            raise ConfigError("Nothing can be taken from a base that is not there.", field="any_seed")
        if "planner" in self.any_seed and "dynamics" not in self.any_seed:
            raise ConfigError(
                "A planner belongs to its dynamics model.", field="any_seed", expected="dynamics as well"
            )

    def temporal(self, discount: float) -> TemporalModel | None:
        base = self.base
        if base is None:
            return None
        theirs = temporal_recipe(base.settings, base.temporal.discount)
        return (
            base.temporal
            if self._lends("temporal", temporal_recipe(self.settings, discount), theirs)
            else None
        )

    def shape(self, temporal: TemporalModel) -> AutoShape | None:
        base = self._with(temporal)
        if base is None or base.why == GIVEN or shape_recipe(base.settings) != shape_recipe(self.settings):
            return None
        return AutoShape(base.shape, base.why)

    def gauge(self, temporal: TemporalModel, shape: ChainShape) -> Gauge | None:
        base = self._with(temporal)
        if base is None or base.settings.calibration != self.settings.calibration:
            return None
        return base.gauge if (base.shape.segment, base.shape.mask) == (shape.segment, shape.mask) else None

    def dynamics(self, horizon: int) -> tuple[Dynamics, DiT] | None:
        base = self.base
        if base is None:
            return None
        theirs = dynamics_recipe(base.settings, base.dynamics.horizon)
        lends = self._lends("dynamics", dynamics_recipe(self.settings, horizon), theirs)
        return (base.dynamics, base.dynamics_network) if lends else None

    def planner(self, dynamics: DiT, shape: ChainShape, phase: int) -> DiT | None:
        base = self.base
        if base is None or base.dynamics_network is not dynamics:
            return None
        theirs = planner_recipe(base.settings, base.shape, base.planner.phase)
        lends = self._lends("planner", planner_recipe(self.settings, shape, phase), theirs)
        return base.planner_network if lends else None

    def onestep(self, horizon: int) -> tuple[OneStep, MLP] | None:
        base = self.base
        if base is None or base.onestep is None or base.onestep_network is None:
            return None
        theirs = onestep_recipe(base.settings, base.dynamics.horizon)
        lends = self._lends("onestep", onestep_recipe(self.settings, horizon), theirs)
        return (base.onestep, base.onestep_network) if lends else None

    def limits(
        self, planner: DiT, onestep: MLP | None, shape: ChainShape, knows_plane: bool
    ) -> RealLimits | None:
        base = self.base
        if base is None or base.planner_network is not planner or base.seed != self.seed:
            return None
        if self.settings.generate.completion.polish and base.onestep_network is not onestep:
            return None
        theirs = limits_recipe(base.settings, base.shape, base.limits.jump_xy is not None)
        same = base.limits.mode == self.settings.generate.mode
        return base.limits if same and theirs == limits_recipe(self.settings, shape, knows_plane) else None

    def seeds(self) -> dict[Stage, int]:
        """Of stages that come from another seed than the fit's own."""
        if self.base is None:
            return {}
        return {
            stage: self.base.seed_of(stage)
            for stage in self.any_seed
            if self.base.seed_of(stage) != self.seed
        }

    def _lends(self, stage: Stage, mine: Recipe, theirs: Recipe) -> bool:
        assert self.base is not None
        differing = [name for name in mine if mine[name] != theirs.get(name)]
        if self.base.source_digest != self.source:
            differing.insert(0, "the dataset")
        if stage in self.any_seed:
            if differing:
                raise ConfigError(
                    f"The base's {stage} model cannot be taken: it would come out otherwise.",
                    field=", ".join(differing),
                    found="different in the base",
                    fix=f"leave {stage!r} out of any_seed, so that it is fitted",
                )
            return True
        return not differing and self.base.seed_of(stage) == self.seed

    def _with(self, temporal: TemporalModel) -> FittedModels | None:
        """The base, where its temporal distances were taken. What was read off them has no seed of its own."""
        return self.base if self.base is not None and self.base.temporal is temporal else None


def _flat(prefix: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in settings.items()}
