"""Augmented data of SynthER: each generated transition is a trajectory of its own, of two rows.

Nothing of it comes from a recording, so lineage is −1 on every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from astro_rl.augment.finish import projection, simulator_state
from astro_rl.augment.generate import Account, GeneratedBatch
from astro_rl.augmenters.synther.columns import Columns, Transitions
from astro_rl.augmenters.synther.denoiser import drawn_rows
from astro_rl.augmenters.synther.settings import SyntherSettings
from astro_rl.data.build import from_arrays
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.tasks.relabel import relabel
from astro_rl.tasks.task import Task

ORIGIN_COLUMNS = ("source_trajectory", "source_step")
NOT_FINITE = "not finite"
CURES = {NOT_FINITE: "fit again, with a lower denoiser.learning_rate"}


class SyntherProposer:
    """Batches of generated transitions: drawn, brought to the data's units, made valid, rewarded."""

    def __init__(
        self,
        network: Any,
        columns: Columns,
        normaliser: Normaliser,
        settings: SyntherSettings,
        dataset: Dataset,
        *,
        task: Task | None,
        modelled_task: str | None,
        seed: int,
    ) -> None:
        self._network, self._columns, self._normaliser = network, columns, normaliser
        self._settings, self._dataset, self._task, self._seed = settings, dataset, task, seed
        self._project = projection(dataset, task)
        self._rewards_by_task = task is not None and settings.rewards == "task"
        if not self._rewards_by_task:
            require_rewards(columns, dataset, task, modelled_task)

    @property
    def give_up_after(self) -> int:
        return self._settings.give_up_after

    @property
    def reward_quality(self) -> Mapping[str, float] | None:
        """Modelled rewards are drawn with their transition: there is nothing to hold them against."""
        return None

    @property
    def cures(self) -> Mapping[str, str]:
        return CURES

    def batch(self, number: int) -> GeneratedBatch:
        settings = self._settings
        drawn = drawn_rows(
            self._network,
            jax.random.fold_in(jax.random.key(self._seed), number),
            settings.noise,
            settings.sampling,
            count=settings.batch,
            width=self._columns.width,
            at_once=min(settings.at_once, settings.batch),
        )
        rows = self._normaliser.undo(np.asarray(drawn))
        finite = np.isfinite(rows).all(axis=1)
        broken = int((~finite).sum())
        account = Account(len(rows), len(rows) - broken, 0, {NOT_FINITE: broken} if broken else {})
        made = self._finished(self._columns.split(rows[finite])) if finite.any() else None
        return GeneratedBatch(made, np.zeros((0, 0), np.int64), Account(), account)

    def _finished(self, drawn: Transitions) -> Dataset:
        source, count = self._dataset, len(drawn.observations)
        both = np.stack([drawn.observations, drawn.following], axis=1).reshape(2 * count, -1)
        observations = self._valid(both)
        actions = np.zeros((2 * count, source.action_dim), source.actions.dtype)
        actions[0::2] = np.clip(drawn.actions, -1.0, 1.0)
        rewards, terminated = self._modelled(drawn)
        origin = np.full(2 * count, -1, np.int32)
        made = from_arrays(
            observations,
            actions,
            offsets=np.arange(count + 1) * 2,
            rewards=rewards,
            terminated=terminated,
            truncated=self._cut(terminated),
            extras=dict.fromkeys(ORIGIN_COLUMNS, origin) | simulator_state(source, self._task, observations),
        )
        if not self._rewards_by_task:
            return made
        assert self._task is not None
        labelled = relabel(made, self._task)
        labelled.truncated[:] = self._cut(labelled.terminated)
        return labelled

    def _valid(self, observations: Float[np.ndarray, "rows obs"]) -> Float[np.ndarray, "rows obs"]:
        """The nearest valid observations, in the data's own type, whose range diffusion may leave."""
        kind = self._dataset.observations.dtype
        with np.errstate(over="ignore"):
            narrow = observations.astype(kind)
        return self._project(np.nan_to_num(narrow)).astype(kind, copy=False)

    def _modelled(
        self, drawn: Transitions
    ) -> tuple[Float[np.ndarray, "rows"] | None, Bool[np.ndarray, "rows"]]:
        """Rewards and ends on the first row of each pair; a task's come later."""
        count = len(drawn.observations)
        terminated = np.zeros(2 * count, bool)
        if self._rewards_by_task or drawn.rewards is None:
            return None, terminated
        rewards = np.zeros(2 * count, np.float32)
        rewards[0::2] = drawn.rewards
        if drawn.ends is not None:
            terminated[0::2] = drawn.ends > self._settings.end_threshold
        return rewards, terminated

    def _cut(self, terminated: Bool[np.ndarray, "rows"]) -> Bool[np.ndarray, "rows"]:
        """A transition that does not end anything is cut off behind it; end rows say nothing."""
        truncated = ~terminated
        truncated[1::2] = False
        return truncated


def require_rewards(columns: Columns, dataset: Dataset, task: Task | None, modelled_task: str | None) -> None:
    """Refuses modelled rewards that the fit has not, or has of another task."""
    asked = None if task is None else task.name
    if columns.rewards and asked != modelled_task:
        raise ConfigError(
            "The fit models the rewards of something else.",
            field="task",
            found=f"{asked or 'no task'} asked for, {modelled_task or 'the own rewards of the data'} modelled",
            fix="name the same task as the fit (--task), or fit with this one",
        )
    if not columns.rewards and (asked is not None or dataset.rewards is not None):
        raise ConfigError(
            "The fit models no rewards.",
            field="task",
            found=f"rewards={'task' if asked is None else 'modelled'}, fitted with task {modelled_task}",
            fix=f"name the task that gives rewards (--task {modelled_task or 'NAME'}), or fit without one",
        )
