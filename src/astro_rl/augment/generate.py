"""Augmented data, batch by batch: chains, their completions, the last check, and what is left as a dataset.

Batch k depends on models, dataset, settings, seed and k alone: batches can be made in any order, by anybody, again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from astro_rl.augment.check import errors, measure_limits, step_scale
from astro_rl.augment.finish import Finisher, projection
from astro_rl.augment.jobs import Completes, complete_jobs, job_rows
from astro_rl.augment.layout import Laid, lay_anchored, lay_rollout
from astro_rl.augment.limits import RealLimits
from astro_rl.augment.models import FittedModels
from astro_rl.augment.options import GenerateSettings
from astro_rl.augment.reward_model import fit_reward_model
from astro_rl.augment.selecting import selection_for
from astro_rl.augment.shares import held_out_split
from astro_rl.augment.verdicts import CUT, DEVIATES, KEPT, MISSTEPS, NOT_FINITE, REASONS, judge
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.planner.complete import Completer
from astro_rl.stitch.euclidean import NOBODY_ELSE, NOWHERE
from astro_rl.stitch.extension import EMPTY_SHELL, NO_END, NOTHING_FITS
from astro_rl.stitch.filtering import FILTERED, Chains
from astro_rl.stitch.search import REASONS as NO_TARGET
from astro_rl.tasks.task import Task

MOST_SEARCHES = 16
"""Searches behind one batch, at most: where few chains pass, completing a handful at a time wastes the models."""


@dataclass(frozen=True)
class Account:
    """What became of every proposal. Kept and rejected add up to proposed; `cut` are kept, without their junction."""

    proposed: int = 0
    kept: int = 0
    cut: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Account) -> Account:
        reasons = Counter(self.rejected)
        reasons.update(other.rejected)
        return Account(
            self.proposed + other.proposed,
            self.kept + other.kept,
            self.cut + other.cut,
            dict(sorted(reasons.items())),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "proposed": self.proposed,
            "kept": self.kept,
            "cut": self.cut,
            "rejected": dict(self.rejected),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Account:
        return cls(saved["proposed"], saved["kept"], saved["cut"], dict(saved["rejected"]))


@dataclass(frozen=True, eq=False)
class GeneratedBatch:
    """`dataset` is None where nothing passed."""

    dataset: Dataset | None
    starts: Int[np.ndarray, "chains pieces"]
    """First source row of each piece, of all chains that were completed."""
    chains: Account
    completions: Account


def completer_of(models: FittedModels, settings: GenerateSettings) -> Completer:
    """The planner and the dynamics model, as algorithm 2 uses them, and what polishes behind them."""
    return Completer(
        models.planner,
        models.planner_network,
        models.dynamics_network,
        settings.completion,
        models.onestep,
        models.onestep_network,
    )


def limits_for(
    models: FittedModels,
    dataset: Dataset,
    settings: GenerateSettings,
    task: Task | None,
    completer: Completes | None = None,
) -> RealLimits:
    """The fit's own, or, where it measured none for this mode, drew sequences otherwise or knew no plane, those of the
    same held-out windows."""
    limits, xy = models.limits, None if task is None else task.xy_indices
    drawn_alike = settings.completion == models.settings.generate.completion
    if limits.mode == settings.mode and drawn_alike and (limits.jump_xy is None) == (xy is None):
        return limits
    _, held_out = held_out_split(dataset, models.settings.held_out, models.planner.horizon)
    return measure_limits(
        completer or completer_of(models, settings),
        dataset,
        models.normaliser,
        models.shape,
        settings.mode,
        windows=settings.limit_windows,
        batch=settings.completion_batch,
        seed=models.seed,
        xy=xy,
        trajectories=held_out,
    )


class Generator:
    """Everything that batches need, prepared once: windows, search, completer, what finishing asks of the source."""

    def __init__(
        self,
        models: FittedModels,
        dataset: Dataset,
        settings: GenerateSettings | None = None,
        *,
        task: Task | None = None,
        seed: int = 0,
        latents: Float[np.ndarray, "rows latent"] | None = None,
        completer: Completes | None = None,
    ) -> None:
        """`latents`: the dataset's, where they have been encoded before. `completer`: another than the planner's."""
        self.models, self.dataset, self.seed = models, dataset, seed
        self.settings = settings = settings or models.settings.generate
        self._completer = completer or completer_of(models, settings)
        latents = models.temporal.encode(dataset.observations) if latents is None else latents
        self.selection = selection_for(models, dataset, settings, latents)
        self._scale = step_scale(dataset, models.normaliser, None if task is None else task.xy_indices)
        teaches = task is None and dataset.rewards is not None
        reward_model = (
            fit_reward_model(dataset, models.normaliser, settings.rewards, seed=seed) if teaches else None
        )
        self.reward_quality = None if reward_model is None else reward_model.quality
        self.finisher = Finisher(
            dataset,
            models.normaliser,
            limits_for(models, dataset, settings, task, completer),
            projection(dataset, task),
            task=task,
            reward_model=reward_model,
        )
        self._searches = self._needed_searches()

    @property
    def give_up_after(self) -> int:
        return self.settings.give_up_after

    @property
    def cures(self) -> Mapping[str, str]:
        return CURES

    def batch(self, number: int) -> GeneratedBatch:
        found = self._found(number)
        account = Account(
            proposed=sum(chains.proposed for chains in found),
            kept=sum(len(chains) for chains in found),
            rejected=dict(sum((Counter(chains.rejected) for chains in found), Counter())),
        )
        starts = np.concatenate([chains.starts for chains in found])
        statistic = np.concatenate([np.asarray(chains.statistic) for chains in found])
        if len(starts) == 0:
            return GeneratedBatch(None, starts, account, Account())
        laid, completions = self._completed(starts, number)
        made = self.finisher.finish(laid, statistic) if len(laid.sizes) else None
        return GeneratedBatch(made, starts, account, completions)

    def _found(self, number: int) -> list[Chains]:
        first = number * self._searches
        return [self.selection.batch(self.seed, k) for k in range(first, first + self._searches)]

    def _needed_searches(self) -> int:
        """Searches a batch, so that the models complete many sequences at once. Fixed by the first search's yield."""
        shape, settings = self.models.shape, self.settings
        jobs = 1 if settings.mode == "rollout" else shape.pieces - settings.drop_tail
        wanted = 4 * settings.completion_batch / jobs
        return int(
            np.clip(np.ceil(wanted / max(len(self.selection.batch(self.seed, 0)), 1)), 1, MOST_SEARCHES)
        )

    def _completed(self, starts: np.ndarray, number: int) -> tuple[Laid, Account]:
        shape, settings, tail = self.models.shape, self.settings, not self.settings.drop_tail
        rows = job_rows(settings.mode, shape, starts, self._completer.horizon, tail=tail)
        chains, jobs, horizon = rows.shape
        done = complete_jobs(
            self._completer,
            self.dataset,
            self.models.normaliser,
            rows.reshape(-1, horizon),
            jax.random.fold_in(jax.random.key(self.seed), number),
            batch=settings.completion_batch,
        )
        verdict = judge(errors(done, self._scale), self.finisher.limits, settings)
        states, actions = self.finisher.observations(done.states), self.finisher.actions(done.actions)
        if settings.mode == "rollout":
            laid = lay_rollout(shape, rows[:, 0], states, actions, done.deviation, verdict, tail=tail)
        else:
            by_chain = (chains, jobs)
            laid = lay_anchored(
                shape,
                self.dataset,
                starts,
                states.reshape(*by_chain, horizon, -1),
                actions.reshape(*by_chain, horizon, -1),
                done.deviation.reshape(by_chain),
                verdict.reshape(by_chain),
                tail=tail,
            )
        rejected = {text: int((verdict == code).sum()) for code, text in REASONS.items()}
        return laid, Account(
            proposed=len(verdict),
            kept=int(((verdict == KEPT) | (verdict == CUT)).sum()),
            cut=int((verdict == CUT).sum()),
            rejected={text: count for text, count in rejected.items() if count},
        )


CURES = {
    NO_TARGET[
        EMPTY_SHELL
    ]: "raise generate.search.tolerance or generate.search.pool, or choose a shorter mask",
    NO_TARGET[NOTHING_FITS]: "raise generate.search.threshold, or choose fewer or shorter pieces",
    NO_TARGET[
        NO_END
    ]: "choose fewer or shorter pieces, or raise generate.search.pool or generate.search.threshold",
    FILTERED: "raise generate.search.threshold, or choose fewer or shorter pieces",
    NOWHERE: "fit the dynamics model longer, or lower generate.continuation.learning_rate",
    NOBODY_ELSE: "raise generate.search.pool",
    REASONS[DEVIATES]: "fit dynamics and planner longer, or raise generate.deviation_quantile",
    REASONS[MISSTEPS]: "fit dynamics and planner longer, or raise generate.step_quantile",
    REASONS[NOT_FINITE]: "fit again, with lower learning rates",
}
"""What to change, by the reason that dominates."""


def nothing_passes(
    chains: Account, completions: Account, batches: int, cures: Mapping[str, str] = CURES
) -> DataError:
    """Why a search that goes on for ever was given up."""
    account = completions if completions.proposed else chains
    what = "completed sequence" if completions.proposed else "chain"
    if not account.rejected:
        return DataError(
            "The completed sequences hold nothing that was generated.", found=f"{account.proposed} of them"
        )
    reason, count = max(account.rejected.items(), key=lambda pair: pair[1])
    return DataError(
        f"No {what} passes the filter.",
        found=f"{account.proposed} proposed in {batches} batches, {account.kept} kept; {count} of them: {reason}",
        expected="at least one in that many batches (generate.give_up_after)",
        fix=cures.get(reason, "look at the account of rejections"),
    )
