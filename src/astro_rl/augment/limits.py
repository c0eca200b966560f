"""What the models' errors are on *real* held-out sequences: the yardstick that generated ones are held against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from astro_rl.errors import ConfigError

Mode = Literal["anchored", "rollout"]

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""Quantiles that are kept; others are interpolated."""


@dataclass(frozen=True)
class RealLimits:
    """Quantiles (at `LEVELS`) of four errors over real windows that were masked and completed as chains are.

    All are measured by `astro_rl.augment.check`. A plain record of numbers, so that it can be kept as JSON.
    """

    mode: Mode
    """How the windows were completed. Errors of a whole chain and of a single gap are not comparable."""
    windows: int
    deviation: tuple[float, ...]
    """δ: mean squared error of known states, normalised."""
    step_error: tuple[float, ...]
    """Root mean square miss of one-step changes between known states, in units of a typical step."""
    jump: tuple[float, ...]
    """How far the state that the model arrives at is from the real one there, in typical steps, over all dimensions."""
    jump_xy: tuple[float, ...] | None
    """The same in the plane alone, where a task says which dimensions are x and y."""

    def at(self, name: str, quantile: float) -> float:
        """The error that so large a share of real windows stays at or below."""
        if not 0 <= quantile <= 1:
            raise ConfigError("A quantile lies in [0, 1].", field=name, found=quantile)
        return float(np.interp(quantile, LEVELS, getattr(self, name)))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> RealLimits:
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in saved.items()}
        return cls(**values)


def quantiles(values: Float[np.ndarray, "windows"]) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(values, LEVELS))
