"""What a measurement has at hand, in order. Its parts ask here for what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from astro_rl.augment.models import FittedModels
from astro_rl.data.schema import Dataset
from astro_rl.errors import UnavailableError
from astro_rl.quality.ensemble import EnsembleSettings
from astro_rl.quality.figures import Figure
from astro_rl.quality.parts import RealParts
from astro_rl.tasks.task import Task


class Part(NamedTuple):
    figures: list[Figure]
    details: Any = None


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a measurement has at hand, checked and put in order."""

    augmented: Dataset
    """With `source_step` −1 on every generated row."""
    real: Dataset | None
    parts: RealParts | None
    task: Task | None
    xy: tuple[int, int] | None
    models: FittedModels | None
    runs: Mapping[str, Sequence[Path]]
    ensemble: EnsembleSettings
    rows: int
    sequences: int
    seed: int
    workers: int | None
    say: Callable[[str], None]
    no_parts: str = "it needs real data beside it (real=…, --real)"
    """Why there are no held-out recordings, where there are none."""

    def need_parts(self) -> RealParts:
        if self.parts is None:
            raise UnavailableError(self.no_parts)
        return self.parts

    def need_xy(self) -> tuple[int, int]:
        if self.xy is None:
            raise UnavailableError(
                "no plane is known: name a task, or the entries that hold x and y (xy=…, --xy)"
            )
        return self.xy

    def need_task(self) -> Task:
        if self.task is None:
            raise UnavailableError("it needs a task with a simulator (task=…, --task)")
        return self.task

    def need_models(self) -> FittedModels:
        if self.models is None:
            raise UnavailableError("it needs a fit of the real data (models=…, --fit)")
        return self.models
