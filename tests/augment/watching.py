"""A keeper that remembers which stages were fitted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Watching:
    """`augment.fitting.Keeper`."""

    def __init__(self) -> None:
        self.fitted: list[str] = []

    def restore(self, stage: str, template: Any) -> tuple[int, Any]:
        return 0, None

    def keep(self, stage: str, step: int, state: Any, metrics: Mapping[str, float], *, last: bool) -> None:
        if last:
            self.fitted.append(stage)

    def latents(self) -> Path | None:
        return None
