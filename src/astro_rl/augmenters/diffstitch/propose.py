"""DiffStitch's batches: low sources, a continuation each, a target that it comes near, the gap filled, three checks.

Batch k depends on models, dataset, task, settings, seed and k alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Int

from astro_rl.augment.finish import Finisher, projection
from astro_rl.augment.generate import Account, GeneratedBatch
from astro_rl.augment.reward_model import fit_reward_model
from astro_rl.augmenters.diffstitch.fill import Filled, GapFiller
from astro_rl.augmenters.diffstitch.layout import lay_stitches
from astro_rl.augmenters.diffstitch.limits import StitchLimits
from astro_rl.augmenters.diffstitch.options import StitchSettings
from astro_rl.augmenters.diffstitch.returns import gap_returns, pools, ranks, returns_to_go
from astro_rl.augmenters.diffstitch.similarity import Choice, choose, similarities
from astro_rl.data.schema import Dataset
from astro_rl.stitch.windows import window_starts
from astro_rl.tasks.relabel import relabel
from astro_rl.tasks.task import Task

KEPT, DEVIATES, NOT_FINITE, ENDS, LOSES = range(5)
FAR = "no target is near the continuation"
REASONS = {
    DEVIATES: "dynamics deviation above the threshold",
    NOT_FINITE: "not finite",
    ENDS: "ends within the gap",
    LOSES: "worth less than before",
}
CURES = {
    FAR: "raise generate.similarity_quantile, generate.candidates or generate.target_share, or lower "
    "generate.threshold where it is given",
    REASONS[
        DEVIATES
    ]: "raise generate.deviation_quantile (or generate.deviation_most, if given), or fit longer",
    REASONS[NOT_FINITE]: "fit again, with lower learning rates",
    REASONS[ENDS]: "look at the reward model's terminated_precision; a task says what ends an episode",
    REASONS[LOSES]: "give generate.require_gain=false, or lower generate.source_share",
}
SLACK = 1e-3
"""Returns that differ by less, of 1/(1 − γ) rewards at most, are alike."""


class Stitcher:
    """Everything that batches need, prepared once: the ends, what they are worth, what finishing asks of the source."""

    def __init__(
        self,
        filler: GapFiller,
        limits: StitchLimits,
        dataset: Dataset,
        settings: StitchSettings,
        *,
        reach: tuple[int, int],
        task: Task | None,
        seed: int,
    ) -> None:
        """`reach`: the shortest and the longest gap. `filler.observations` is replaced by the task's."""
        self.dataset, self.settings, self.seed, self.reach = dataset, settings, seed, reach
        self.limits = limits
        labelled = dataset if task is None else relabel(dataset, task)
        teaches = task is None and dataset.rewards is not None
        rewards = (
            fit_reward_model(dataset, filler.normaliser, settings.rewards, seed=seed) if teaches else None
        )
        self._finisher = Finisher(
            dataset,
            filler.normaliser,
            limits.as_real(),
            projection(dataset, task),
            task=task,
            reward_model=rewards,
        )
        self._filler = replace(filler, observations=self._finisher.observations)
        self._targets, _ = window_starts(dataset.offsets, settings.piece)
        self._sources = self._targets + settings.piece - 1
        self._worth = returns_to_go(labelled, settings.discount)
        self._scores = ranks(self._worth)
        self._has_returns = labelled.rewards is not None
        # What success ends in a task is a goal; what ends without one, as the reward model says, is a fall.
        self._ends_reject = task is None

    @property
    def give_up_after(self) -> int:
        return self.settings.give_up_after

    @property
    def cures(self) -> Mapping[str, str]:
        return CURES

    @property
    def reward_quality(self) -> Mapping[str, float] | None:
        model = self._finisher.reward_model
        return None if model is None else model.quality

    def batch(self, number: int) -> GeneratedBatch:
        settings = self.settings
        generator = np.random.default_rng([self.seed, number])
        walk_key, fill_key = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), number))
        sources, candidates = self._ends(generator)
        choice = self._chosen(sources, candidates, walk_key, generator)
        kept = np.flatnonzero(choice.found)
        chains = Account(len(sources), len(kept), rejected=_counted({FAR: len(sources) - len(kept)}))
        sources, targets = sources[kept], candidates[kept, choice.candidate[kept]]
        starts = np.stack([sources - settings.piece + 1, targets], axis=1)
        if len(kept) == 0:
            return GeneratedBatch(None, starts, chains, Account())
        done = self._filled(sources, targets, choice.place[kept], fill_key)
        made, verdict = self._finished(sources, targets, choice.place[kept], choice.similarity[kept], done)
        rejected = _counted({text: int((verdict == code).sum()) for code, text in REASONS.items()})
        completions = Account(len(kept), int((verdict == KEPT).sum()), rejected=rejected)
        return GeneratedBatch(made, starts, chains, completions)

    def _ends(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows to stitch from, and for each of them rows that might be stitched to."""
        settings = self.settings
        noise = settings.return_noise * generator.standard_normal(self.dataset.n_rows)
        low, high = pools(
            self._scores,
            self._sources,
            self._targets,
            noise,
            source_share=settings.source_share,
            target_share=settings.target_share,
        )
        sources = generator.choice(low, size=settings.batch)
        return sources, generator.choice(high, size=(settings.batch, settings.candidates))

    def _chosen(
        self, sources: np.ndarray, candidates: np.ndarray, key: jax.Array, generator: np.random.Generator
    ) -> Choice:
        settings, (shortest, longest) = self.settings, self.reach
        walked = self._filler.continuations(self._normalised(sources), key)[:, shortest : longest + 1]
        similar = np.concatenate(
            [
                similarities(walked[k : k + 1], self._normalised(candidates[k : k + 1]), settings.similarity)
                for k in range(len(sources))
            ]
        )
        elsewhere = self._owner(sources)[:, None] != self._owner(candidates)
        return choose(similar, elsewhere, settings.least_similarity(self.limits), shortest, generator)

    def _filled(self, sources: np.ndarray, targets: np.ndarray, places: np.ndarray, key: jax.Array) -> Filled:
        """The target is known as far as its trajectory and the sequence go."""
        horizon = self._filler.plan.planner.horizon
        last = np.asarray(self.dataset.offsets)[self._owner(targets) + 1] - 1
        ends = np.minimum(horizon - 1, places + last - targets)
        along = np.arange(horizon)[None, :] - places[:, None]
        rows = np.minimum(targets[:, None] + np.maximum(along, 0), last[:, None])
        rows[:, 0] = sources
        return self._filler.fill(self._normalised(rows), places, ends, key)

    def _finished(
        self,
        sources: np.ndarray,
        targets: np.ndarray,
        places: np.ndarray,
        similarity: np.ndarray,
        done: Filled,
    ) -> tuple[Dataset | None, Int[np.ndarray, "gaps"]]:
        """What passes as a dataset, and a verdict on each gap."""
        settings = self.settings
        verdict = np.full(len(sources), KEPT)
        verdict[done.deviation > settings.most_deviation(self.limits)] = DEVIATES
        verdict[~np.isfinite(done.deviation)] = NOT_FINITE
        passed = np.flatnonzero(verdict == KEPT)
        if len(passed) == 0:
            return None, verdict
        laid = lay_stitches(
            self.dataset,
            sources[passed],
            targets[passed],
            places[passed],
            done.observations[passed],
            self._finisher.actions(done.actions[passed]),
            done.deviation[passed],
            passed,
            settings.piece,
        )
        made = self._finisher.finish(laid, similarity)
        for trajectory, gap in enumerate(passed):
            first = int(made.offsets[trajectory]) + settings.piece - 1
            steps = slice(first, first + int(places[gap]))
            if self._ends_reject and made.terminated[steps].any():
                verdict[gap] = ENDS
            elif (
                settings.require_gain
                and self._has_returns
                and self._loses(made, steps, int(sources[gap]), int(targets[gap]))
            ):
                verdict[gap] = LOSES
        kept = np.flatnonzero(verdict[passed] == KEPT)
        if len(kept) == 0:
            return None, verdict
        return (made if len(kept) == len(made) else made.select(kept)), verdict

    def _loses(self, made: Dataset, steps: slice, source: int, target: int) -> bool:
        """Whether the state stitched from is worth less with the gap and the target behind it than it was."""
        assert made.rewards is not None
        after = gap_returns(
            np.asarray(made.rewards[steps], np.float64),
            made.terminated[steps],
            float(self._worth[target]),
            self.settings.discount,
        )
        before = float(self._worth[source])
        return after < before - SLACK * max(1.0, abs(before))

    def _normalised(self, rows: np.ndarray) -> np.ndarray:
        states = self._filler.normaliser.normalise(np.asarray(self.dataset.observations[rows]))
        return states.astype(np.float32)

    def _owner(self, rows: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.dataset.offsets, rows, side="right") - 1


def _counted(reasons: Mapping[str, int]) -> dict[str, int]:
    return {text: count for text, count in reasons.items() if count}
