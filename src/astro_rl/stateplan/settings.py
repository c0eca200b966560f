"""Sizes and updates of state planner and inverse dynamics, for every method that is made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from astro_rl.augment.settings import CPU_NET, PAPER_NET, TINY_NET, changed, falling
from astro_rl.diffusion.schedule import Schedule
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from astro_rl.stateplan.complete import StateSampling
from astro_rl.stateplan.inverse import InverseDynamics
from astro_rl.stateplan.masks import Masks
from astro_rl.stateplan.model import StatePlanner


@dataclass(frozen=True)
class StateSettings:
    """`stateplan.model.StatePlanner`, and for how long it learns."""

    steps: int = 20_000
    log_every: int = 100
    """Updates in a compiled chunk, and between records."""
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    step_weight: float = StatePlanner.step_weight
    relative: bool = True
    """Sequences are seen from their first state, in dimensions that stay near it (`StatePlanner.spread`)."""
    batch_size: int = StatePlanner.batch_size
    learning_rate: float = StatePlanner.learning_rate
    warmup: int = StatePlanner.warmup
    cooldown: float = 0.5
    """Share of the updates, the last ones, over which the rate falls to nothing."""
    average_rate: float = StatePlanner.average_rate

    def __post_init__(self) -> None:
        check_updates("states", self)

    def build(
        self, horizon: int, observation_dim: int, masks: Masks, spread: tuple[float, ...]
    ) -> StatePlanner:
        fields = model_fields(self)
        relative = fields.pop("relative")
        return StatePlanner(
            horizon, observation_dim, masks, **fields, spread=tuple(spread) if relative else ()
        )


@dataclass(frozen=True)
class InverseSettings:
    """`stateplan.inverse.InverseDynamics`."""

    steps: int = 10_000
    log_every: int = 500
    hidden: tuple[int, ...] = InverseDynamics.hidden
    batch_size: int = InverseDynamics.batch_size
    learning_rate: float = InverseDynamics.learning_rate
    cooldown: float = 0.5

    def __post_init__(self) -> None:
        check_updates("inverse", self)

    def build(self, observation_dim: int, action_dim: int, scale: tuple[float, ...]) -> InverseDynamics:
        return InverseDynamics(observation_dim, action_dim, tuple(scale), **model_fields(self))


@dataclass(frozen=True)
class StatePlanSettings:
    """Both models of SI."""

    states: StateSettings = field(default_factory=StateSettings)
    inverse: InverseSettings = field(default_factory=InverseSettings)
    sampling: StateSampling = field(default_factory=StateSampling)

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> StatePlanSettings:
        return changed(cls(), saved)


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "states": {"steps": 200, "log_every": 100, "net": TINY_NET, "batch_size": 16, "learning_rate": 1e-3,
                   "warmup": 20, "average_rate": 0.02},
        "inverse": {"steps": 400, "log_every": 200, "hidden": (32, 32), "batch_size": 128},
        "sampling": {"steps": 2, "judge_steps": 2},
    },
    "cpu": {
        "states": {"steps": 20_000, "net": CPU_NET, "batch_size": 64, "learning_rate": 2e-3},
        "inverse": {"steps": 20_000},
    },
    "paper": {
        "states": {"steps": 1_000_000, "log_every": 1_000, "net": PAPER_NET, "batch_size": 256,
                   "learning_rate": 1e-4, "average_rate": 0.0002},
        "inverse": {"steps": 1_000_000, "log_every": 1_000, "hidden": (256, 256), "learning_rate": 2e-4},
        "sampling": {"steps": 20},
    },
}  # fmt: skip
"""Sizes as ASTRO's own of the same name, so that an ablation compares methods and not networks."""


def state_plan_settings(preset: str, overrides: Mapping[str, Any] | None = None) -> StatePlanSettings:
    return changed(changed(StatePlanSettings(), PRESETS[preset]), overrides or {})


def check_updates(stage: str, settings: Any) -> None:
    """What every stage of a fit has to have."""
    for name in ("steps", "log_every", "batch_size"):
        if getattr(settings, name) < 1:
            raise ConfigError(
                "A stage needs at least one.",
                field=f"{stage}.{name}",
                found=getattr(settings, name),
                expected=">= 1",
            )
    if not 0 <= settings.cooldown <= 1:
        raise ConfigError(
            "The share of updates must lie in [0, 1].", field=f"{stage}.cooldown", found=settings.cooldown
        )


def model_fields(settings: Any) -> dict[str, Any]:
    """A stage's settings as its model takes them."""
    named = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    steps = named.pop("steps")
    del named["log_every"]
    return {**named, "cooldown": falling(steps, named["cooldown"])}
