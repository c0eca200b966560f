"""Where trajectories end in a D4RL file, which has no single mark for it.

A D4RL file has one row a step: the observation, the action taken there, and no observation after the last
one. So the last row of a recording that was cut has no successor, and `d4rl.qlearning_dataset` leaves its
transition out::

    file row      :  0    1    2    3  |  4    5    6  |  7 ...
    observations  :  s0   s1   s2   s3 |  u0   u1   u2 |
    timeouts      :  0    0    0    1  |  0    0    0  |  row 3 becomes an end row, three transitions are left
    terminals     :  0    0    0    0  |  0    0    1  |  row 6 keeps its transition, an end row is made
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt8

from astro_rl.data.continuity import jump_limits

CONTINUES, ENDS_HERE, ENDS_AFTER = 0, 1, 2
"""What follows a row: the next one; nothing, it is an end row itself; nothing, but its transition is kept."""

OWN_GROUP = "astro_rl"
"""What we write beside D4RL's columns: the exact ends, and `info` as JSON. Other readers may ignore it."""
FLAGS = "d4rl_flags"
"""An extra column, present where a file's flags do not follow from the trajectories: bits of the row's
origin."""
TERMINAL, TIMEOUT, MADE = 1, 2, 4
NEXT = "d4rl_next_observations"
"""The name under which a file's `next_observations` are carried: a dataset has its own next observations."""
REQUIRED = ("observations", "actions", "rewards", "terminals")
RESERVED = frozenset({*REQUIRED, "timeouts"})

SAME_STATE = 1e-6
"""‖obs[i+1] − next_obs[i]‖ above which FQL's loader says that a new trajectory starts."""


@dataclass(frozen=True)
class Conventions:
    """What a family of D4RL files means by its columns. It is nowhere in the files: names and shapes tell."""

    reward_shift: float
    """Added to the file's rewards when reading. The papers train antmaze on reward − 1."""
    terminals_end: bool
    """Whether a terminal row is the last of its trajectory. In antmaze it marks success, and the ant walks
    on."""
    position_columns: tuple[int, ...]
    """Observation columns whose jump means a reset that no flag tells of (antmaze v0, umaze-diverse)."""


ANTMAZE = Conventions(reward_shift=-1.0, terminals_end=False, position_columns=(0, 1))
MAZE2D = Conventions(reward_shift=0.0, terminals_end=False, position_columns=(0, 1))
OTHER = Conventions(reward_shift=0.0, terminals_end=True, position_columns=())


def conventions_of(stem: str, shapes: Mapping[str, tuple[int, ...]]) -> Conventions:
    """By the name a file was published or saved under, or, if renamed, by antmaze's unmistakable shapes."""
    if re.search(r"ant[-_ ]?maze", stem, re.IGNORECASE):
        return ANTMAZE
    if re.search(r"maze2d", stem, re.IGNORECASE):
        return MAZE2D
    sizes = [shapes.get(name, ())[1:] for name in ("observations", "actions", "infos/goal")]
    return ANTMAZE if sizes == [(29,), (8,), (2,)] else OTHER


def find_ends(
    columns: Mapping[str, np.ndarray],
    conventions: Conventions,
    max_episode_steps: int | None,
    jumps: Bool[np.ndarray, "rows"],
) -> UInt8[np.ndarray, "rows"]:
    """For each row of the file, what follows it.

    A time limit wins over a terminal on the same row, as in `qlearning_dataset`. A jump ends a trajectory
    at the row before it; if that row is terminal its transition counts (its next state is never looked at),
    otherwise the transition would be false and the row becomes an end row. Where the file says what came
    next (`next_observations`) and it is not the next row, the transition is true and kept.
    """
    terminals = columns["terminals"].astype(bool)
    rows = len(terminals)
    ends = np.full(rows, CONTINUES, dtype=np.uint8)
    if "next_observations" in columns:
        ends[differs_from_next_row(columns)] = ENDS_AFTER
    ends[jumps] = np.where(terminals[jumps], ENDS_AFTER, ENDS_HERE)
    if conventions.terminals_end:
        ends[terminals] = ENDS_AFTER
    if "timeouts" in columns:
        ends[columns["timeouts"].astype(bool)] = ENDS_HERE
    elif max_episode_steps is not None:
        _cut_at_limit(ends, max_episode_steps)
    if ends[-1] == CONTINUES:
        ends[-1] = ENDS_HERE
    return ends


def _cut_at_limit(ends: UInt8[np.ndarray, "rows"], limit: int) -> None:
    """End whatever runs to the time limit, as `qlearning_dataset` does for files without `timeouts`."""
    start = 0
    stops = np.flatnonzero(ends)
    for stop in [*stops.tolist(), len(ends) - 1]:
        while start + limit - 1 <= stop:
            ends[start + limit - 1] = ENDS_HERE
            start += limit
        start = stop + 1


def differs_from_next_row(columns: Mapping[str, np.ndarray]) -> Bool[np.ndarray, "rows"]:
    """Rows whose next observation is not the one that follows in the file; never the last row."""
    observations, following = columns["observations"], columns["next_observations"]
    differs = np.zeros(len(observations), dtype=bool)
    gap = observations[1:].astype(np.float64) - following[:-1]
    differs[:-1] = np.linalg.norm(gap, axis=1) > SAME_STATE
    return differs


def find_jumps(
    columns: Mapping[str, np.ndarray], positions: tuple[int, ...], limit: float | None
) -> Bool[np.ndarray, "rows"]:
    """Rows after which a position leaps although no flag says that the recording ends. `limit` is in the
    data's units."""
    observations = columns["observations"]
    jumps = np.zeros(len(observations), dtype=bool)
    if not positions or len(observations) < 2:
        return jumps
    steps = np.diff(observations[:, list(positions)].astype(np.float64), axis=0)
    flagged = (
        columns["timeouts"][:-1].astype(bool) if "timeouts" in columns else np.zeros(len(steps), dtype=bool)
    )
    values = observations[:, list(positions)]
    limits = jump_limits(steps[~flagged], values) if limit is None else np.full(len(positions), limit)
    jumps[:-1] = (np.abs(steps) > limits).any(axis=1) & ~flagged
    return jumps


def cut_flags(
    terminated: Bool[np.ndarray, "rows"],
    made: Bool[np.ndarray, "rows"],
    end_rows: Int[np.ndarray, "trajectories"],
) -> Bool[np.ndarray, "rows"]:
    """The last transition of a trajectory was cut off, unless a terminal is why the trajectory ended."""
    truncated = np.zeros(len(terminated), dtype=bool)
    truncated[end_rows - 1] = ~(made[end_rows] & terminated[end_rows - 1])
    return truncated
