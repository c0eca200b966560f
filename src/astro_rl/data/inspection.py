"""What there is to know about a dataset before training on it. Printing is the command line's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from astro_rl.data import inspection_scan
from astro_rl.data.inspection_result import (
    ColumnRange,
    Discontinuities,
    Ends,
    Histogram,
    Idleness,
    Inspection,
    Jump,
    Lengths,
    StoredColumn,
    TaskSuccess,
)
from astro_rl.data.inspection_scan import Moments, Scan, Successes
from astro_rl.data.schema import Dataset

__all__ = ["Inspection", "inspect_dataset"]

LENGTH_BINS, REWARD_BINS = 10, 20


def inspect_dataset(
    dataset: Dataset,
    *,
    task_successes: Successes | None = None,
    position_columns: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Look at every row once (rewards twice), in blocks: a dataset larger than memory is fine.

    `task_successes` maps task names to functions that say in which observations the goal is met.
    `position_columns` are the observation columns to judge jumps and idling by; without them, those that
    behave like positions are found.
    """
    scales = inspection_scan.sample_scales(dataset, position_columns)
    found = inspection_scan.scan(dataset, scales, task_successes or {}, progress)
    names = [f"observations[{number}]" for number in range(dataset.observation_dim)]
    observations = _ranges(found.observations, names)
    transitions = dataset.n_transitions
    columns = dataset.columns()
    return Inspection(
        trajectories=dataset.n_trajectories,
        transitions=transitions,
        rows=dataset.n_rows,
        lengths=_lengths(dataset.lengths),
        columns=tuple(StoredColumn(name, str(c.dtype), c.shape, c.nbytes) for name, c in columns.items()),
        bytes=dataset.nbytes,
        observations=observations,
        actions=_ranges(found.actions, [f"actions[{number}]" for number in range(dataset.action_dim)]),
        rewards=None if dataset.rewards is None else _ranges(found.rewards, ["rewards"])[0],
        reward_histogram=_reward_histogram(dataset, found),
        ends=_ends(dataset),
        successes=tuple(
            TaskSuccess(task, found.success_rows[task], found.success_trajectories[task])
            for task in task_successes or {}
        ),
        discontinuities=Discontinuities(
            found.jumps,
            found.jumping_trajectories,
            tuple(
                Jump(number, step, names[c], before, after)
                for number, step, c, before, after in found.first_jumps
            ),
            tuple(names[c] for c in np.flatnonzero(np.isfinite(scales.jump))),
        ),
        idleness=Idleness(
            found.idle_rows / transitions,
            found.tail_rows / transitions,
            scales.window,
            tuple(names[c] for c in scales.slow),
        )
        if len(scales.slow)
        else None,
        actions_at_bounds=found.bound_rows / transitions,
        actions_at_bounds_by_dimension=tuple((np.asarray(found.bound_values) / transitions).tolist()),
        constant_columns=tuple(column.name for column in observations if column.low == column.high),
        duplicated_columns=tuple(
            tuple(names[c] for c in group)
            for group in inspection_scan.same_columns(dataset, found.observations)
        ),
        info=dict(dataset.info),
    )


def _ranges(moments: Moments, names: Sequence[str]) -> tuple[ColumnRange, ...]:
    parts = zip(
        *(np.asarray(part).tolist() for part in (moments.low, moments.high, moments.mean, moments.std)),
        strict=True,
    )
    return tuple(ColumnRange(name, *part) for name, part in zip(names, parts, strict=True))


def _lengths(lengths: np.ndarray) -> Lengths:
    low, high = int(lengths.min()), int(lengths.max())
    bins = min(LENGTH_BINS, high - low + 1)
    edges, counts = inspection_scan.histogram(iter([lengths]), float(low), float(high), bins)
    return Lengths(
        low,
        float(np.median(lengths)),
        float(lengths.mean()),
        high,
        Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
    )


def _reward_histogram(dataset: Dataset, found: Scan) -> Histogram | None:
    rewards = dataset.rewards
    if rewards is None:
        return None
    if found.distinct_rewards is not None:
        values = sorted(found.distinct_rewards)
        return Histogram(tuple(values), tuple(found.distinct_rewards[value] for value in values))

    def on_transitions() -> Iterator[np.ndarray]:
        for start, stop in inspection_scan.blocks_of(dataset):
            ends = dataset.end_rows[
                np.searchsorted(dataset.end_rows, start) : np.searchsorted(dataset.end_rows, stop)
            ]
            yield np.delete(rewards[start:stop], ends - start)

    low, high = (float(np.asarray(bound)[0]) for bound in (found.rewards.low, found.rewards.high))
    edges, counts = inspection_scan.histogram(on_transitions(), low, high, REWARD_BINS)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def _ends(dataset: Dataset) -> Ends:
    last = dataset.end_rows - 1
    terminated, truncated = dataset.terminated[last], dataset.truncated[last]
    return Ends(
        terminated=int(np.count_nonzero(dataset.terminated)),
        terminated_at_end=int(np.count_nonzero(terminated)),
        truncated=int(np.count_nonzero(dataset.truncated)),
        truncated_at_end=int(np.count_nonzero(truncated)),
        unflagged=int(np.count_nonzero(~(terminated | truncated))),
    )
