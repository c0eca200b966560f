"""Statistics over training seeds, by the definitions of Agarwal et al. 2021 (arXiv 2108.13264, the `rliable`
library).

Scores are matrices of seeds × tasks. A task is a stratum: resampling draws seeds within a task, never across
tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.errors import ConfigError

RESAMPLES = 50_000
CONFIDENCE = 0.95
CELLS_AT_ONCE = 4_000_000

Statistic = Callable[[np.ndarray], np.ndarray]
"""From (…, seeds, tasks) to (…)."""


@dataclass(frozen=True)
class Estimate:
    """A statistic and its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True)
class Summary:
    """What a table's cell needs to be honest."""

    seeds: int
    mean: float
    std: float
    """Over seeds, divided by their number (not by one less), as the field's tables have it. Zero for one
    seed.
    """
    iqm: Estimate
    never_learned: int | None
    """Seeds that never rose above the floor; None where a task has no floor."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        told = f"{self.mean:.1f} ± {self.std:.1f} over {self.seeds} seed{'s' if self.seeds != 1 else ''}"
        told += f", IQM {self.iqm}"
        return told if self.never_learned is None else f"{told}, never learned: {self.never_learned}"


def summarise(scores: Float[np.ndarray, "seeds"], *, floor: float | None = 0.0, seed: int = 0) -> Summary:
    """All of it for one task. `floor` is the score of a policy that has learned nothing."""
    _check(scores[:, None])
    return Summary(
        seeds=len(scores),
        mean=float(scores.mean()),
        std=float(scores.std()),
        iqm=interval(scores[:, None], interquartile_mean, seed=seed),
        never_learned=None if floor is None else never_learned(scores, floor),
    )


def interquartile_mean(scores: Float[np.ndarray, "*batch seeds tasks"]) -> Float[np.ndarray, "*batch"]:
    """Mean of the middle half of all scores, seeds and tasks together: ⌊n/4⌋ are dropped from either end."""
    pooled = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    dropped = pooled.shape[-1] // 4
    return np.asarray(pooled[..., dropped : pooled.shape[-1] - dropped].mean(axis=-1))


def mean_score(scores: Float[np.ndarray, "*batch seeds tasks"]) -> Float[np.ndarray, "*batch"]:
    """Mean over tasks of the mean over seeds."""
    return np.asarray(scores.mean(axis=(-2, -1)))


def interval(
    scores: Float[np.ndarray, "seeds tasks"],
    statistic: Statistic,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """Stratified percentile bootstrap: each task's seeds are drawn again with replacement, by itself."""
    _check(scores)
    rng = np.random.default_rng(seed)
    n_seeds, n_tasks = scores.shape
    at_once = max(1, CELLS_AT_ONCE // scores.size)
    drawn = []
    for start in range(0, resamples, at_once):
        rows = rng.integers(n_seeds, size=(min(at_once, resamples - start), n_seeds, n_tasks))
        drawn.append(statistic(scores[rows, np.arange(n_tasks)]))
    return _estimate(float(statistic(scores)), np.concatenate(drawn), confidence)


def probability_of_improvement(
    scores: Float[np.ndarray, "seeds tasks"],
    baseline: Float[np.ndarray, "their_seeds their_tasks"],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """P(a seed of ours beats a seed of theirs on the same task), ties counting half, averaged over tasks.

    This is Mann and Whitney's U over the number of pairs. Both sides are resampled.
    """
    _check(scores)
    _check(baseline)
    if scores.shape[1] != baseline.shape[1]:
        raise ConfigError(
            "Both methods have to be scored on the same tasks.",
            found=f"{scores.shape[1]} and {baseline.shape[1]} tasks",
            expected="equal numbers, in the same order",
        )
    ours, theirs = scores.T[:, :, None], baseline.T[:, None, :]
    wins = (ours > theirs) + 0.5 * (ours == theirs)
    rng = np.random.default_rng(seed)
    n, m, tasks = len(scores), len(baseline), scores.shape[1]
    at_once = max(1, CELLS_AT_ONCE // (tasks * max(n, m)))
    drawn = []
    for start in range(0, resamples, at_once):
        # How often each seed is drawn is all that a mean over pairs can see.
        size = (min(at_once, resamples - start), tasks)
        our_draws = rng.multinomial(n, np.full(n, 1 / n), size=size)
        their_draws = rng.multinomial(m, np.full(m, 1 / m), size=size)
        drawn.append(
            np.einsum("rti,tij,rtj->r", our_draws, wins, their_draws, optimize=True) / (n * m * tasks)
        )
    return _estimate(float(wins.mean()), np.concatenate(drawn), confidence)


def never_learned(scores: Float[np.ndarray, "seeds *checkpoints"], floor: float = 0.0) -> int:
    """Seeds whose score never rose above the floor, at none of the checkpoints given."""
    return int(np.sum(scores.reshape(len(scores), -1).max(axis=1) <= floor))


def _estimate(value: float, drawn: np.ndarray, confidence: float) -> Estimate:
    tail = 50 * (1 - confidence)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Estimate(value, float(low), float(high))


def _check(scores: np.ndarray) -> None:
    if scores.size == 0:
        raise ConfigError(
            "No scores to summarise.", found=f"shape {scores.shape}", expected="at least one seed and task"
        )
    if not np.isfinite(scores).all():
        raise ConfigError(
            "A score is not finite.", found=scores[~np.isfinite(scores)][0], expected="finite scores"
        )
