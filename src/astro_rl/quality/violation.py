"""Appendix C's dynamics violation rate: whether any of n random actions takes the simulator from s to near s'.

    V(s, s') = 1 where ‖f(s, a_i) − s'‖ > δ for every a_i; the rate is the mean of V over stitched transitions

Taken literally it condemns real data: in eight dimensions no random action comes near the one that was taken. So n, δ,
where actions are drawn from and which numbers are compared are calibrated on real transitions: for every choice, δ is
the quantile that leaves a given share of them in violation, and the choice is kept that catches most *skips*, the same
real states with the state after next in place of the next. What the calibration scores on other real transitions is
reported with it. A transition's own action is not used: the metric judges pairs of states.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.quality.replay import replay_steps
from astro_rl.quality.truth import differences, groups_of, known_rows
from astro_rl.quality.workers import Progress
from astro_rl.tasks.task import Task

Actions = Literal["box", "data"]
"""Uniform over the action space, or drawn from the actions of real data."""

POOL = 20_000
REAL_RATE = 0.01
"""δ leaves this share of calibration rows in violation, so that other rows stay below the 2 % that are asked for."""


@dataclass(frozen=True)
class Calibration:
    """n, δ and the subspace, with what they score on real transitions that they were not chosen on."""

    samples: int
    """n."""
    threshold: float
    """δ, in typical (root mean square) steps of each number, root mean square over the numbers compared."""
    compares: tuple[str, ...]
    """Groups of numbers: the state's subspace in which s' has to be met."""
    actions: Actions
    real_rate: float
    """Violation rate of held-out real transitions."""
    skip_rate: float
    """Violation rate of the same with a step left out: what the metric is able to see."""
    rows: int
    """Transitions on which δ was set, and as many on which both rates were measured."""
    sigma: tuple[float, ...]
    """Typical change of each number in a step."""
    pool: np.ndarray = field(repr=False, compare=False)
    """Real actions to draw from."""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "pool"}


@dataclass(frozen=True)
class Violations:
    """What augmented data scores. Rates are None where there is no such transition."""

    calibration: dict[str, Any]
    rows: int
    stitched: float | None
    """Of transitions with a generated end: the paper's figure."""
    by_kind: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def calibrate(
    real: Dataset,
    task: Task,
    *,
    rows: int = 600,
    samples: tuple[int, ...] = (8, 32, 128),
    seed: int = 0,
    workers: int | None = 0,
    progress: Progress | None = None,
) -> Calibration:
    """Two `rows` real transitions are tried with up to max(`samples`) actions of either source."""
    if rows < 50 or min(samples) < 1:
        raise ConfigError(
            "Too few rows or actions to calibrate on.",
            field="rows, samples",
            found=f"{rows}, {samples}",
            expected="rows >= 50, samples >= 1",
        )
    generator = np.random.default_rng(seed)
    leaving = np.concatenate(
        [np.arange(a, b - 2) for a, b in zip(real.offsets[:-1], real.offsets[1:], strict=True)]
    )
    if len(leaving) < 2 * rows:
        raise DataError(
            "Too little real data to calibrate on.",
            found=f"{len(leaving)} rows with two successors",
            expected=f">= {2 * rows}",
        )
    chosen = generator.choice(leaving, 2 * rows, replace=False)
    sigma = _typical(real)
    transitions = real.transition_rows()
    pool = np.asarray(
        real.actions[np.sort(generator.choice(transitions, min(POOL, len(transitions)), replace=False))]
    )
    groups = groups_of(task)
    names = list(groups)
    subspaces = [tuple(names[:count]) for count in range(1, len(names) + 1)]
    best, most_seen = None, -1.0
    sources: tuple[Actions, ...] = ("box", "data")
    for number, source in enumerate(sources):
        drawn = _draw(source, pool, (2 * rows, max(samples)), task, generator)
        met = _met(real, chosen, drawn, task, workers)
        following, skipped = (np.asarray(real.observations[chosen + ahead]) for ahead in (1, 2))
        for compares in subspaces:
            numbers = np.concatenate([groups[name] for name in compares])
            to_next = _distances(task, met, following, sigma, numbers)
            to_skip = _distances(task, met, skipped, sigma, numbers)
            for count in samples:
                own, skip = to_next[:, :count].min(axis=1), to_skip[:, :count].min(axis=1)
                threshold = float(np.quantile(own[:rows], 1 - REAL_RATE))
                seen = float((skip[:rows] > threshold).mean())
                if seen <= most_seen:
                    continue
                most_seen = seen
                best = Calibration(
                    samples=count,
                    threshold=threshold,
                    compares=compares,
                    actions=source,
                    real_rate=float((own[rows:] > threshold).mean()),
                    skip_rate=float((skip[rows:] > threshold).mean()),
                    rows=rows,
                    sigma=tuple(float(value) for value in sigma),
                    pool=pool,
                )
        if progress is not None:
            progress(number + 1, len(sources))
    assert best is not None
    return best


def violation_rate(
    dataset: Dataset,
    task: Task,
    calibration: Calibration,
    *,
    rows: int = 1000,
    seed: int = 0,
    workers: int | None = 0,
) -> Violations:
    """Up to `rows` transitions with a generated end, in the proportions in which their kinds occur."""
    known, leaving = known_rows(dataset), dataset.transition_rows()
    left, entered = known[leaving], known[leaving + 1]
    stitched = leaving[~(left & entered)]
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(stitched, min(rows, len(stitched)), replace=False))
    if not len(chosen):
        return Violations(calibration.as_json(), 0, None, {})
    violates = violations(dataset, chosen, task, calibration, generator, workers)
    kinds = {
        "generated": ~known[chosen] & ~known[chosen + 1],
        "into gap": known[chosen] & ~known[chosen + 1],
        "out of gap": ~known[chosen] & known[chosen + 1],
    }
    return Violations(
        calibration.as_json(),
        len(chosen),
        float(violates.mean()),
        {name: float(violates[kind].mean()) for name, kind in kinds.items() if kind.any()},
    )


def violations(
    dataset: Dataset,
    rows: Int[np.ndarray, "rows"],
    task: Task,
    calibration: Calibration,
    generator: np.random.Generator,
    workers: int | None = 0,
) -> np.ndarray:
    """V of each transition that leaves one of the rows."""
    drawn = _draw(calibration.actions, calibration.pool, (len(rows), calibration.samples), task, generator)
    met = _met(dataset, rows, drawn, task, workers)
    groups = groups_of(task)
    numbers = np.concatenate([groups[name] for name in calibration.compares])
    following = np.asarray(dataset.observations[rows + 1])
    distances = _distances(task, met, following, np.array(calibration.sigma), numbers)
    return distances.min(axis=1) > calibration.threshold


def _typical(real: Dataset) -> Float[np.ndarray, "obs"]:
    rows = real.transition_rows()
    rows = rows[:: max(1, len(rows) // 100_000)]
    change = real.observations[rows + 1].astype(np.float64) - real.observations[rows]
    sigma = np.sqrt(np.square(change).mean(axis=0))
    return np.where(sigma > 0, sigma, 1.0)


def _draw(
    source: Actions, pool: np.ndarray, shape: tuple[int, int], task: Task, generator: np.random.Generator
) -> np.ndarray:
    if source == "box":
        return generator.uniform(-1.0, 1.0, (*shape, task.action_dim))
    return pool[generator.integers(len(pool), size=shape)]


def _met(
    dataset: Dataset, rows: np.ndarray, drawn: np.ndarray, task: Task, workers: int | None
) -> np.ndarray:
    count = drawn.shape[1]
    states = np.repeat(np.asarray(dataset.observations[rows]), count, axis=0)
    met = replay_steps(task, states, drawn.reshape(-1, drawn.shape[-1]), workers=workers)
    return met.reshape(len(rows), count, -1)


def _distances(
    task: Task, met: np.ndarray, target: np.ndarray, sigma: np.ndarray, numbers: np.ndarray
) -> Float[np.ndarray, "rows samples"]:
    rows, count, width = met.shape
    apart = differences(task, met.reshape(-1, width), np.repeat(target, count, axis=0))
    scaled = apart[:, numbers] / sigma[numbers]
    return np.sqrt(np.square(scaled).mean(axis=1)).reshape(rows, count)
