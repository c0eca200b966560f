"""What each state of the dataset is worth, and which states stitches lead from and to.

    g_t = r_t + γ (1 − terminated_t) g_{t+1},   g beyond a recording's end = r_last / (1 − γ)                (6)

A recording that was cut off is worth what it would be if its last reward went on: stopping the sum there, as the
authors do on locomotion's thousand steps, would make every state near a fragment's end look good where steps cost 1.

    score = rank of g (0 the lowest, 1 the highest, equal ones alike) + ν z,   z ~ N(0, 1), anew for each batch  (7)

Sources are drawn from the lowest scores, targets from the highest: low to high. Where rewards are sparse nearly all g
are equal and the few that are not would be all targets there are; the noise ν balances both pools. Ranks, because in
units of their spread the few lie so far out that no noise reaches them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from astro_rl.data.schema import Dataset


def returns_to_go(dataset: Dataset, discount: float) -> Float[np.ndarray, "rows"]:
    """g of every row by (6); 0 everywhere without rewards. All trajectories are summed at once, from their ends."""
    worth = np.zeros(dataset.n_rows)
    if dataset.rewards is None:
        return worth
    rewards = np.asarray(dataset.rewards, np.float64)
    goes_on = discount * ~np.asarray(dataset.terminated)
    ends, lengths = np.asarray(dataset.end_rows), np.asarray(dataset.lengths)
    moving = lengths > 0
    ends, lengths = ends[moving], lengths[moving]
    last = ends - 1
    worth[ends] = np.where(goes_on[last] > 0, rewards[last] / (1 - discount), 0.0)
    # The longest first: those that still have steps left are always the leading ones.
    order = np.argsort(-lengths, kind="stable")
    ends, lengths = ends[order], lengths[order]
    for back in range(1, int(lengths[0]) + 1 if len(lengths) else 1):
        here = ends[: np.searchsorted(-lengths, -back, side="right")] - back
        worth[here] = rewards[here] + goes_on[here] * worth[here + 1]
    return worth


def gap_returns(
    rewards: Float[np.ndarray, "steps"],
    terminated: np.ndarray,
    target_worth: float,
    discount: float,
) -> float:
    """g of the state that a gap starts from: its rewards by (6), then the target's own g."""
    worth = target_worth
    for reward, ended in zip(rewards[::-1].tolist(), terminated[::-1].tolist(), strict=True):
        worth = reward + (0.0 if ended else discount * worth)
    return worth


def ranks(worth: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "rows"]:
    """From 0 to 1; what differs by rounding alone has the middle rank of its equals."""
    unit = 1e-9 * max(1.0, float(np.abs(worth).max(initial=0.0)))
    _, place, count = np.unique(np.round(worth / unit), return_inverse=True, return_counts=True)
    return ((np.cumsum(count) - 0.5 * count) / len(worth))[place]


def pools(
    scores: Float[np.ndarray, "rows"],
    sources: Int[np.ndarray, "sources"],
    targets: Int[np.ndarray, "targets"],
    noise: Float[np.ndarray, "rows"],
    *,
    source_share: float,
    target_share: float,
) -> tuple[Int[np.ndarray, "low"], Int[np.ndarray, "high"]]:
    """The rows of `sources` with the lowest, and of `targets` with the highest scores by (7), at least one each."""
    noisy = scores + noise
    low, high = max(1, round(source_share * len(sources))), max(1, round(target_share * len(targets)))
    lowest = np.argpartition(noisy[sources], low - 1)[:low]
    highest = np.argpartition(-noisy[targets], high - 1)[:high]
    # Partitions come in no order that could be relied on; the rows' own order is.
    return sources[np.sort(lowest)], targets[np.sort(highest)]
