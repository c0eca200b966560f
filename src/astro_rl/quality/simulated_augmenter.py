"""The control `simulated` behind the augmenters' protocol: a fit's own chains, completed by the simulator.

What stitching these chains could do at best (`quality.simulated`). It needs a task whose simulator and expert are at
hand, so it stands here and not among the methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.augment.generate import CURES, Account, GeneratedBatch, limits_for
from astro_rl.augment.models import FittedModels
from astro_rl.augment.selecting import selection_for
from astro_rl.augment.verdicts import largest_jumps
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.quality.simulated import ATTEMPTS, complete_in_simulator
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.selection import Selection
from astro_rl.tasks.task import Task

SIMULATED = "simulated"


@dataclass(frozen=True, eq=False)
class SimulatedProposer:
    """Batches of chains that a selection finds, each gap driven by the expert. Nothing is rejected: a junction that is
    missed by more than `jump` is cut."""

    selection: Selection
    dataset: Dataset
    task: Task
    shape: ChainShape
    jump: float
    """In typical steps, as `quality.simulated` takes it."""
    jump_xy: float | None
    seed: int
    attempts: int = ATTEMPTS
    workers: int | None = None
    give_up_after: int = 16

    @property
    def reward_quality(self) -> Mapping[str, float] | None:
        return None

    @property
    def cures(self) -> Mapping[str, str]:
        return CURES

    def batch(self, number: int) -> GeneratedBatch:
        found = self.selection.batch(self.seed, number)
        chains = Account(found.proposed, len(found), 0, dict(found.rejected))
        if len(found) == 0:
            return GeneratedBatch(None, found.starts, chains, Account())
        made = complete_in_simulator(
            self.dataset,
            self.task,
            self.shape,
            found.starts,
            jump=self.jump,
            jump_xy=self.jump_xy,
            # Noise follows from a gap's place in its batch: batches need seeds of their own.
            seed=int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0]),
            attempts=self.attempts,
            statistic=np.asarray(found.statistic),
            workers=self.workers,
        )
        told = made.info["lineage"]["completions"]
        return GeneratedBatch(
            made, found.starts, chains, Account(told["proposed"], told["proposed"], told["cut"])
        )


@dataclass(frozen=True, eq=False)
class FittedSimulator:
    """Which chains, and by how much a junction may be missed, are the fit's; the states are the simulator's."""

    models: FittedModels
    latents: Float[np.ndarray, "rows latent"] | None = None
    attempts: int = ATTEMPTS
    workers: int | None = None

    @property
    def method(self) -> str:
        return SIMULATED

    @property
    def source_digest(self) -> str:
        return self.models.source_digest

    def digest(self) -> str:
        return self.models.digest()

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> SimulatedProposer:
        if task is None:
            raise ConfigError(
                "The simulator is a task's.", field="task", found=None, fix="name the dataset's task"
            )
        models, settings = self.models, self.models.settings.generate
        latents = models.temporal.encode(dataset.observations) if self.latents is None else self.latents
        jump, jump_xy = largest_jumps(limits_for(models, dataset, settings, task), settings)
        return SimulatedProposer(
            selection_for(models, dataset, settings, latents),
            dataset,
            task,
            models.shape,
            jump,
            jump_xy,
            seed,
            self.attempts,
            self.workers,
            settings.give_up_after,
        )

    def lineage(self) -> dict[str, Any]:
        models = self.models
        return {
            "shape": asdict(models.shape),
            "gauge": asdict(models.gauge),
            "limits": models.limits.as_json(),
            "generate": asdict(models.settings.generate),
            "attempts": self.attempts,
        }

    def networks(self) -> Mapping[str, Any]:
        return self.models.networks()

    def description(self) -> dict[str, Any]:
        return FittedAstro(self.models).description()
