"""DiffStitch's settings and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from astro_rl.augment.settings import OneStepSettings, changed
from astro_rl.augmenters.diffstitch.options import StitchSettings
from astro_rl.errors import ConfigError
from astro_rl.stateplan.masks import GapMasks
from astro_rl.stateplan.settings import PRESETS as STATE_PRESETS
from astro_rl.stateplan.settings import (
    InverseSettings,
    StatePlanSettings,
    StateSettings,
    check_updates,
)


@dataclass(frozen=True)
class DiffStitchSettings:
    """Everything that decides what is fitted and generated, besides data, task and seed."""

    horizon: int = 60
    """H: states of a sequence, the source's last one and what follows. The authors' is 100."""
    shortest: int = 10
    """The target's place in the sequence, at least: so many transitions lead to it."""
    longest: int = 40
    states: StateSettings = field(default_factory=StateSettings)
    inverse: InverseSettings = field(default_factory=InverseSettings)
    onestep: OneStepSettings = field(default_factory=OneStepSettings)
    free_share: float = GapMasks.free_share
    generate: StitchSettings = field(default_factory=StitchSettings)
    held_out: float = 0.05
    """Share of trajectories, the last ones, that no model sees: limits are measured on them."""
    training_rows: int = 10_000_000
    """Rows that models are trained on at most, in whole trajectories spread evenly. Stitches come from all rows."""

    def __post_init__(self) -> None:
        self.masks()
        check_updates("onestep", self.onestep)
        if self.longest >= self.horizon:
            raise ConfigError(
                "The longest gap ends beyond the horizon.",
                field="longest",
                found=self.longest,
                expected=f"< {self.horizon} (horizon)",
            )
        if self.horizon % self.states.net.patch:
            raise ConfigError(
                "The patch must divide the horizon.",
                field="states.net.patch",
                found=f"{self.horizon} states in patches of {self.states.net.patch}",
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

    def masks(self) -> GapMasks:
        return GapMasks(self.shortest, self.longest, self.free_share)

    def state_plan(self) -> StatePlanSettings:
        """What state planner and inverse dynamics are fitted with."""
        return StatePlanSettings(self.states, self.inverse, self.generate.sampling)

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> DiffStitchSettings:
        return changed(cls(), saved)


def _both(preset: str) -> dict[str, Any]:
    """Sizes that DiffStitch shares with SI."""
    return {name: STATE_PRESETS[preset][name] for name in ("states", "inverse")}


PRESETS: dict[str, dict[str, Any]] = {
    # Seconds: for tests and for looking around. What it generates is not good.
    "tiny": {
        "horizon": 24, "shortest": 4, "longest": 12,
        **_both("tiny"),
        "onestep": {"steps": 400, "log_every": 200, "members": 2, "hidden": (32, 32), "batch_size": 128},
        "generate": {"sampling": STATE_PRESETS["tiny"]["sampling"], "piece": 8, "batch": 64, "candidates": 64,
                     "completion_batch": 32, "limit_windows": 64},
    },
    # Two cores, up to an hour.
    "cpu": _both("cpu"),
    # The authors' sequence and ensemble; an accelerator and hours.
    "paper": {
        "horizon": 100,
        **_both("paper"),
        "onestep": {"steps": 1_000_000, "log_every": 1_000, "members": 7, "hidden": (200, 200, 200, 200)},
        "generate": {"sampling": STATE_PRESETS["paper"]["sampling"]},
    },
}  # fmt: skip
"""What a preset does not name is as the settings' own defaults have it."""
