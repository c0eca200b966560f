"""Chain shapes of the paper's sweeps, as near as whole patches allow.

pieces       n changes; l and M stay, L = n·(l + M) follows
horizon      L changes; n stays, l = M
mask_ratio   M/l changes; n and l + M stay
"""

from __future__ import annotations

from typing import Literal

from astro_rl.augment.models import FittedModels
from astro_rl.augment.sharing import patch_of
from astro_rl.errors import ConfigError
from astro_rl.stitch.geometry import ChainShape

PAPER_HORIZON = 160
"""The middle one of its sweep."""


def reshaped(
    models: FittedModels,
    change: Literal["pieces", "horizon", "mask_ratio"],
    value: str,
    *,
    absolute: bool = False,
) -> ChainShape:
    """The shape that one row of a sweep asks for. Horizons are in proportion to the base's unless `absolute`."""
    shape, patch = models.shape, patch_of(models.settings)
    if change == "pieces":
        return ChainShape(int(value), shape.segment, shape.mask)
    if change == "horizon":
        base = PAPER_HORIZON if absolute else shape.horizon
        span = whole(float(value) / PAPER_HORIZON * base / (2 * shape.pieces), patch, shape.segment)
        return ChainShape(shape.pieces, span, span)
    masked, _, known = value.partition("/")
    if not masked.isdigit() or not known.isdigit() or not int(masked) or not int(known):
        raise ConfigError("Not a ratio of states.", field="mask_ratio", found=value, expected="1/3")
    mask = whole(shape.period * int(masked) / (int(masked) + int(known)), patch, shape.mask)
    return ChainShape(shape.pieces, shape.period - mask, mask)


def whole(wanted: float, patch: int, base: int) -> int:
    """A multiple of the patch, rounded away from the base, so that two rows of a sweep never fall together."""
    down, up = int(wanted // patch) * patch, -int(-wanted // patch) * patch
    chosen = up if wanted > base else down
    return max(chosen, patch)
