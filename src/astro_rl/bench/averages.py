"""What the paper makes of a table of scores: two averages and three regimes, for its own figures and for ours alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from astro_rl.bench import paper
from astro_rl.tasks import get_task

Pairs = Mapping[tuple[str, str, str], tuple[float, float]]
"""(task, learner, arm) to the original's mean and the arm's, in percent, over the same seeds."""
Group = Literal["maze", "manipulation", "d4rl"]
GROUPS: tuple[Group, ...] = ("maze", "manipulation", "d4rl")
REGIMES = ("low", "moderate", "high")
REGIME_BOUNDS = (20.0, 80.0)


@dataclass(frozen=True)
class Average:
    """One arm's average beside that of the original data, over the same cells."""

    name: str
    learner: str
    """`both`, or one learner."""
    arm: str
    before: float
    after: float
    cells: int

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def percent(self) -> float | None:
        """None where there was nothing to gain on."""
        return 100 * self.gain / self.before if self.before else None


def group_of(task: str) -> Group:
    """The block of table 1 that a task belongs to; a task without a plane is manipulation."""
    if task in GROUPS:
        return task
    known = get_task(task)
    if known.suite == "d4rl":
        return "d4rl"
    return "maze" if known.xy_indices is not None else "manipulation"


def paper_pairs() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Table 1: the eight OGBench tasks, and D4RL's average as one task, which is all that is printed of it."""
    derived = ("maze", "manipulation", "total")
    rows = [one for one in paper.FIGURES if one.table == "astro" and one.row not in derived]
    printed = {(one.row, str(one.learner), one.column): one.value for one in rows}
    return {
        (task, learner, arm): (printed[task, learner, "original"], value)
        for (task, learner, arm), value in printed.items()
        if arm != "original"
    }


def _of(pairs: Pairs, arm: str, learner: str | None = None) -> dict[str, list[tuple[float, float]]]:
    """Task to its pairs: one a learner."""
    found: dict[str, list[tuple[float, float]]] = {}
    for (task, by, own), pair in pairs.items():
        if own == arm and learner in (None, by):
            found.setdefault(task, []).append(pair)
    return found


def mean_of_cells(pairs: Pairs, arm: str) -> Average | None:
    """“+32.7 %”: tasks × learners, OGBench's alone."""
    found = [pair for task, own in _of(pairs, arm).items() if group_of(task) != "d4rl" for pair in own]
    return _average("OGBench tasks × learners", "both", arm, found)


def mean_of_groups(pairs: Pairs, arm: str, learner: str) -> Average | None:
    """“+26.2 %” (IQL): the mean of the groups' means, so that a group weighs the same however many tasks it has."""
    own = _of(pairs, arm, learner)
    by_group = {
        group: [pair for task, each in own.items() if group_of(task) == group for pair in each]
        for group in GROUPS
    }
    means = [tuple(fmean(side) for side in zip(*found, strict=True)) for found in by_group.values() if found]
    names = ", ".join(group for group, found in by_group.items() if found)
    return _average(f"mean of groups ({names})", learner, arm, means)


def regime_of(original: float) -> str:
    low, high = REGIME_BOUNDS
    return "low" if original < low else "high" if original > high else "moderate"


def regime_averages(
    pairs: Pairs, arm: str, learner: str, originals: Mapping[str, float] | None = None
) -> list[Average]:
    """Tasks by what the original data scores on them: below 20, 20 to 80, above 80. All of them count. `originals`:
    that score by task, where the pairs are over fewer seeds than it."""
    scored = originals or {}
    own = [
        (regime_of(scored.get(task, pair[0])), pair)
        for task, each in _of(pairs, arm, learner).items()
        for pair in each
    ]
    found = [
        _average(regime, learner, arm, [pair for name, pair in own if name == regime]) for regime in REGIMES
    ]
    return [average for average in found if average is not None]


def arms_of(names: Iterable[tuple[str, str, str]]) -> list[str]:
    """Arms in the order of the paper's tables, others behind them."""
    known = list(dict.fromkeys((*paper.ARMS, *paper.ABLATION_ARMS)))
    present = list(dict.fromkeys(arm for _, _, arm in names))
    return [arm for arm in known if arm in present] + [arm for arm in present if arm not in known]


def _average(name: str, learner: str, arm: str, pairs: Sequence[tuple[float, ...]]) -> Average | None:
    if not pairs:
        return None
    return Average(
        name, learner, arm, fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs), len(pairs)
    )
