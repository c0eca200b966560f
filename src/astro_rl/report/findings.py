"""From scores to sentences. What a page claims is decided here, by rule, before anybody sees the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from astro_rl.evaluate.statistics import CONFIDENCE, RESAMPLES, Estimate, interval, mean_score
from astro_rl.report.story import PERCENT, RunStory, Scores

ENOUGH_SEEDS = 4
"""Fewer, and no difference is called clear: of two seeds the bootstrap has three means to draw, and an interval
without 0 may be chance."""

Verdict = Literal["gain", "loss", "none", "few"]


@dataclass(frozen=True)
class Comparison:
    """An arm against the first one, the baseline."""

    learner: str
    arm: str
    baseline: str
    seeds: tuple[int, int]
    """Of the arm, of the baseline."""
    means: tuple[float, float]
    difference: Estimate
    unit: str

    @property
    def verdict(self) -> Verdict:
        """`none`: the interval holds 0. `few`: it does not, but too few seeds stand behind it."""
        if self.difference.low <= 0 <= self.difference.high:
            return "none"
        if min(self.seeds) < ENOUGH_SEEDS:
            return "few"
        return "gain" if self.difference.value > 0 else "loss"


def mean_interval(scores: Float[np.ndarray, "seeds"]) -> Estimate:
    """Mean over seeds with its 95 % bootstrap interval."""
    return interval(np.asarray(scores, np.float64)[:, None], mean_score)


def difference_of_means(
    ours: Float[np.ndarray, "ours"], theirs: Float[np.ndarray, "theirs"], *, seed: int = 0
) -> Estimate:
    """Mean of `ours` minus mean of `theirs`; seeds are drawn again, each arm among its own (percentile bootstrap)."""
    rng = np.random.default_rng(seed)
    drawn = np.zeros(RESAMPLES)
    for scores, sign in ((ours, 1.0), (theirs, -1.0)):
        counts = rng.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), size=RESAMPLES)
        drawn += sign * (counts @ np.asarray(scores, np.float64)) / len(scores)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Estimate(float(np.mean(ours) - np.mean(theirs)), float(low), float(high))


def compare(scores: Scores) -> tuple[Comparison, ...]:
    """Every arm but the first against the first."""
    (baseline, theirs), *others = scores.arms.items()
    return tuple(
        Comparison(
            learner=scores.learner,
            arm=arm,
            baseline=baseline,
            seeds=(len(ours), len(theirs)),
            means=(float(np.mean(ours)), float(np.mean(theirs))),
            difference=difference_of_means(ours, theirs),
            unit=scores.unit,
        )
        for arm, ours in others
    )


def sentence(found: Comparison) -> str:
    """The comparison in words, with its figures."""
    number = _formats(found.unit)
    difference = found.difference
    figures = (
        f"{number(found.means[1])} with {found.baseline}, {number(found.means[0])} with {found.arm}; difference "
        f"{signed(difference.value)}, 95 % interval {signed(difference.low)} to {signed(difference.high)}; "
        f"{_seeds(found.seeds)}"
    )
    learner = found.learner.upper()
    told: Mapping[Verdict, str] = {
        "gain": f"{learner} scores clearly higher with {found.arm} data: {figures}.",
        "loss": f"{learner} scores clearly lower with {found.arm} data: {figures}.",
        "none": f"{learner}: no clear difference. {figures[0].upper() + figures[1:]}. The interval includes 0.",
        "few": (
            f"{learner} scores {'higher' if difference.value > 0 else 'lower'} with {found.arm} data, but "
            f"{min(found.seeds)} seed{'s are' if min(found.seeds) != 1 else ' is'} too few to call it: {figures}."
        ),
    }
    return told[found.verdict]


def headline(story: RunStory) -> str:
    """What was done, in one line."""
    fragments = f"{story.original.trajectories:,} recorded fragments"
    if story.augmented is None:
        return f"{fragments}, {story.original.transitions:,} transitions"
    by = "" if story.method == "ASTRO" else f" by {story.method}"
    if story.generated is not None:
        return f"{story.augmented.transitions:,} transitions generated{by}, fitted to {fragments}"
    longer = "longer " if story.augmented.median > story.original.median else ""
    return f"{story.augmented.trajectories:,} {longer}trajectories stitched{by} from {fragments}"


def standing(story: RunStory) -> str:
    """How many seeds stand behind the page, and whether they are enough to claim anything."""
    if not story.scores:
        return "No learner was evaluated for this page. It shows data, and claims nothing about scores."
    seeds = min(len(arm) for scores in story.scores for arm in scores.arms.values())
    told = f"{seeds} seed{'s stand' if seeds != 1 else ' stands'} behind each score"
    if len({len(arm) for scores in story.scores for arm in scores.arms.values()}) > 1:
        told = f"At least {told}"
    if seeds < ENOUGH_SEEDS:
        return f"{told}: too few to claim anything. Read the scores as an example, not as evidence."
    if not comparisons(story):
        return f"{told}. There is one arm only, so nothing is compared."
    clear = sum(found.verdict in ("gain", "loss") for found in comparisons(story))
    total = len(comparisons(story))
    return (
        f"{told}, enough to call a difference clear where its 95 % interval leaves out 0: "
        f"{clear} of {total} comparison{'s' if total != 1 else ''}."
    )


def comparisons(story: RunStory) -> tuple[Comparison, ...]:
    return tuple(found for scores in story.scores for found in compare(scores))


def limits(story: RunStory) -> tuple[str, ...]:
    """What follows from the number of seeds and episodes, then what the run itself has to say."""
    told = []
    if story.scores:
        seeds = min(len(arm) for scores in story.scores for arm in scores.arms.values())
        episodes = min(scores.episodes for scores in story.scores)
        one = seeds == 1
        if seeds < ENOUGH_SEEDS:
            told.append(
                f"{seeds} seed{' is' if one else 's are'} too few for a conclusion: with fewer than {ENOUGH_SEEDS} "
                "this page calls no difference clear, whatever the figures."
            )
        elif seeds < 8:
            told.append(
                f"Bootstrap intervals from {seeds} seeds are too narrow as a rule. Eight seeds or more are better."
            )
        told.append(
            f"A score is the mean of {episodes} episode{'s' if episodes != 1 else ''}. Its own chance is part of the "
            "spread between seeds."
        )
        told.append("One task stands behind these scores. They say nothing about others.")
    return (*told, *story.limits)


def signed(value: float) -> str:
    """+3.1 or −3.1, with a minus sign; no sign for what rounds to 0."""
    text = f"{abs(value):.1f}"
    return text if text == "0.0" else ("+" if value > 0 else "−") + text


def shown(value: float, unit: str) -> str:
    return _formats(unit)(value)


def _formats(unit: str):
    return (lambda value: f"{_plain(value)} %") if unit == PERCENT else _plain


def _plain(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _seeds(seeds: tuple[int, int]) -> str:
    if seeds[0] == seeds[1]:
        return f"{seeds[0]} seed{'s' if seeds[0] != 1 else ''} each"
    return f"{seeds[0]} seeds against {seeds[1]}"
