"""What an inspection found: frozen records, as strict JSON and as lines for a table."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from astro_rl.data.atomic import readable_bytes


@dataclass(frozen=True)
class ColumnRange:
    """One dimension of a column."""

    name: str
    low: float
    high: float
    mean: float
    std: float


@dataclass(frozen=True)
class Histogram:
    """Counts between edges; or, where `edges` are as many as `counts`, counts of single values."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Lengths:
    """Transitions in a trajectory."""

    low: int
    median: float
    mean: float
    high: int
    histogram: Histogram


@dataclass(frozen=True)
class Ends:
    """How trajectories end, and which flags stand elsewhere."""

    terminated: int
    """Transitions beyond which there is no value, wherever they stand."""
    terminated_at_end: int
    truncated: int
    truncated_at_end: int
    unflagged: int
    """Trajectories whose last transition is neither terminated nor truncated."""


@dataclass(frozen=True)
class Jump:
    trajectory: int
    step: int
    column: str
    before: float
    after: float


@dataclass(frozen=True)
class Discontinuities:
    """Steps so large that they cannot be motion (`astro_rl.data.continuity` defines it): resets, teleports,
    faults."""

    transitions: int
    trajectories: int
    first: tuple[Jump, ...]
    watched: tuple[str, ...]
    """Columns in which jumps can be told from motion."""


@dataclass(frozen=True)
class Idleness:
    """A transition is idle if, over the window around it, no slow column gets a quarter of its usual
    distance."""

    fraction: float
    """Share of all transitions."""
    tail_fraction: float
    """Share of all transitions that lie in idle stretches at the end of trajectories."""
    window: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class TaskSuccess:
    task: str
    rows: int
    trajectories: int


@dataclass(frozen=True)
class StoredColumn:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Inspection:
    """Everything `astro-rl data inspect` shows."""

    trajectories: int
    transitions: int
    rows: int
    lengths: Lengths
    columns: tuple[StoredColumn, ...]
    bytes: int
    observations: tuple[ColumnRange, ...]
    actions: tuple[ColumnRange, ...]
    rewards: ColumnRange | None
    reward_histogram: Histogram | None
    ends: Ends
    successes: tuple[TaskSuccess, ...]
    discontinuities: Discontinuities
    idleness: Idleness | None
    """None where no column travels, so that idling cannot be told from motion."""
    actions_at_bounds: float
    """Share of transitions with an action component at −1 or 1."""
    actions_at_bounds_by_dimension: tuple[float, ...]
    constant_columns: tuple[str, ...]
    duplicated_columns: tuple[tuple[str, ...], ...]
    info: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not finite becomes None, because JSON has no word for it."""
        return _plain(asdict(self))

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def table(self) -> list[tuple[str, str]]:
        """Labels and values, in the order in which to show them."""
        lengths, ends = self.lengths, self.ends
        return [
            ("trajectories", f"{self.trajectories:,}"),
            ("transitions", f"{self.transitions:,}"),
            (
                "length",
                f"{lengths.low} to {lengths.high}, median {lengths.median:g}, mean {lengths.mean:.1f}",
            ),
            *((f"column {c.name}", f"{c.dtype} {' × '.join(map(str, c.shape))}") for c in self.columns),
            ("memory", readable_bytes(self.bytes)),
            ("terminated", f"{ends.terminated:,}, of which {ends.terminated_at_end:,} end a trajectory"),
            ("truncated", f"{ends.truncated:,}, of which {ends.truncated_at_end:,} end a trajectory"),
            ("ends without a flag", f"{ends.unflagged:,}"),
            ("rewards", "none" if self.rewards is None else _range_text(self.rewards)),
            *(
                (f"success, {s.task}", f"{s.rows:,} rows in {s.trajectories:,} trajectories")
                for s in self.successes
            ),
            ("discontinuities", _jump_text(self.discontinuities)),
            ("idle", _idle_text(self.idleness)),
            ("actions at a bound", f"{self.actions_at_bounds:.1%} of transitions"),
            ("constant columns", ", ".join(self.constant_columns) or "none"),
            ("equal columns", "; ".join(" = ".join(group) for group in self.duplicated_columns) or "none"),
        ]

    def ranges(self) -> list[tuple[str, str, str, str, str]]:
        """Name, lowest, highest, mean and standard deviation of each dimension, as text."""
        rewards = () if self.rewards is None else (self.rewards,)
        return [
            (c.name, f"{c.low:.4g}", f"{c.high:.4g}", f"{c.mean:.4g}", f"{c.std:.4g}")
            for c in (*self.observations, *self.actions, *rewards)
        ]


def _range_text(column: ColumnRange) -> str:
    return f"{column.low:.4g} to {column.high:.4g}, mean {column.mean:.4g}"


def _jump_text(jumps: Discontinuities) -> str:
    if not jumps.watched:
        return "cannot be told: no column moves steadily"
    if not jumps.transitions:
        return "none"
    first = jumps.first[0]
    return (
        f"{jumps.transitions:,} in {jumps.trajectories:,} trajectories; the first in trajectory "
        f"{first.trajectory}, step {first.step}: {first.column} from {first.before:.4g} to {first.after:.4g}"
    )


def _idle_text(idleness: Idleness | None) -> str:
    if idleness is None:
        return "cannot be told: no column travels"
    return f"{idleness.fraction:.1%} of transitions, {idleness.tail_fraction:.1%} at the end of trajectories"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
