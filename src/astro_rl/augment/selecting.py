"""Which chains a fit proposes, by what the settings name: the rules of `stitch.selection`, given models and data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from astro_rl.augment.check import real_windows
from astro_rl.augment.continuation import Continuation, fit_policy
from astro_rl.augment.jobs import known_span
from astro_rl.augment.models import FittedModels
from astro_rl.augment.options import GenerateSettings
from astro_rl.data.schema import Dataset
from astro_rl.stitch.euclidean import NearestContinuation
from astro_rl.stitch.filtering import ChainFilter
from astro_rl.stitch.search import ChainSearch
from astro_rl.stitch.selection import RandomTargets, RealWindows, Selection, all_windows
from astro_rl.stitch.windows import find_windows


class Given(NamedTuple):
    """What every rule is made from."""

    models: FittedModels
    dataset: Dataset
    settings: GenerateSettings
    latents: np.ndarray

    def filter(self, filters: bool) -> ChainFilter:
        search = self.settings.search
        return ChainFilter(
            self.latents,
            self.models.gauge,
            self.models.shape,
            search.batch,
            search.threshold if filters else None,
            search.filter_pairs,
        )


def selection_for(
    models: FittedModels, dataset: Dataset, settings: GenerateSettings, latents: np.ndarray
) -> Selection:
    name = "windows" if settings.chains == "regenerated" else settings.selection
    return SELECTIONS[name](Given(models, dataset, settings, latents))


def _temporal(given: Given) -> ChainSearch:
    models, search = given.models, given.settings.search
    windows = find_windows(
        given.latents,
        np.asarray(given.dataset.offsets),
        models.shape.segment,
        models.gauge,
        search.threshold,
    )
    return ChainSearch(given.latents, windows, models.gauge, models.shape, search)


def _random(given: Given) -> RandomTargets:
    windows = all_windows(np.asarray(given.dataset.offsets), given.models.shape.segment)
    settings = given.settings
    return RandomTargets(windows, given.filter(settings.filter_others), settings.search.distinct)


def _euclidean(given: Given) -> NearestContinuation:
    """The policy is learned here, from the fit's own seed: it is part of the rule, and the same for every batch."""
    models, dataset, settings = given.models, given.dataset, given.settings
    policy = fit_policy(dataset, models.normaliser, settings.continuation, seed=models.seed)
    return NearestContinuation(
        dataset.observations,
        models.normaliser,
        all_windows(np.asarray(dataset.offsets), models.shape.segment),
        given.filter(settings.filter_others),
        Continuation(
            models.dynamics, models.dynamics_network, policy, settings.continuation, models.shape.mask + 1
        ),
        settings.search.pool,
        settings.search.distinct,
    )


def _windows(given: Given) -> RealWindows:
    firsts = real_windows(given.dataset, known_span(given.models.shape))
    return RealWindows(firsts, given.filter(given.settings.filter_real))


SELECTIONS: dict[str, Callable[[Given], Selection]] = {
    "temporal": _temporal,
    "random": _random,
    "euclidean": _euclidean,
    "windows": _windows,
}
