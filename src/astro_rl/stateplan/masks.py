"""Which states of a training sequence are known: a chain's pattern, or one gap of any length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key

from astro_rl.errors import ConfigError
from astro_rl.planner.masks import draw_patterns
from astro_rl.stitch.geometry import ChainShape


@runtime_checkable
class Masks(Protocol):
    """A frozen, hashable rule. The first state is always known."""

    def draw(self, key: Key[Array, ""], batch: int, horizon: int) -> Bool[Array, "batch horizon"]: ...


@dataclass(frozen=True)
class GapMasks:
    """A first state, then a gap, then known states up to anywhere: what stitching two ends asks for."""

    shortest: int
    """The first known place behind the gap, at least: 2 leaves one state to generate."""
    longest: int
    free_share: float = 0.25
    """Sequences with nothing behind the gap: what a continuation of a trajectory's end is drawn from."""

    def __post_init__(self) -> None:
        if not 2 <= self.shortest <= self.longest:
            raise ConfigError(
                "A gap has a state to generate, and its limits are in order.",
                field="shortest, longest",
                found=f"{self.shortest}, {self.longest}",
                expected="2 <= shortest <= longest",
            )
        if not 0 <= self.free_share <= 1:
            raise ConfigError("A share lies in [0, 1].", field="free_share", found=self.free_share)

    def draw(self, key: Key[Array, ""], batch: int, horizon: int) -> Bool[Array, "batch horizon"]:
        if self.longest >= horizon:
            raise ConfigError(
                "The longest gap ends beyond the horizon.",
                field="longest",
                found=self.longest,
                expected=f"< {horizon}",
            )
        which, where, until = jax.random.split(key, 3)
        behind = jax.random.randint(where, (batch,), self.shortest, self.longest + 1)
        end = jax.random.randint(until, (batch,), behind, horizon)
        free = jax.random.uniform(which, (batch,)) < self.free_share
        return gap_known(horizon, jnp.where(free, horizon, behind), end)


def gap_known(
    horizon: int, behind: Int[Array, "batch"], end: Int[Array, "batch"]
) -> Bool[Array, "batch horizon"]:
    """The first state, and those from place `behind` to place `end`."""
    place = jnp.arange(horizon)[None, :]
    known = (place >= behind[:, None]) & (place <= end[:, None])
    return known.at[:, 0].set(True)


@dataclass(frozen=True)
class ChainMasks:
    """The pattern that ASTRO's stitch planner learns from (`planner.masks`)."""

    shape: ChainShape
    phase: int
    moved_share: float = 0.5

    def draw(self, key: Key[Array, ""], batch: int, horizon: int) -> Bool[Array, "batch horizon"]:
        return draw_patterns(key, self.shape, horizon, batch, phase=self.phase, moved_share=self.moved_share)
