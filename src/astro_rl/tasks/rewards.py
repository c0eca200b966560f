"""Rewards of observations, so that states which no simulator has visited can be scored.

OGBench computes its rewards from `qpos`; everything they need is in the observation too, scaled and shifted,
and is undone here in double precision. On rows of real data both agree but for rounding at a threshold, which
is why each reward also says how far from one a row is (`threshold_gap`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True)
class Reach:
    """Be within a tolerance of a point in the plane: mazes, and the ball of antsoccer. Reward is success −
    1."""

    xy_indices: tuple[int, int]
    goal: tuple[float, float]
    tolerance: float

    def _distance(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        xy = observations[..., list(self.xy_indices)].astype(np.float64)
        return np.asarray(np.linalg.norm(xy - np.array(self.goal), axis=-1))

    def success(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]:
        return np.asarray(self._distance(observations) <= self.tolerance)

    def reward(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        return np.asarray(self.success(observations) - 1.0)

    def threshold_gap(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        """How far the distance is from the tolerance, in the environment's unit of length."""
        return np.asarray(np.abs(self._distance(observations) - self.tolerance))


@runtime_checkable
class Part(Protocol):
    """One of several goals that have to be met together."""

    def met(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]: ...

    def threshold_gap(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]: ...


@dataclass(frozen=True)
class Placed:
    """Observed coordinates, once unscaled, lie within a tolerance of their target: a cube, a drawer, a
    window."""

    start: int
    target: tuple[float, ...]
    scale: float
    center: tuple[float, ...]
    """Observed is (true − center)·scale."""
    tolerance: float = 0.04

    def _distance(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        seen = observations[..., self.start : self.start + len(self.target)].astype(np.float64)
        offset = seen / self.scale + np.array(self.center) - np.array(self.target)
        return np.asarray(np.linalg.norm(offset, axis=-1))

    def met(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]:
        return np.asarray(self._distance(observations) <= self.tolerance)

    def threshold_gap(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        return np.asarray(np.abs(self._distance(observations) - self.tolerance))


@dataclass(frozen=True)
class Switched:
    """A one-hot coded button is in its target state. A generated one counts as what it is nearest to."""

    start: int
    states: int
    target: int

    def met(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]:
        state = np.argmax(observations[..., self.start : self.start + self.states], axis=-1)
        return np.asarray(state == self.target)

    def threshold_gap(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        return np.full(observations.shape[:-1], np.inf)


@dataclass(frozen=True)
class Together:
    """Several goals at once: reward is goals met − goals, success is all of them."""

    parts: tuple[Part, ...]

    def _met(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "parts *batch"]:
        return np.stack([part.met(observations) for part in self.parts])

    def success(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]:
        return np.asarray(self._met(observations).all(axis=0))

    def reward(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        return np.asarray(self._met(observations).sum(axis=0) - float(len(self.parts)))

    def threshold_gap(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]:
        gaps = np.stack([part.threshold_gap(observations) for part in self.parts])
        return np.asarray(gaps.min(axis=0))
