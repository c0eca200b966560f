"""What an observation is made of, where that constrains it, and the projection of generated ones onto it.

A generated observation is a vector of numbers near the data; nothing makes its quaternions unit, its sine and
cosine belong to one angle or its buttons either pressed or not. Rewards and simulators assume all of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_TINY = 1e-6
"""Shorter than this, a vector has no direction worth keeping."""


@dataclass(frozen=True)
class UnitVector:
    """Entries start to stop have length one: a quaternion, a direction, or the (cosine, sine) of an angle."""

    start: int
    stop: int
    fallback: tuple[float, ...]
    """What a vector without a direction becomes."""


@dataclass(frozen=True)
class OneHot:
    """Entries start to stop are all zero but for a single one."""

    start: int
    stop: int


@dataclass(frozen=True)
class Bound:
    """One entry stays within an interval, in the observation's own unit."""

    index: int
    low: float
    high: float


@dataclass(frozen=True)
class Layout:
    """All constraints on one kind of observation; entries that none of them names are free."""

    size: int
    unit_vectors: tuple[UnitVector, ...] = ()
    one_hot: tuple[OneHot, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def project(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch obs"]:
        """The nearest valid observations (per constraint), in the type they came in. The input is left
        alone."""
        valid = np.array(observations)
        for part in self.unit_vectors:
            vector = valid[..., part.start : part.stop].astype(np.float64)
            length = np.linalg.norm(vector, axis=-1, keepdims=True)
            direction = np.divide(vector, length, out=np.zeros_like(vector), where=length > _TINY)
            valid[..., part.start : part.stop] = np.where(length > _TINY, direction, np.array(part.fallback))
        for part in self.one_hot:
            scores = valid[..., part.start : part.stop]
            valid[..., part.start : part.stop] = np.eye(scores.shape[-1])[np.argmax(scores, axis=-1)]
        for part in self.bounds:
            valid[..., part.index] = np.clip(valid[..., part.index], part.low, part.high)
        return valid


def quaternion(start: int) -> UnitVector:
    return UnitVector(start, start + 4, (1.0, 0.0, 0.0, 0.0))


def angle(start: int) -> UnitVector:
    """A (cosine, sine) pair."""
    return UnitVector(start, start + 2, (1.0, 0.0))


def upward(start: int) -> UnitVector:
    """A direction that points up when nothing else is known."""
    return UnitVector(start, start + 3, (0.0, 0.0, 1.0))
