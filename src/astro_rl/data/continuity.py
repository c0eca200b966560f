"""How large a step is too large: telling a teleport from fast motion without knowing the environment.

The figures below were chosen on data of OGBench's pointmaze, antmaze, cube and scene. There the limits find
every teleport, 98 in 100 unmarked resets and nothing else; of 20-step fragments laid end to end (one jump
in twenty steps) they find three quarters and more.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

MEDIANS, TAILS, TAIL = 10.0, 8.0, 0.95
"""A jump is larger than 10 median steps and than 8 times the 95th percentile. The median alone does not do:
the largest honest step is 1.6 medians for a point's position, 6 for an ant's, 26 for a quaternion's real
part."""
REST = 5e-4
"""Share of a column's spread below which a step counts as rest: contact solvers jitter."""


def jump_limits(
    steps: Float[np.ndarray, "steps columns"], values: Float[np.ndarray, "rows columns"]
) -> Float[np.ndarray, "columns"]:
    """For each column, the change from a row to the next beyond which it is a jump.

    A column has no limit (infinity) where a large step would be judged on no evidence: if it rests half of
    the time (objects, buttons), or sits in a narrow band and leaves it rarely (contacts).
    """
    limits = np.full(steps.shape[1], np.inf)
    if not len(steps):
        return limits
    lowest, low, high, highest = np.quantile(values.astype(np.float64), [0.001, 0.05, 0.95, 0.999], axis=0)
    spread = high - low
    for column, sizes in enumerate(np.abs(steps.astype(np.float64)).T):
        moving = sizes[sizes > REST * spread[column]]
        spread_out = spread[column] > 0.3 * (highest[column] - lowest[column])
        if spread_out and 2 * len(moving) >= len(sizes):
            limits[column] = max(TAILS * np.quantile(sizes, TAIL), MEDIANS * np.median(moving))
    return limits
