"""The one in-memory form of a dataset: trajectories laid end to end in row-aligned columns.

A trajectory of T transitions takes T + 1 rows, one for each observation (`docs/data-format.md` draws it)::

    row            :  0    1    2   ...  T-1    T        T = the end row
    observations   :  s0   s1   s2  ... s(T-1)  sT
    actions        :  a0   a1   a2  ... a(T-1)  --       the end row's action means nothing; kept, never trained on
    rewards        :  r0   r1   r2  ... r(T-1)  --       r_t belongs to the transition that leaves row t
    terminated     :  0    0    1   ...   0     --       no value beyond this transition (its bootstrap mask is 0)
    truncated      :  0    0    0   ...   1     --       the recording was cut off after this transition
    segment end    :  the end row itself: `offsets` say where trajectories start; no window or pair crosses one

A terminated transition need not be the last one: OGBench's single-task relabelling and D4RL's antmaze both mark success
in the middle of trajectories that go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from astro_rl.data.digest import digest_columns

COLUMNS = ("observations", "actions", "rewards", "terminated", "truncated")
"""The columns with a meaning to learners, in the order in which files are written."""

SIMULATOR_COLUMNS = ("qpos", "qvel", "button_states")
"""What a simulator needs besides the observation to stand in the same state; present where the source had it."""


@dataclass(frozen=True)
class Trajectory:
    """One trajectory: T + 1 observations and T of everything else. Arrays are views of the dataset's."""

    observations: Float[np.ndarray, "T_plus_1 obs"]
    actions: Float[np.ndarray, "T act"]
    terminated: Bool[np.ndarray, "T"]
    truncated: Bool[np.ndarray, "T"]
    rewards: Float[np.ndarray, "T"] | None = None
    extras: Mapping[str, Shaped[np.ndarray, "T_plus_1 ..."]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        return f"Trajectory({len(self)} transitions, obs {self.observations.shape[1]}, act {self.actions.shape[1]})"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Trajectories as row-aligned columns, in memory or memory-mapped; never changed in place.

    Build one with :func:`astro_rl.data.from_arrays`, :func:`astro_rl.data.from_trajectories` or
    :func:`astro_rl.data.load`, all of which check what they are given. This class trusts its arguments.
    """

    observations: Float[np.ndarray, "rows obs"]
    actions: Float[np.ndarray, "rows act"]
    terminated: Bool[np.ndarray, "rows"]
    truncated: Bool[np.ndarray, "rows"]
    offsets: Int[np.ndarray, "trajectories_plus_1"]
    rewards: Float[np.ndarray, "rows"] | None = None
    extras: Mapping[str, Shaped[np.ndarray, "rows ..."]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able facts that travel with the data: source format, environment, lineage."""
    stamp: tuple[str, Mapping[str, np.ndarray]] | None = None
    """A digest that is known already, as a store's is, and the arrays it was taken over."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", MappingProxyType(dict(self.extras)))
        object.__setattr__(self, "info", MappingProxyType(dict(self.info)))

    @property
    def n_rows(self) -> int:
        return len(self.observations)

    @property
    def n_trajectories(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_transitions(self) -> int:
        return self.n_rows - self.n_trajectories

    @property
    def observation_dim(self) -> int:
        return self.observations.shape[1]

    @property
    def action_dim(self) -> int:
        return self.actions.shape[1]

    @property
    def lengths(self) -> Int[np.ndarray, "trajectories"]:
        """Transitions in each trajectory."""
        return np.diff(self.offsets) - 1

    @property
    def end_rows(self) -> Int[np.ndarray, "trajectories"]:
        """The last row of each trajectory, which has an observation and nothing else."""
        return self.offsets[1:] - 1

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns().values())

    def columns(self) -> dict[str, np.ndarray]:
        """All columns by name, rewards and extras included where present, in a fixed order."""
        named = {name: getattr(self, name) for name in COLUMNS}
        named.update(sorted(self.extras.items()))
        return {name: column for name, column in named.items() if column is not None}

    def transition_rows(self) -> Int[np.ndarray, "transitions"]:
        """The rows that a transition leaves, in order: all but the end rows."""
        is_transition = np.ones(self.n_rows, dtype=bool)
        is_transition[self.end_rows] = False
        return np.flatnonzero(is_transition)

    def trajectory_of_row(self) -> Int[np.ndarray, "rows"]:
        """For each row, the number of its trajectory."""
        return np.repeat(np.arange(self.n_trajectories), np.diff(self.offsets))

    def digest(self) -> str:
        """SHA-256 over names, types, shapes and bytes of all columns and offsets; format and `info` do not count."""
        present = {"offsets": self.offsets, **self.columns()}
        if self.stamp is not None:
            known, arrays = self.stamp
            # A stamp survives dataclasses.replace; it holds only while every array is still the one it was taken over.
            if arrays.keys() == present.keys() and all(arrays[name] is present[name] for name in present):
                return known
        return digest_columns(present)

    def __len__(self) -> int:
        return self.n_trajectories

    def __getitem__(self, number: int) -> Trajectory:
        if not -len(self) <= number < len(self):
            raise IndexError(f"trajectory {number} of a dataset that has {len(self)}")
        number %= len(self)
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        steps, rows = slice(start, stop - 1), slice(start, stop)
        return Trajectory(
            observations=self.observations[rows],
            actions=self.actions[steps],
            terminated=self.terminated[steps],
            truncated=self.truncated[steps],
            rewards=None if self.rewards is None else self.rewards[steps],
            extras={name: column[rows] for name, column in self.extras.items()},
        )

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[number] for number in range(len(self)))

    def select(self, trajectories: Sequence[int] | Int[np.ndarray, "chosen"]) -> Dataset:
        """A new dataset of the chosen trajectories, in the order given."""
        chosen = np.asarray(trajectories, dtype=np.int64)
        spans = [np.arange(int(self.offsets[k]), int(self.offsets[k + 1])) for k in chosen]
        rows = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)
        return replace(
            self,
            observations=self.observations[rows],
            actions=self.actions[rows],
            terminated=self.terminated[rows],
            truncated=self.truncated[rows],
            rewards=None if self.rewards is None else self.rewards[rows],
            extras={name: column[rows] for name, column in self.extras.items()},
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[chosen])]).astype(np.int64),
        )

    def with_rewards(
        self, rewards: Float[np.ndarray, "rows"], terminated: Bool[np.ndarray, "rows"]
    ) -> Dataset:
        """The same trajectories under another reward: what relabelling for a task returns. Nothing is copied."""
        return replace(self, rewards=rewards, terminated=terminated)

    def save(
        self, path: str | Path, *, format: str | None = None, overwrite: bool = False, **options: Any
    ) -> None:
        """Write a file in any format: `astro_rl.save`."""
        from astro_rl.data.registry import save

        save(self, path, format=format, overwrite=overwrite, **options)

    def __repr__(self) -> str:
        reward = "no rewards" if self.rewards is None else "rewards"
        extras = f", extras {', '.join(sorted(self.extras))}" if self.extras else ""
        return (
            f"Dataset({self.n_trajectories} trajectories, {self.n_transitions} transitions, "
            f"obs {self.observation_dim} {self.observations.dtype}, act {self.action_dim} {self.actions.dtype}, "
            f"{reward}{extras})"
        )
