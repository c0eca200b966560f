"""What training led to: value maps of trained policies, and scores from run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.quality.values import mean_value
from astro_rl.report.gather import STATES, cell_of, evenly
from astro_rl.report.story import PERCENT, Scores, ValueMaps, Walls
from astro_rl.run.files import read_json
from astro_rl.run.policy import Policy

ORIGINAL, ASTRO = "original", "ASTRO"


def value_maps(
    learner: str,
    before: Policy,
    after: Policy,
    dataset: Dataset,
    xy: tuple[int, int],
    *,
    walls: Walls | None = None,
    states: int = STATES,
) -> ValueMaps:
    """What both expect from the same recorded states, each averaged over its seeds."""
    rows = evenly(dataset.n_rows, states)
    observations = np.asarray(dataset.observations[rows], np.float32)
    places = np.asarray(observations[:, list(xy)], np.float64)
    return ValueMaps(
        learner=learner,
        xy=places,
        before=mean_value(before, observations),
        after=mean_value(after, observations),
        cell=cell_of(places, walls),
        seeds=min(len(before.seeds), len(after.seeds)),
    )


def scores_of(learner: str, arms: Mapping[str, Sequence[str | Path]]) -> Scores | None:
    """One learner's scores: run folders by arm, the arm without augmentation first. None where nothing was evaluated.

    Runs of one arm that are split over seeds are put together.
    """
    found = {
        arm: [read_json(Path(folder) / "results.json") for folder in folders] for arm, folders in arms.items()
    }
    results = [result for each in found.values() for result in each]
    if not results or any(result.get("evaluation") is None for result in results):
        return None
    updates = {int(result["steps"]) for result in results}
    if len(updates) > 1:
        raise DataError(
            "Runs of different length are not compared.", field=f"{learner}: updates", found=sorted(updates)
        )
    return Scores(
        learner=learner,
        arms={
            arm: np.concatenate([np.asarray(result["evaluation"]["scores"], np.float64) for result in each])
            for arm, each in found.items()
        },
        episodes=min(len(result["evaluation"]["episodes"]["returns"][0]) for result in results),
        updates=updates.pop(),
        unit=_unit(results),
    )


def _unit(results: Sequence[Mapping[str, Any]]) -> str:
    successes = [result["evaluation"]["episodes"]["successes"] for result in results]
    return PERCENT if all(each is not None for each in successes) else "mean return"
