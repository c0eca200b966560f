"""The passes over a dataset that an inspection makes: block by block, so that a memory map is never in
memory whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.data.columns import rows_per_chunk
from astro_rl.data.continuity import jump_limits
from astro_rl.data.schema import Dataset

SAMPLE_ROWS, SAMPLE_BLOCKS = 32_768, 32
IDLE_WINDOW, IDLE_SHARE, SLOW_RATIO = 20, 1 / 3, 3.0
AT_BOUND = 1 - 1e-6
FIRST_FEW = 10
DISTINCT_REWARDS = 20

Successes = Mapping[str, Callable[[Float[np.ndarray, "rows obs"]], Bool[np.ndarray, "rows"]]]
"""For each task, whether its goal is met in each of the given observations."""


@dataclass
class Moments:
    """Lowest, highest, mean and spread of columns, gathered block by block (Chan's update, in float64)."""

    count: int = 0
    low: np.ndarray | float = np.inf
    high: np.ndarray | float = -np.inf
    mean: np.ndarray | float = 0.0
    squares: np.ndarray | float = 0.0

    def add(self, block: Float[np.ndarray, "rows columns"]) -> None:
        if not len(block):
            return
        values = block.astype(np.float64)
        count, mean = len(values), values.mean(axis=0)
        squares = ((values - mean) ** 2).sum(axis=0)
        total = self.count + count
        gap = mean - self.mean
        self.squares = self.squares + squares + gap**2 * (self.count * count / total)
        self.mean = self.mean + gap * (count / total)
        self.low, self.high = (
            np.minimum(self.low, values.min(axis=0)),
            np.maximum(self.high, values.max(axis=0)),
        )
        self.count = total

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(np.asarray(self.squares) / max(self.count, 1))


@dataclass(frozen=True)
class Scales:
    """What is normal for this data, estimated from a sample of it."""

    jump: Float[np.ndarray, "columns"]
    """Per observation column, the step beyond which it is a jump."""
    window: int
    """Steps over which a displacement is measured for telling idling from motion."""
    slow: Int[np.ndarray, "slow"]
    """Columns that travel: over a window they get at least three times as far as in a step (positions, not
    velocities)."""
    travel: Float[np.ndarray, "slow"]
    """How far they get in a window, root mean square."""


@dataclass
class Scan:
    """What one pass over the rows finds."""

    observations: Moments = field(default_factory=Moments)
    actions: Moments = field(default_factory=Moments)
    rewards: Moments = field(default_factory=Moments)
    distinct_rewards: dict[float, int] | None = field(default_factory=dict)
    """How often each reward occurs, None once there are too many different ones."""
    bound_rows: int = 0
    bound_values: np.ndarray | int = 0
    idle_rows: int = 0
    tail_rows: int = 0
    jumps: int = 0
    jumping_trajectories: int = 0
    first_jumps: list[tuple[int, int, int, float, float]] = field(default_factory=list)
    """Trajectory, step, column, value before and value after."""
    success_rows: dict[str, int] = field(default_factory=dict)
    success_trajectories: dict[str, int] = field(default_factory=dict)


def sample_scales(dataset: Dataset, positions: Sequence[int] | None) -> Scales:
    """Look at up to 32,768 rows in 32 stretches spread over the dataset; always the same ones."""
    observations, rows = dataset.observations, dataset.n_rows
    window = int(min(IDLE_WINDOW, max(1, np.median(dataset.lengths) // 2)))
    ends = dataset.end_rows
    length = max(SAMPLE_ROWS // SAMPLE_BLOCKS, window + 2)
    starts = (
        np.linspace(0, max(0, rows - length), SAMPLE_BLOCKS).astype(np.int64) if rows > SAMPLE_ROWS else [0]
    )
    length = length if rows > SAMPLE_ROWS else rows
    values, steps, travels = [], [], []
    for start in starts:
        block = np.asarray(observations[start : start + length], dtype=np.float64)
        values.append(block)
        for distance, found in ((1, steps), (window, travels)):
            # The number of end rows before each row tells whether two rows are of one trajectory.
            numbers = np.searchsorted(ends, np.arange(start, start + len(block)))
            same = numbers[distance:] == numbers[: len(block) - distance]
            found.append((block[distance:] - block[: len(block) - distance])[same])
    step, travel = np.concatenate(steps), np.concatenate(travels)
    limits = jump_limits(step, np.concatenate(values))
    one, many = (np.sqrt((d**2).mean(axis=0)) if len(d) else np.zeros(d.shape[1]) for d in (step, travel))
    slow = np.flatnonzero((many > 0) & (many >= SLOW_RATIO * one))
    if positions is not None:
        watched = np.isin(np.arange(len(limits)), list(positions))
        limits[~watched] = np.inf
        slow = np.flatnonzero(watched & (many > 0))
    return Scales(limits, window, slow, many[slow])


def blocks_of(dataset: Dataset) -> Iterator[tuple[int, int]]:
    step = rows_per_chunk(dataset.observations.dtype, dataset.observations.shape)
    return ((start, min(start + step, dataset.n_rows)) for start in range(0, dataset.n_rows, step))


def scan(
    dataset: Dataset, scales: Scales, successes: Successes, progress: Callable[[int, int], None] | None
) -> Scan:
    """Everything that one pass over all rows can tell."""
    found = Scan()
    last_moving = dataset.offsets[:-1] - 1
    jumped = np.zeros(len(dataset), dtype=bool)
    reached = {name: np.zeros(len(dataset), dtype=bool) for name in successes}
    for start, stop in blocks_of(dataset):
        rows = np.arange(start, stop)
        numbers = np.searchsorted(dataset.offsets, rows, side="right") - 1
        leaves = rows != dataset.offsets[numbers + 1] - 1
        low, high = max(0, start - scales.window), min(dataset.n_rows, stop + scales.window + 1)
        near = np.asarray(dataset.observations[low:high])
        block = near[start - low : stop - low]
        found.observations.add(block)
        _scan_actions(found, np.asarray(dataset.actions[start:stop])[leaves])
        if dataset.rewards is not None:
            _scan_rewards(found, np.asarray(dataset.rewards[start:stop])[leaves])
        for name, success in successes.items():
            met = np.asarray(success(block), dtype=bool)
            found.success_rows[name] = found.success_rows.get(name, 0) + int(met.sum())
            reached[name][numbers[met]] = True
        moves, owners = rows[leaves], numbers[leaves]
        _scan_jumps(found, dataset, scales, near, low, moves, owners, jumped)
        if len(scales.slow):
            idle = _idle(dataset, scales, near, low, moves, owners)
            found.idle_rows += int(idle.sum())
            np.maximum.at(last_moving, owners[~idle], moves[~idle])
        if progress is not None:
            progress(stop, dataset.n_rows)
    found.tail_rows = int((dataset.end_rows - 1 - last_moving).sum()) if len(scales.slow) else 0
    found.jumping_trajectories = int(jumped.sum())
    found.success_trajectories = {name: int(flags.sum()) for name, flags in reached.items()}
    return found


def _scan_actions(found: Scan, actions: np.ndarray) -> None:
    found.actions.add(actions)
    at_bound = np.abs(actions) >= AT_BOUND
    found.bound_rows += int(at_bound.any(axis=1).sum())
    found.bound_values = found.bound_values + at_bound.sum(axis=0)


def _scan_rewards(found: Scan, rewards: np.ndarray) -> None:
    found.rewards.add(rewards[:, None])
    if found.distinct_rewards is None:
        return
    values, counts = np.unique(rewards, return_counts=True)
    for value, count in zip(values[: DISTINCT_REWARDS + 1].tolist(), counts.tolist(), strict=False):
        found.distinct_rewards[value] = found.distinct_rewards.get(value, 0) + count
    if len(found.distinct_rewards) > DISTINCT_REWARDS:
        found.distinct_rewards = None


def _scan_jumps(
    found: Scan,
    dataset: Dataset,
    scales: Scales,
    near: np.ndarray,
    low: int,
    moves: np.ndarray,
    owners: np.ndarray,
    jumped: np.ndarray,
) -> None:
    watched = np.flatnonzero(np.isfinite(scales.jump))
    before = near[moves - low][:, watched].astype(np.float64)
    after = near[moves + 1 - low][:, watched].astype(np.float64)
    excess = np.abs(after - before) / scales.jump[watched]
    hits = np.flatnonzero((excess > 1).any(axis=1)) if len(watched) else np.zeros(0, dtype=np.int64)
    found.jumps += len(hits)
    jumped[owners[hits]] = True
    for hit in hits[: FIRST_FEW - len(found.first_jumps)]:
        column = int(excess[hit].argmax())
        number = int(owners[hit])
        step = int(moves[hit] - dataset.offsets[number])
        values = float(before[hit, column]), float(after[hit, column])
        found.first_jumps.append((number, step, int(watched[column]), *values))


def _idle(
    dataset: Dataset, scales: Scales, near: np.ndarray, low: int, moves: np.ndarray, owners: np.ndarray
) -> np.ndarray:
    """Whether a transition lies in a window in which no slow column gets anywhere.

    A point that hovers over its goal moves at every step, under action noise even at full speed: only the
    net displacement over some time tells that it stays. The window is centred on the transition and shifted
    inwards at a trajectory's ends; in a shorter trajectory it is the whole of it.
    """
    first, last = dataset.offsets[owners], dataset.offsets[owners + 1] - 1
    span = np.minimum(scales.window, last - first)
    begin = np.clip(moves - scales.window // 2, first, last - span)
    travelled = (
        near[begin + span - low][:, scales.slow].astype(np.float64) - near[begin - low][:, scales.slow]
    )
    normal = scales.travel * (span / scales.window)[:, None]
    return np.all(np.abs(travelled) < IDLE_SHARE * normal, axis=1)


def same_columns(dataset: Dataset, moments: Moments) -> list[list[int]]:
    """Groups of observation columns that are equal in every row (constant ones aside)."""
    keys = np.stack(
        [np.asarray(part) for part in (moments.low, moments.high, moments.mean, moments.std)], axis=1
    )
    groups: dict[bytes, list[int]] = {}
    for column, key in enumerate(keys):
        if key[0] != key[1]:
            groups.setdefault(key.tobytes(), []).append(column)
    candidates = [group for group in groups.values() if len(group) > 1]
    equal = {(group[0], other): True for group in candidates for other in group[1:]}
    for start, stop in blocks_of(dataset) if equal else ():
        block = np.asarray(dataset.observations[start:stop])
        for left, right in [pair for pair, still in equal.items() if still]:
            equal[left, right] = bool(np.array_equal(block[:, left], block[:, right]))
    found = [[group[0], *(other for other in group[1:] if equal[group[0], other])] for group in candidates]
    return [group for group in found if len(group) > 1]


def histogram(
    values: Iterator[np.ndarray], low: float, high: float, bins: int
) -> tuple[Float[np.ndarray, "edges"], Int[np.ndarray, "bins"]]:
    edges = np.linspace(low, high, bins + 1) if high > low else np.array([low, high])
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for block in values:
        if high > low:
            counts += np.histogram(block, edges)[0]
        else:
            counts[0] += len(block)
    return edges, counts
