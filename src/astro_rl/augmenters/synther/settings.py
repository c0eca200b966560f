"""SynthER's settings and presets. `paper` is its authors' own, where their code says what they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from astro_rl.augment.settings import changed
from astro_rl.augmenters.synther.columns import Columns
from astro_rl.augmenters.synther.denoiser import TWO_STEPS, Denoiser, NetworkName
from astro_rl.augmenters.synther.edm import Heun, Noise
from astro_rl.augmenters.synther.networks import ResidualConfig
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig

SMALL_BATCH, LARGE_BATCH, LARGE_DATA = 256, 1024, 800_000
"""The authors' batches: larger ones from so many transitions on."""


@dataclass(frozen=True)
class DenoiserSettings:
    """`denoiser.Denoiser`, and for how long it learns."""

    steps: int = Denoiser.steps
    log_every: int = 1_000
    network: NetworkName = Denoiser.network
    mlp: ResidualConfig = field(default_factory=ResidualConfig)
    dit: DiTConfig = TWO_STEPS
    batch_size: int | None = None
    """None: 256, and 1024 for 800,000 transitions and more."""
    learning_rate: float = Denoiser.learning_rate
    average_rate: float = Denoiser.average_rate

    def build(self, columns: Columns, noise: Noise, transitions: int) -> Denoiser:
        own = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        del own["log_every"]
        if self.batch_size is None:
            own["batch_size"] = SMALL_BATCH if transitions < LARGE_DATA else LARGE_BATCH
        return Denoiser(columns, noise, **own)


@dataclass(frozen=True)
class SyntherSettings:
    """Everything that decides what is fitted and generated, besides data, task and seed."""

    denoiser: DenoiserSettings = field(default_factory=DenoiserSettings)
    noise: Noise = field(default_factory=Noise)
    sampling: Heun = field(default_factory=Heun)
    rewards: Literal["task", "modelled"] = "task"
    """task: where a task is named it says what generated transitions are rewarded with. modelled: the denoiser does, as
    the authors have it. Without a task rewards are modelled, if the data has any."""
    end_threshold: float = 0.5
    """A modelled end above it is one."""
    batch: int = 16_384
    """Transitions made at once, which become a shard. Noise is drawn a batch at a time: it decides the result too."""
    at_once: int = 2_048
    """Of these, how many go through the network together."""
    give_up_after: int = 16
    """Batches in a row that may keep nothing."""
    training_transitions: int = 5_000_000
    """Of longer data, so many are learned from, evenly spread."""

    def __post_init__(self) -> None:
        whole = {
            "denoiser.steps": self.denoiser.steps,
            "denoiser.log_every": self.denoiser.log_every,
            "denoiser.batch_size": 1 if self.denoiser.batch_size is None else self.denoiser.batch_size,
            "batch": self.batch,
            "at_once": self.at_once,
            "give_up_after": self.give_up_after,
            "training_transitions": self.training_transitions,
        }
        for name, value in whole.items():
            if value < 1:
                raise ConfigError("This has to be at least 1.", field=name, found=value)
        if self.denoiser.learning_rate <= 0:
            raise ConfigError(
                "A learning rate is above 0.",
                field="denoiser.learning_rate",
                found=self.denoiser.learning_rate,
            )
        if not 0 < self.denoiser.average_rate <= 1:
            raise ConfigError(
                "The rate of a moving average lies in (0, 1].",
                field="denoiser.average_rate",
                found=self.denoiser.average_rate,
            )
        if self.denoiser.network == "dit" and self.denoiser.dit.patch not in (1, 2):
            raise ConfigError(
                "A transition has two steps, which a patch has to divide.",
                field="denoiser.dit.patch",
                found=self.denoiser.dit.patch,
                expected="1 or 2",
            )

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SyntherSettings:
        return changed(cls(), saved)


GENERATING = ("sampling", "end_threshold", "batch", "at_once", "give_up_after")
"""Settings that decide nothing of the fit, and can be others when augmenting."""

TINY_DIT = {"width": 16, "depth": 1, "heads": 2, "step_width": 16}
CPU_DIT = {"width": 64, "depth": 2, "heads": 2, "step_width": 64}
PAPER_DIT = {"width": 384, "depth": 12, "heads": 6, "step_width": 384}

PRESETS: dict[str, dict[str, Any]] = {
    # Seconds: for tests and for looking around. What it generates is not good.
    "tiny": {
        "denoiser": {"steps": 300, "log_every": 100, "batch_size": 128, "learning_rate": 3e-3, "average_rate": 0.02,
                     "mlp": {"width": 64, "depth": 2, "level_width": 32}, "dit": TINY_DIT},
        "sampling": {"steps": 8},
        "batch": 1_024,
        "at_once": 1_024,
    },
    # Two cores, minutes.
    "cpu": {
        "denoiser": {"steps": 30_000, "batch_size": 256, "learning_rate": 1e-3, "average_rate": 0.002,
                     "mlp": {"width": 256, "depth": 4}, "dit": CPU_DIT},
        # The authors' churn needs their 128 steps: at 48 it makes the variance 6 % too large, this one 2 %.
        "sampling": {"steps": 48, "churn": 2.0},
    },
    # As the authors' code for smaller datasets (2048 wide on larger ones); the DiT as large as ASTRO's own.
    "paper": {
        "denoiser": {"dit": PAPER_DIT},
        "batch": 100_000,
        "at_once": 100_000,
    },
}  # fmt: skip
"""What each changes. What it does not name is as the defaults have it, which are the authors'."""
