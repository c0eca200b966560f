"""What real, held-out windows reach when they are continued and filled as stitches are: both thresholds' yardstick.

The authors' thresholds were chosen for locomotion's 11 and 17 dimensions. Read literally they reject nothing in a maze
of two and nearly everything of an ant's 29 (docs/method/diffstitch.md), so by default they are read off the data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from astro_rl.augment.limits import LEVELS, RealLimits, quantiles
from astro_rl.augmenters.diffstitch.fill import GapFiller
from astro_rl.augmenters.diffstitch.similarity import MEASURES, similarities
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.windows import window_starts

NOTHING = (0.0,) * len(LEVELS)


@dataclass(frozen=True)
class StitchLimits:
    """Quantiles (at `augment.limits.LEVELS`) over real windows."""

    windows: int
    deviation: tuple[float, ...]
    """(5), the largest of a gap."""
    cosine: tuple[float, ...]
    """(8), the largest over all steps, between a continuation and the state that really came at the gap's end."""
    euclidean: tuple[float, ...]
    """(9), likewise."""

    def at(self, name: str, quantile: float) -> float:
        if not 0 <= quantile <= 1:
            raise ConfigError("A quantile lies in [0, 1].", field=name, found=quantile)
        return float(np.interp(quantile, LEVELS, getattr(self, name)))

    def as_real(self) -> RealLimits:
        """As finishing takes it. Errors at known states are 0, because those are kept as given."""
        return RealLimits("anchored", self.windows, self.deviation, NOTHING, NOTHING, None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> StitchLimits:
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in saved.items()}
        return cls(**values)


UNMEASURED = StitchLimits(0, NOTHING, NOTHING, NOTHING)


def measure_stitch_limits(
    filler: GapFiller,
    dataset: Dataset,
    trajectories: Int[np.ndarray, "held_out"],
    *,
    shortest: int,
    longest: int,
    windows: int,
    seed: int,
) -> StitchLimits:
    """Of gaps of all lengths, in trajectories that no model was fitted to."""
    horizon = filler.plan.planner.horizon
    starts, owners = window_starts(dataset.offsets, horizon)
    starts = starts[np.isin(owners, trajectories)]
    generator = np.random.default_rng([seed, 1])
    chosen = np.sort(generator.choice(starts, size=windows, replace=len(starts) < windows))
    rows = chosen[:, None] + np.arange(horizon)
    given = filler.normaliser.normalise(np.asarray(dataset.observations[rows])).astype(np.float32)
    places = generator.integers(shortest, longest + 1, windows)
    walk_key, fill_key = jax.random.split(jax.random.key(seed))
    done = filler.fill(given, places, np.full(windows, horizon - 1), fill_key)
    walked = filler.continuations(given[:, 0], walk_key)[:, shortest : longest + 1]
    came = given[np.arange(windows), places][:, None]
    near = {measure: similarities(walked, came, measure).max(axis=(1, 2)) for measure in MEASURES}
    broken = ~np.isfinite(np.stack([done.deviation, *near.values()])).all(axis=0)
    if broken.any():
        raise DataError(
            "The models give numbers that are not finite on real gaps.",
            found=f"{int(broken.sum())} of {windows} gaps",
            fix="fit again, with a lower learning rate",
        )
    return StitchLimits(
        windows, quantiles(done.deviation), quantiles(near["cosine"]), quantiles(near["euclidean"])
    )
