"""What no model can be fitted to, told before anything is learned."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from astro_rl.augment.settings import AstroSettings
from astro_rl.augment.sharing import patch_of
from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.stitch.auto import check_shape, shapes_with_room
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.relabel import check_width
from astro_rl.tasks.task import Task

DROWNED, ROUNDING = 1e-3, 1e-6
"""Where a few rows make the spread a thousand times larger than it is without them, they are no data but a fault in the
recording. What is left below rounding was a constant but for those rows: a button, say."""
SAMPLED = 100_000


def check_fittable(
    dataset: Dataset, settings: AstroSettings, shape: ChainShape | None, task: Task | None
) -> int:
    """Refuses a task of other data, and trajectories too few or too short for chains. Returns the models' patch."""
    patch = patch_of(settings)
    mode, distinct = settings.generate.mode, settings.generate.search.distinct
    if task is not None:
        check_width(dataset, task)
    if len(dataset) < 2 and distinct:
        raise DataError(
            "One single trajectory cannot be stitched: all pieces of a chain come from different ones.",
            found="1 trajectory",
            expected="2 or more",
            fix="allow pieces of one trajectory (generate.search.distinct=false), or hand the recording in as several",
        )
    if shape is None:
        shapes_with_room(dataset.offsets, patch=patch, completion=mode, distinct=distinct)
    else:
        check_shape(shape, dataset.offsets, patch=patch, completion=mode, distinct=distinct)
    return patch


def checked_normaliser(dataset: Dataset) -> Normaliser:
    """Refuses what no model can be fitted to: nothing that varies, or values that dwarf all others."""
    with np.errstate(over="ignore", invalid="ignore"):
        normaliser = fit_normaliser(dataset.observations)
    broken = ~np.isfinite(np.stack(normaliser)).all(axis=0)
    if broken.any():
        raise DataError(
            "Observations are too large for 32-bit numbers.",
            field=f"observations, dimension {int(broken.argmax())}",
            fix="give this dimension another scale",
        )
    if not normaliser.spread.any():
        raise DataError(
            "Every dimension of the observations is constant.",
            field="observations",
            found=f"{dataset.observation_dim} dimensions, none of which varies",
            fix="look at the recording: astro-rl data inspect",
        )
    rest = spread_of_the_rest(dataset.observations)
    drowned = (rest > normaliser.spread * ROUNDING) & (rest < DROWNED * normaliser.spread)
    if drowned.any():
        where = int(drowned.argmax())
        raise DataError(
            "Some observations are so large beside the others that the others would not be seen.",
            field=f"observations, dimension {where}",
            found=f"a spread of {normaliser.spread[where]:.3g} that a few rows make: {rest[where]:.3g} without them",
            fix="remove the broken rows, or give this dimension another scale",
        )
    return normaliser


def spread_of_the_rest(observations: Float[np.ndarray, "rows obs"]) -> Float[np.ndarray, "obs"]:
    """Standard deviations without the few largest and smallest values, from rows spread evenly over the data."""
    sample = np.asarray(observations[:: max(1, len(observations) // SAMPLED)], np.float64)
    few = max(1, len(sample) // 10_000)
    if len(sample) <= 2 * few + 1:
        return np.zeros(sample.shape[1])
    return np.sort(sample, axis=0)[few:-few].std(axis=0)
