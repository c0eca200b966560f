"""The upper bound on what stitching can do: the same chains, completed by the simulator instead of by models.

Every gap is driven by the expert that the data is made with, from the last state of a piece towards the first x-y of
the next one, for exactly MASK states. What it meets is true by construction. Laid out, cut and finished by the same
code as `anchored` augmentation: a junction stays where the arriving state is near enough to the real one, else the
trajectory ends with the state that was reached. Data of this kind that does not help says that stitching these chains
cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from astro_rl.augment.check import Errors, errors, step_scale
from astro_rl.augment.finish import Finisher, projection
from astro_rl.augment.jobs import Completions
from astro_rl.augment.layout import lay_anchored
from astro_rl.augment.limits import LEVELS, RealLimits
from astro_rl.augment.lineage import source_digest
from astro_rl.augment.options import GenerateSettings
from astro_rl.augment.verdicts import CUT, judge
from astro_rl.data.catalogue import RECIPES
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError, UnavailableError
from astro_rl.quality.driving import Driver, Filled, Gap
from astro_rl.quality.replay import checked_state
from astro_rl.quality.workers import Crew, Progress
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.task import SuccessTiming, Task

JOB_GAPS = 16
ATTEMPTS = 16
"""Of 60 gaps of 12 states that real ants crossed, so many are crossed within 1.3 typical steps over all numbers and 2
in the plane: 18 % in one attempt, 36 % in four, 50 % in sixteen. The point needs a second one now and then."""


def complete_in_simulator(
    dataset: Dataset,
    task: Task,
    shape: ChainShape,
    starts: Int[np.ndarray, "chains pieces"],
    *,
    jump: float,
    jump_xy: float | None = None,
    seed: int = 0,
    noise: float | None = None,
    attempts: int = ATTEMPTS,
    statistic: Float[np.ndarray, "chains"] | None = None,
    timing: SuccessTiming | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Chains of source rows (the first of each piece), completed; columns and lineage as augmented data has them.

    For many batches of chains, keep a `SimulatorCompleter`. The arguments are its.
    """
    with SimulatorCompleter(
        dataset,
        task,
        shape,
        jump=jump,
        jump_xy=jump_xy,
        noise=noise,
        attempts=attempts,
        timing=timing,
        workers=workers,
    ) as completer:
        return completer.complete(starts, seed=seed, statistic=statistic, progress=progress)


class SimulatorCompleter:
    """What every batch of chains needs, prepared once: the source's scales, and processes with a simulator each."""

    def __init__(
        self,
        dataset: Dataset,
        task: Task,
        shape: ChainShape,
        *,
        jump: float,
        jump_xy: float | None = None,
        noise: float | None = None,
        attempts: int = ATTEMPTS,
        timing: SuccessTiming | None = None,
        workers: int | None = None,
    ) -> None:
        """`jump`, `jump_xy`: the largest miss at a junction, in typical steps, over all numbers and in the plane. For
        the same rule as the models' data give `limits.at("jump", settings.jump_quantile)`. `noise`: of the actions;
        the dataset's recipe's unless given. `attempts` with other noise a gap, of which the nearest arrival is kept.
        Results do not depend on `workers` (None: one a core)."""
        self.dataset, self.task, self.shape = dataset, task, shape
        self._driver = _driver(task, dataset, noise, attempts, jump, jump_xy)
        self._limits, self._normaliser = _limits(jump, jump_xy), fit_normaliser(dataset.observations)
        self._scale = step_scale(dataset, self._normaliser, task.xy_indices)
        self._finisher = Finisher(
            dataset, self._normaliser, self._limits, projection(dataset, task), task=task, timing=timing
        )
        self._digest = source_digest(dataset)
        self._crew = Crew(workers)

    def __enter__(self) -> SimulatorCompleter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._crew.close()

    def complete(
        self,
        starts: Int[np.ndarray, "chains pieces"],
        *,
        seed: int = 0,
        statistic: Float[np.ndarray, "chains"] | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """Noise follows from seed, and from a gap's place in `starts`: give each batch a seed of its own."""
        shape, dataset = self.shape, self.dataset
        _check_starts(dataset, shape, starts)
        filled = self._fill(starts, seed, progress)
        states, actions, _ = filled
        found, verdict = self._judged(starts, states, actions)
        chains, gaps = len(starts), starts.shape[1] - 1
        laid = lay_anchored(
            shape,
            dataset,
            starts,
            states.reshape(chains, gaps, *states.shape[1:]),
            actions.reshape(chains, gaps, *actions.shape[1:]),
            np.zeros((chains, gaps), np.float32),
            verdict.reshape(chains, gaps),
            tail=False,
        )
        made = self._finisher.finish(laid, np.zeros(chains, np.float32) if statistic is None else statistic)
        return replace(
            made, info={**made.info, "lineage": self._record(seed, chains, filled, found, verdict)}
        )

    def _fill(self, starts: np.ndarray, seed: int, progress: Progress | None) -> Filled:
        dataset, (chains, pieces) = self.dataset, starts.shape
        begin, target = (np.asarray(dataset.observations[rows]) for rows in self._gap_rows(starts))
        gaps = [Gap(begin[k], target[k], (seed, k)) for k in range(chains * (pieces - 1))]
        sigma = self._scale.sigma * self._normaliser.scale
        types = (dataset.observations.dtype, dataset.actions.dtype)
        given = [
            (
                self._driver,
                gaps[first : first + JOB_GAPS],
                self.shape.mask + 1,
                sigma,
                list(self.task.xy_indices or ()),
                types,
            )
            for first in range(0, len(gaps), JOB_GAPS)
        ]
        parts = self._crew.run("astro_rl.quality.driving:fill_gaps", given, progress)
        states, actions, attempts = (np.concatenate(column) for column in zip(*parts, strict=True))
        # A completion has as many actions as states.
        return Filled(states, np.pad(actions, ((0, 0), (0, 1), (0, 0))), attempts)

    def _gap_rows(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The last row before each gap and the first one behind it."""
        return (starts[:, :-1] + self.shape.segment - 1).ravel(), starts[:, 1:].ravel()

    def _judged(
        self, starts: np.ndarray, states: np.ndarray, actions: np.ndarray
    ) -> tuple[Errors, np.ndarray]:
        """By the very rule that the models' completions are judged by."""
        known = np.zeros(states.shape[:2], bool)
        known[:, [0, -1]] = True
        given = np.zeros_like(states)
        for place, rows in zip((0, -1), self._gap_rows(starts), strict=True):
            given[:, place] = self._normaliser.normalise(self.dataset.observations[rows])
        done = Completions(
            given, known, self._normaliser.normalise(states), actions, np.zeros(len(states), np.float32)
        )
        found = errors(done, self._scale)
        # What may be missed by is the caller's to say.
        by_caller = GenerateSettings(mode="anchored", jump_least=0.0, jump_most=float("inf"))
        return found, judge(found, self._limits, by_caller)

    def _record(
        self, seed: int, chains: int, filled: Filled, found: Errors, verdict: np.ndarray
    ) -> dict[str, Any]:
        shape, driver, cut = self.shape, self._driver, int((verdict == CUT).sum())
        measures = ("jump", "jump_xy") if self._scale.has_plane else ("jump",)
        return {
            "augmenter": "simulator",
            "source_digest": self._digest,
            "task": self.task.name,
            "seed": seed,
            "shape": {"pieces": shape.pieces, "segment": shape.segment, "mask": shape.mask},
            "driver": {"agent": driver.agent, "noise": driver.noise, "attempts": driver.attempts},
            "limits": {"jump": driver.jump, "jump_xy": driver.jump_xy},
            "chains": chains,
            "completions": {"proposed": len(verdict), "kept": len(verdict) - cut, "cut": cut},
            "attempts_made": int(filled.attempts.sum()),
            "arrivals": {name: _quantiles(getattr(found, name)) for name in measures},
        }


def _driver(
    task: Task, dataset: Dataset, noise: float | None, attempts: int, jump: float, jump_xy: float | None
) -> Driver:
    state = checked_state(task, dataset.observations[:1], dataset.actions[:1])
    recipe = RECIPES.get(task.dataset)
    if recipe is None or recipe.agent not in ("point", "ant"):
        raise UnavailableError(
            f"No expert that drives {task.name} is at hand.",
            expected="a task of OGBench's pointmaze or antmaze",
        )
    if attempts < 1:
        raise ConfigError("A gap needs an attempt.", field="attempts", found=attempts, expected=">= 1")
    if jump < 0 or (jump_xy is not None and jump_xy < 0):
        raise ConfigError("A miss cannot be negative.", field="jump, jump_xy", found=f"{jump}, {jump_xy}")
    noise = recipe.noise if noise is None else noise
    return Driver(task.env_id, state, recipe.agent, noise, attempts, jump, jump_xy)


def _limits(jump: float, jump_xy: float | None) -> RealLimits:
    """The simulator deviates from nothing, so only jumps are limited; a typical deviation of 1 gives every trajectory
    weight 1."""

    def flat(value: float) -> tuple[float, ...]:
        return (float(value),) * len(LEVELS)

    return RealLimits(
        mode="anchored",
        windows=0,
        deviation=flat(1.0),
        step_error=flat(1.0),
        jump=flat(jump),
        jump_xy=None if jump_xy is None else flat(jump_xy),
    )


def _check_starts(dataset: Dataset, shape: ChainShape, starts: np.ndarray) -> None:
    if starts.shape[0] < 1 or starts.shape[1] < 2:
        raise ConfigError(
            "There is no gap to fill.", field="starts", found=starts.shape, expected="chains of >= 2"
        )
    rows = starts[:, :, None] + np.arange(shape.segment)
    inside = (rows >= 0).all() and (rows < dataset.n_rows).all()
    owner = np.searchsorted(dataset.offsets, rows, side="right")
    if not inside or (owner[..., 0] != owner[..., -1]).any():
        raise DataError(
            "Some pieces do not lie in one trajectory of the dataset.",
            field="starts",
            fix="give first rows of windows of `shape.segment` states, as a chain search finds them",
        )


def _quantiles(values: np.ndarray) -> dict[str, Any]:
    return {f"{level}": float(np.quantile(values, level)) for level in (0.1, 0.5, 0.9)}
