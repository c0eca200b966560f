"""What is fitted, how large and for how long: one nested record of settings, and the presets that fill it.

A setting is named by its path, `dynamics.net.width`, on the command line and in Python alike. Defaults are those of the
models themselves; `PRESETS` is the one table of what each preset changes. A value of None is chosen from the
dataset when it is known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from astro_rl.agents.presets import as_type
from astro_rl.agents.settings import near_match
from astro_rl.augment.options import GenerateSettings
from astro_rl.diffusion.schedule import Schedule
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.onestep import OneStep
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from astro_rl.planner.feedback import Feedback
from astro_rl.planner.model import Planner
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.learning import TemporalLearner

Stage = Literal["temporal", "dynamics", "planner", "onestep"]
STAGES: tuple[Stage, ...] = ("temporal", "dynamics", "planner", "onestep")
"""In the order in which they are fitted. The last one only where gaps are polished with it."""


@dataclass(frozen=True)
class TemporalSettings:
    """ψ: `temporal.learning.TemporalLearner`, and for how long it learns."""

    steps: int = 20_000
    log_every: int = 1_000
    """Updates in a compiled chunk, and between records."""
    hidden: tuple[int, ...] = TemporalLearner.hidden
    latent: int = TemporalLearner.latent
    members: int = TemporalLearner.members
    discount: float | None = None
    """γ. None: by the length of the dataset's trajectories."""
    expectile: float = TemporalLearner.expectile
    target_rate: float = TemporalLearner.target_rate
    learning_rate: float = TemporalLearner.learning_rate
    batch_size: int = TemporalLearner.batch_size
    future_share: float = TemporalLearner.future_share
    cooldown: float = 0.5
    """Share of the updates, the last ones, over which the rate falls to nothing."""

    def build(self, discount: float) -> TemporalLearner:
        changes = {"discount": discount, "cooldown": falling(self.steps, self.cooldown)}
        return TemporalLearner(**{**_model_fields(self), **changes})


@dataclass(frozen=True)
class DynamicsSettings:
    """θ_dyn: `dynamics.model.Dynamics`."""

    steps: int = 20_000
    log_every: int = 100
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    predicts: Literal["clean", "noise", "velocity"] = Dynamics.predicts
    step_weight: float = Dynamics.step_weight
    relative: bool = True
    """Velocities of the distance from the first state, in dimensions that stay near it (`Dynamics.spread`)."""
    batch_size: int = Dynamics.batch_size
    learning_rate: float = Dynamics.learning_rate
    warmup: int = Dynamics.warmup
    cooldown: float = 0.5
    """Share of the updates, the last ones, over which the rate falls to nothing."""
    average_rate: float = Dynamics.average_rate

    def build(
        self, horizon: int, observation_dim: int, action_dim: int, spread: tuple[float, ...] = ()
    ) -> Dynamics:
        """`spread` is used where it is asked for."""
        fields = _model_fields(self)
        wanted = fields.pop("relative") and self.predicts == "velocity"
        fields["cooldown"] = falling(self.steps, self.cooldown)
        return Dynamics(
            horizon, observation_dim, action_dim, **fields, spread=tuple(spread) if wanted else ()
        )


@dataclass(frozen=True)
class PlannerSettings:
    """θ_π: `planner.model.Planner`."""

    steps: int = 20_000
    log_every: int = 100
    net: DiTConfig = field(default_factory=DiTConfig)
    schedule: Schedule = field(default_factory=Schedule)
    feedback: Feedback = field(default_factory=Feedback)
    regularisation: float = Planner.regularisation
    """α of eq. (16)."""
    correction: bool = Planner.correction
    moved_share: float = Planner.moved_share
    diffusion_steps: int = Planner.steps
    """T, for the second term of eq. (14)."""
    batch_size: int = Planner.batch_size
    learning_rate: float = Planner.learning_rate
    warmup: int = Planner.warmup
    cooldown: float = 0.5
    """Share of the updates, the last ones, over which the rate falls to nothing."""
    average_rate: float = Planner.average_rate

    def build(self, dynamics: Dynamics, shape: ChainShape, phase: int) -> Planner:
        fields = _model_fields(self)
        fields["steps"] = fields.pop("diffusion_steps")
        fields["cooldown"] = falling(self.steps, self.cooldown)
        sizes = dynamics.horizon, dynamics.observation_dim, dynamics.action_dim
        return Planner(*sizes, dynamics=dynamics, shape=shape, phase=phase, **fields)


@dataclass(frozen=True)
class OneStepSettings:
    """f: `dynamics.onestep.OneStep`, fitted where gaps are polished (`generate.sampling.polish`)."""

    steps: int = 20_000
    log_every: int = 500
    hidden: tuple[int, ...] = (256, 256, 256)
    members: int = 2
    batch_size: int = 512
    learning_rate: float = OneStep.learning_rate
    cooldown: float = 0.5
    """Share of the updates, the last ones, over which the rate falls to nothing."""

    def build(self, observation_dim: int, action_dim: int, scale: tuple[float, ...]) -> OneStep:
        fields = {**_model_fields(self), "cooldown": falling(self.steps, self.cooldown)}
        return OneStep(observation_dim, action_dim, tuple(scale), **fields)


@dataclass(frozen=True)
class AstroSettings:
    """Everything that decides what is fitted and generated, besides data, task, chain shape and seed."""

    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    dynamics: DynamicsSettings = field(default_factory=DynamicsSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    onestep: OneStepSettings = field(default_factory=OneStepSettings)
    generate: GenerateSettings = field(default_factory=GenerateSettings)
    """Its `mode` decides the horizon of both diffusion models: a gap with its target, or the whole chain."""
    calibration: Literal["auto", "literal"] = "auto"
    """auto: distances in steps at the data's own pace. literal: the raw distance, as the paper has it."""
    held_out: float = 0.05
    """Share of trajectories, the last ones, that neither diffusion model sees: limits are measured on them."""
    training_rows: int = 10_000_000
    """Rows that models are trained on at most, in whole trajectories spread evenly. Chains come from all rows."""

    def __post_init__(self) -> None:
        for stage in STAGES:
            for name in ("steps", "log_every", "batch_size"):
                value = getattr(getattr(self, stage), name)
                if value < 1:
                    raise ConfigError(
                        "A stage needs at least one.", field=f"{stage}.{name}", found=value, expected=">= 1"
                    )
        for stage in STAGES:
            if not 0 <= getattr(self, stage).cooldown <= 1:
                raise ConfigError(
                    "The share of updates must lie in [0, 1].",
                    field=f"{stage}.cooldown",
                    found=getattr(self, stage).cooldown,
                )
        if not 0 < self.held_out < 0.5:
            raise ConfigError(
                "The share that is held out must lie in (0, 0.5).", field="held_out", found=self.held_out
            )
        if self.training_rows < 1:
            raise ConfigError(
                "Models need rows to train on.",
                field="training_rows",
                found=self.training_rows,
                expected=">= 1",
            )
        # The learner checks the rest of its own settings; better now than after minutes of reading data.
        self.temporal.build(0.99 if self.temporal.discount is None else self.temporal.discount)

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> AstroSettings:
        return changed(cls(), saved)


CPU_NET = {"width": 128, "depth": 4, "heads": 4, "patch": 6, "step_width": 96}
PAPER_NET = {"width": 384, "depth": 12, "heads": 6, "patch": 1, "step_width": 384}
TINY_NET = {"width": 32, "depth": 1, "heads": 2, "patch": 2, "step_width": 16}

PRESETS: dict[str, dict[str, Any]] = {
    # Seconds: for tests and for looking around. What it generates is not good.
    "tiny": {
        "temporal": {"steps": 400, "log_every": 200, "hidden": (32, 32), "latent": 8, "members": 1,
                     "batch_size": 128, "learning_rate": 1e-3},
        "dynamics": {"steps": 200, "log_every": 100, "net": TINY_NET, "batch_size": 16, "learning_rate": 1e-3,
                     "warmup": 20, "average_rate": 0.02},
        "planner": {"steps": 100, "log_every": 50, "net": TINY_NET, "batch_size": 16, "learning_rate": 1e-3,
                    "warmup": 20, "average_rate": 0.02},
        "onestep": {"steps": 200, "log_every": 100, "hidden": (32,), "members": 1, "batch_size": 64},
        "generate": {"limit_windows": 64, "completion_batch": 32,
                     "search": {"pool": 1024, "batch": 64},
                     "sampling": {"plan_steps": 2, "state_steps": 2, "refine": 2, "polish": 5}},
    },
    # Two cores, up to an hour.
    "cpu": {
        # HILP's rates needed about three times as many updates for the same distances (docs/results/astro.md).
        "temporal": {"steps": 20_000, "hidden": (256, 256, 256), "members": 2, "batch_size": 256,
                     "learning_rate": 1e-3, "target_rate": 0.02},
        "dynamics": {"steps": 20_000, "net": CPU_NET, "batch_size": 64, "learning_rate": 2e-3},
        "planner": {"steps": 10_000, "net": CPU_NET, "batch_size": 64, "learning_rate": 1e-3},
        "onestep": {"steps": 15_000},
    },
    # Temporal distances as HILP's authors, DiT-S without patches, algorithm 2 as it stands; an accelerator and hours.
    "paper": {
        "temporal": {"steps": 1_000_000, "hidden": (512, 512, 512), "members": 2, "batch_size": 1024,
                     "cooldown": 0.0},
        "dynamics": {"steps": 1_000_000, "log_every": 1_000, "net": PAPER_NET, "batch_size": 256,
                     "learning_rate": 1e-4, "average_rate": 0.0002},
        "planner": {"steps": 1_000_000, "log_every": 1_000, "net": PAPER_NET, "batch_size": 256,
                    "learning_rate": 1e-4, "average_rate": 0.0002},
        "generate": {"mode": "rollout", "drop_tail": False, "sampling": {"plan_steps": 10, "refine": 0}},
    },
}  # fmt: skip
"""The one table of sizes. What it does not name is as the models' own defaults have it."""


def settings_for(
    preset: str, overrides: Mapping[str, Any] | None = None, *, accelerator: bool = False
) -> AstroSettings:
    """A preset's settings with `overrides` by path (`{"dynamics.net.width": 64}`) or nested. `auto` is `cpu`, or
    `paper` where there is an accelerator."""
    chosen = ("paper" if accelerator else "cpu") if preset == "auto" else preset
    if chosen not in PRESETS:
        raise ConfigError(
            f"No preset is called {preset!r}.",
            field="preset",
            found=preset,
            expected=", ".join(["auto", *PRESETS]),
            fix=near_match(preset, ["auto", *PRESETS]),
        )
    return changed(changed(AstroSettings(), PRESETS[chosen]), overrides or {})


def changed(record: Any, changes: Mapping[str, Any], path: str = "") -> Any:
    """The record with other values. Unknown names and values of another type are errors that name the setting.

    Names are a field's own or a dotted path; a mapping changes several fields of a nested record.
    """
    hints = get_type_hints(type(record))
    known = [item.name for item in dataclasses.fields(record)]
    values: dict[str, Any] = {}
    for name, value in changes.items():
        first, _, rest = str(name).partition(".")
        here = f"{path}{first}"
        if first not in known:
            raise ConfigError(
                f"There is no setting {here!r}.",
                field=here,
                expected=", ".join(f"{path}{name}" for name in known),
                fix=_near(here, path, known),
            )
        current = values.get(first, getattr(record, first))
        if dataclasses.is_dataclass(current):
            if not rest and not isinstance(value, Mapping):
                inner = [item.name for item in dataclasses.fields(current)]
                raise ConfigError(
                    "These are several settings, not one.",
                    field=here,
                    found=repr(value),
                    expected=", ".join(f"{here}.{name}" for name in inner),
                )
            values[first] = changed(current, {rest: value} if rest else value, f"{here}.")
        elif rest:
            raise ConfigError("This setting has no parts.", field=f"{path}{name}", expected=here)
        else:
            values[first] = as_type(here, value, hints[first])
    return dataclasses.replace(record, **values)


def _near(here: str, path: str, known: list[str]) -> str | None:
    return near_match(here, [f"{path}{name}" for name in known])


def falling(steps: int, share: float) -> tuple[int, int] | None:
    """The updates between which a rate falls, for a share of all of them."""
    return (steps - round(share * steps), steps) if share > 0 else None


def _model_fields(settings: Any) -> dict[str, Any]:
    """A stage's settings without what only the fitting needs."""
    named = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    return {name: value for name, value in named.items() if name not in ("steps", "log_every")}
