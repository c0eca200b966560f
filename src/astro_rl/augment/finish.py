"""From normalised completions to a valid dataset: units, validity, bounds, rewards, ends, lineage columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from astro_rl.augment.layout import Laid
from astro_rl.augment.limits import RealLimits
from astro_rl.augment.reward_model import RewardModel
from astro_rl.data.build import from_arrays
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.tasks.relabel import relabel
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import SuccessTiming, Task
from astro_rl.tasks.valid import project

CHUNK_ROWS = 1 << 18
LINEAGE_COLUMNS = ("source_trajectory", "source_step", "deviation", "filter_statistic", "weight")
"""Extra columns of augmented data; those of a trajectory are repeated on each of its rows, so that any format holds
them."""

STATE_COLUMNS = ("qpos", "qvel")

Projection = Callable[[np.ndarray], np.ndarray]


def projection(dataset: Dataset, task: Task | None) -> Projection:
    """To the task's valid observations; where no task is known, or none of its layout, into the data's own bounds."""
    if task is not None and task.layout is not None:
        return project(task)
    low, high = learned_bounds(dataset)
    return lambda observations: np.clip(observations, low, high)


def learned_bounds(dataset: Dataset) -> tuple[Float[np.ndarray, "obs"], Float[np.ndarray, "obs"]]:
    """Each dimension's smallest and largest value."""
    low, high = np.full((2, dataset.observation_dim), np.inf)
    high = -high
    for start in range(0, dataset.n_rows, CHUNK_ROWS):
        chunk = np.asarray(dataset.observations[start : start + CHUNK_ROWS])
        low, high = np.minimum(low, chunk.min(axis=0)), np.maximum(high, chunk.max(axis=0))
    kind = dataset.observations.dtype
    return low.astype(kind), high.astype(kind)


@dataclass(frozen=True, eq=False)
class Finisher:
    """Everything that finishing needs to know of the source. Made once, used for every batch."""

    dataset: Dataset
    normaliser: Normaliser
    limits: RealLimits
    project: Projection
    task: Task | None = None
    timing: SuccessTiming | None = None
    reward_model: RewardModel | None = None

    def observations(self, states: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch obs"]:
        """Normalisation undone, then the nearest valid observation. Constant dimensions keep their value exactly. What
        is not finite is left for the check."""
        undone = self.normaliser.undo(states).astype(self.dataset.observations.dtype)
        finite = np.where(np.isfinite(undone), undone, 0.0).astype(undone.dtype)
        return self.project(finite).astype(undone.dtype, copy=False)

    def actions(self, actions: Float[np.ndarray, "*batch act"]) -> Float[np.ndarray, "*batch act"]:
        finite = np.where(np.isfinite(actions), actions, 0.0)
        return np.clip(finite, -1.0, 1.0).astype(self.dataset.actions.dtype)

    def finish(self, laid: Laid, statistic: Float[np.ndarray, "chains"]) -> Dataset:
        """Trajectories with rewards, ends and lineage columns."""
        offsets = np.concatenate([[0], np.cumsum(laid.sizes)]).astype(np.int64)
        rewards, terminated = self._rewards(laid, offsets)
        truncated = np.zeros(len(terminated), bool)
        last = offsets[1:] - 2
        truncated[last] = ~terminated[last]
        made = from_arrays(
            laid.observations,
            laid.actions,
            offsets=offsets,
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            extras=self._lineage(laid, statistic) | self._simulator_state(laid),
        )
        if self.task is None:
            return made
        labelled = relabel(made, self.task, timing=self.timing)
        labelled.truncated[last] = ~labelled.terminated[last]
        return labelled

    def _rewards(self, laid: Laid, offsets: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Real transitions keep their own; a task's rewards come later, from `relabel`."""
        terminated = np.zeros(len(laid.observations), bool)
        if self.task is not None:
            return None, terminated
        real = laid.is_real
        terminated[real] = self.dataset.terminated[laid.source_rows[real]]
        if self.dataset.rewards is None:
            return None, terminated
        rewards = np.zeros(len(terminated), self.dataset.rewards.dtype)
        rewards[real] = self.dataset.rewards[laid.source_rows[real]]
        asked = ~real
        asked[offsets[1:] - 1] = False
        rows = np.flatnonzero(asked)
        if len(rows):
            assert self.reward_model is not None
            rewards[rows], terminated[rows] = self.reward_model(
                laid.observations[rows],
                laid.actions[rows].astype(np.float32),
                laid.observations[rows + 1],
            )
        return rewards, terminated

    def _simulator_state(self, laid: Laid) -> dict[str, np.ndarray]:
        """qpos and qvel where the source has them and observations tell them: OGBench's own labelling of goals reads
        them. Rows that are the source's keep its own."""
        told = simulator_state(self.dataset, self.task, laid.observations)
        rows = np.maximum(laid.source_rows, 0)
        same = (laid.source_rows >= 0) & (self.dataset.observations[rows] == laid.observations).all(axis=1)
        return {
            name: np.where(same[:, None], self.dataset.extras[name][rows], column).astype(column.dtype)
            for name, column in told.items()
        }

    def _lineage(self, laid: Laid, statistic: np.ndarray) -> dict[str, np.ndarray]:
        known = laid.source_rows >= 0
        rows = np.maximum(laid.source_rows, 0)
        owner, step = origins(self.dataset, rows)
        per_trajectory = {
            "deviation": laid.deviation,
            "filter_statistic": statistic[laid.chains],
            "weight": weights(laid.deviation, self.limits),
        }
        return {
            "source_trajectory": np.where(known, owner, -1).astype(np.int32),
            "source_step": np.where(known, step, -1).astype(np.int32),
            **{
                name: np.repeat(np.asarray(value, np.float32), laid.sizes)
                for name, value in per_trajectory.items()
            },
        }


def simulator_state(
    dataset: Dataset, task: Task | None, observations: Float[np.ndarray, "rows obs"]
) -> dict[str, np.ndarray]:
    """qpos and qvel behind generated observations, in the source's types; none where the source has none, or the task's
    observations do not tell."""
    source = {name: dataset.extras[name] for name in STATE_COLUMNS if name in dataset.extras}
    if len(source) < len(STATE_COLUMNS) or task is None or not isinstance(task.state, StateMap):
        return {}
    qpos, qvel = task.state.to_qpos_qvel(observations)
    told: dict[str, np.ndarray] = {"qpos": qpos, "qvel": qvel}
    return {name: told[name].astype(column.dtype) for name, column in source.items()}


def origins(
    dataset: Dataset, rows: Int[np.ndarray, "rows"]
) -> tuple[Int[np.ndarray, "rows"], Int[np.ndarray, "rows"]]:
    """Which trajectory and which of its steps each row is. Augmented data that serves as a source passes on what it
    came from itself, so that lineage always ends at a recording, or at −1."""
    if {"source_trajectory", "source_step"} <= dataset.extras.keys():
        return dataset.extras["source_trajectory"][rows], dataset.extras["source_step"][rows]
    owner = np.searchsorted(dataset.offsets, rows, side="right") - 1
    return owner, rows - np.asarray(dataset.offsets)[owner]


def weights(
    deviation: Float[np.ndarray, "trajectories"], limits: RealLimits
) -> Float[np.ndarray, "trajectories"]:
    """min(1, δ̄ / δ) with δ̄ the median of real windows: what completes as well as real data weighs 1.

    Our reading of algorithm 3's title, "adaptive weighted"; the algorithm itself names no weight.
    """
    typical = max(limits.at("deviation", 0.5), 1e-12)
    return (typical / np.maximum(deviation, typical)).astype(np.float32)
