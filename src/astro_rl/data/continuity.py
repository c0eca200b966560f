"""How large a step is too large: telling a teleport from fast motion without knowing the environment."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

LEAST_MULTIPLE, GREATEST_MULTIPLE, TAIL_MULTIPLE = 10.0, 40.0, 5.0


def jump_limits(steps: Float[np.ndarray, "steps columns"]) -> Float[np.ndarray, "columns"]:
    """For each column, the absolute change between two consecutive rows beyond which it is a jump.

    Five times the 99th percentile, held between 10 and 40 times the median of the steps that move at all. A
    multiple of the median alone does not do: on OGBench's data the largest honest step is 1.6 medians for a
    point's position, 6 for an ant's, 26 for a quaternion's real part. The percentile follows these tails;
    its upper bound keeps data in which more than one step in a hundred is a jump from calling jumps normal.

    A column that never moves has no limit (infinity): any change of it would be judged on no evidence.
    """
    limits = np.full(steps.shape[1], np.inf)
    for column, sizes in enumerate(np.abs(steps.astype(np.float64)).T):
        moving = sizes[sizes > 0]
        if len(moving):
            median = np.median(moving)
            tail = TAIL_MULTIPLE * np.quantile(sizes, 0.99)
            limits[column] = np.clip(tail, LEAST_MULTIPLE * median, GREATEST_MULTIPLE * median)
    return limits
