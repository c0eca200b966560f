"""Statistics of recorded scores: each arm by itself, against the original data, and over all tasks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from astro_rl.bench import paper
from astro_rl.bench.averages import arms_of
from astro_rl.bench.records import Scores, Setup
from astro_rl.evaluate.statistics import (
    RESAMPLES,
    Estimate,
    Summary,
    interquartile_mean,
    interval,
    mean_score,
    probability_of_improvement,
    summarise,
)

ORIGINAL = "original"


@dataclass(frozen=True)
class ArmSummary:
    """One arm, one learner, one task."""

    task: str
    learner: str
    arm: str
    setup: Setup
    summary: Summary
    improvement: Estimate | None
    """P(a seed of this arm beats one of the original's), ties counting half."""
    difference: Estimate | None
    """Mean difference to the original seed by seed, over the seeds that both have."""
    means: tuple[float, float] | None
    """The original's mean and this arm's, over these seeds."""
    paper: float | None
    """The paper's mean for the same cell; its table 2 where table 1 has no such arm."""


@dataclass(frozen=True)
class Overall:
    """One arm under one learner over several tasks: a task is a stratum."""

    learner: str
    arm: str
    tasks: tuple[str, ...]
    seeds: int
    mean: float
    iqm: Estimate
    improvement: Estimate | None


def summaries(scores: Sequence[Scores], *, resamples: int = RESAMPLES) -> list[ArmSummary]:
    """Every arm of every task, the original first."""
    by_place = {(one.task, one.learner, one.setup, one.arm): one for one in scores}
    places = dict.fromkeys((one.learner, one.task, one.setup) for one in scores)
    order = arms_of((one.task, one.learner, one.arm) for one in scores)
    found = []
    for learner, task, setup in sorted(places, key=lambda place: (place[0], place[1], str(place[2]))):
        original = by_place.get((task, learner, setup, ORIGINAL))
        for arm in order:
            one = by_place.get((task, learner, setup, arm))
            if one is None:
                continue
            against = None if original is None or arm == ORIGINAL else original
            found.append(
                ArmSummary(
                    task,
                    learner,
                    arm,
                    setup,
                    summarise(one.values),
                    None
                    if against is None
                    else probability_of_improvement(
                        one.values[:, None], against.values[:, None], resamples=resamples
                    ),
                    None if against is None else paired(one, against, resamples),
                    None if against is None else common_means(one, against),
                    published(task, learner, arm),
                )
            )
    return found


def common_seeds(one: Scores, other: Scores) -> list[int]:
    return sorted(one.by_seed.keys() & other.by_seed.keys())


def common_means(one: Scores, original: Scores) -> tuple[float, float] | None:
    """(original, arm) over the seeds that both have: an arm with fewer seeds is not held against luckier ones."""
    both = common_seeds(one, original)
    if not both:
        return None
    before, after = ([side.by_seed[seed] for seed in both] for side in (original, one))
    return float(np.mean(before)), float(np.mean(after))


def paired(one: Scores, other: Scores, resamples: int = RESAMPLES) -> Estimate | None:
    """The mean difference over common seeds, with a bootstrap interval over them."""
    both = common_seeds(one, other)
    if not both:
        return None
    apart = np.array([[one.by_seed[seed] - other.by_seed[seed]] for seed in both], np.float64)
    return interval(apart, mean_score, resamples=resamples)


def overall(scores: Sequence[Scores], *, resamples: int = RESAMPLES) -> list[Overall]:
    """Each arm over the tasks on which the original was trained too, with the seeds that all of them have."""
    found = []
    for learner in sorted({one.learner for one in scores}):
        own = [one for one in scores if one.learner == learner]
        original = {(one.task, one.setup): one for one in own if one.arm == ORIGINAL}
        for arm in arms_of((one.task, learner, one.arm) for one in own):
            pairs = [
                (one, original[one.task, one.setup])
                for one in own
                if one.arm == arm and (one.task, one.setup) in original
            ]
            seeds = sorted(set.intersection(*(set(one.by_seed) for one, _ in pairs))) if pairs else []
            if not seeds:
                continue
            matrix = _matrix([one for one, _ in pairs], seeds)
            theirs = sorted(set.intersection(*(set(other.by_seed) for _, other in pairs)))
            better = (
                probability_of_improvement(
                    matrix, _matrix([other for _, other in pairs], theirs), resamples=resamples
                )
                if theirs and arm != ORIGINAL
                else None
            )
            found.append(
                Overall(
                    learner,
                    arm,
                    tuple(one.task for one, _ in pairs),
                    len(seeds),
                    float(matrix.mean()),
                    interval(matrix, interquartile_mean, resamples=resamples),
                    better,
                )
            )
    return found


def published(task: str, learner: str, arm: str) -> float | None:
    """The paper's score: table 1, or FQL's table 2."""
    found = paper.value("astro", task, arm, learner)
    return paper.value("astro_ablation", task, arm, learner) if found is None else found


def pairs_of(summaries: Sequence[ArmSummary]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """What the averages are taken of. A task that was run under two setups counts with the first."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for one in summaries:
        if one.means is not None:
            found.setdefault((one.task, one.learner, one.arm), one.means)
    return found


def _matrix(scores: Sequence[Scores], seeds: Sequence[int]) -> np.ndarray:
    """Seeds × tasks."""
    return np.array([[one.by_seed[seed] for one in scores] for seed in seeds], np.float64)
