"""One training run, from data to scores, that can be killed at any moment and started again by the same call.

What decides the result is resolved first and written down; a run folder whose record differs is refused.
Training goes in compiled chunks; states are checkpointed between chunks, under the step they belong to.
Evaluation comes last, on the final states only, and its raw episodes are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from astro_rl.agents import LEARNERS
from astro_rl.agents.base import AnyLearner
from astro_rl.augment.lineage import require_augmented_from
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.run.evaluation import evaluate_policy, require_environment
from astro_rl.run.feeding import Feed
from astro_rl.run.policy import Policy, save_policy, settings_of
from astro_rl.tasks.task import Task
from astro_rl.training.batches import require_rewards

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TrainSettings:
    """What a run does besides the data, the learner and the task. All of it is recorded."""

    steps: int
    seeds: tuple[int, ...] = (0,)
    augmented_share: float = 0.5
    """The share of each batch that comes from augmented data, where there is any."""
    log_every: int = 1000
    """Steps in a compiled chunk, and between records."""
    checkpoint_every: int = 20_000
    episodes: int = 50
    """Evaluation episodes a seed, with the final states. 0: train only."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("log_every", 1), ("checkpoint_every", 1), ("episodes", 0)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"{name} is too small.", field=name, found=getattr(self, name), expected=f">= {least}"
                )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(
                "Seeds must be distinct whole numbers from 0 on.", field="seeds", found=self.seeds
            )
        if not 0 < self.augmented_share <= 1:
            raise ConfigError(
                "The share of augmented data must lie in (0, 1].",
                field="augmented_share",
                found=self.augmented_share,
                fix="to train without augmented data, do not name any",
            )


@dataclass(frozen=True)
class Execution:
    """How a run is carried out on this machine. None of it changes the result, so none of it is part of the record."""

    memory: Literal["auto", "device", "stream"] = "auto"
    """Where the data lies during training: on the device, or on disk."""
    evaluation_workers: int | None = None
    """Processes that step environments; None: one a core, 0: this one."""
    trackers: tuple[str, ...] = ()
    progress: Callable[[str, int, str], Any] | None = None
    """Makes a progress bar: (description, total, unit) to a context that yields (done, total) -> None."""


@dataclass(frozen=True)
class TrainResult:
    """Where a run lies and what it scored."""

    folder: Path
    seeds: tuple[int, ...]
    results: Mapping[str, Any] = field(repr=False)

    @property
    def scores(self) -> list[float]:
        """Success rate in percent, a value a seed; empty where nothing was evaluated."""
        evaluation = self.results.get("evaluation")
        return [] if evaluation is None else list(evaluation["scores"])


def train(
    dataset: Dataset,
    learner: AnyLearner,
    settings: TrainSettings,
    *,
    out: str | Path,
    task: Task | None = None,
    augmented: Dataset | None = None,
    any_source: bool = False,
    execution: Execution | None = None,
) -> TrainResult:
    """Train `learner` on `dataset` (and `augmented`), evaluate on `task`, leave everything in the folder `out`.

    Started again with the same arguments, it continues where it was; with others, it refuses and says what differs.
    Augmented data whose lineage names another source than `dataset` is refused, unless `any_source`.
    """
    from astro_rl.run.folder import RunFolder

    how = execution or Execution()
    check_fit(dataset, augmented, task, settings)
    if augmented is not None and not any_source:
        require_augmented_from(augmented, dataset)
    for source in (dataset, augmented):
        if source is not None:
            require_rewards(source, learner.uses_rewards)
    if task is not None and settings.episodes:
        require_environment(task.env_id)
    config = resolved_config(dataset, learner, settings, task, augmented)
    with RunFolder(Path(out)).open_or_create(config) as folder:
        finished = folder.read_result("results")
        if finished is not None:
            return TrainResult(folder.path, settings.seeds, finished)
        sources = tuple(source for source in (dataset, augmented) if source is not None)
        shares = (1.0,) if augmented is None else (1 - settings.augmented_share, settings.augmented_share)
        if settings.augmented_share == 1 and augmented is not None:
            sources, shares = (augmented,), (1.0,)
        with folder.tracking(how.trackers, config) as tracker:
            feed = Feed(sources, shares, learner, n_seeds=len(settings.seeds), memory=how.memory)
            states = _train_to_the_end(folder, tracker, feed, learner, settings, how)
            policy = Policy(learner, states, settings.seeds, dataset.observation_dim, dataset.action_dim)
            save_policy(policy, folder.path)
            results = {
                "steps": settings.steps,
                "seeds": list(settings.seeds),
                "evaluation": _evaluate(policy, task, settings, how),
            }
            folder.finish_records()
            tracker.finish(results)
            # Last: a run that has results is finished, and nothing of it is done again.
            folder.write_result("results", results)
        return TrainResult(folder.path, settings.seeds, results)


def resolved_config(
    dataset: Dataset,
    learner: AnyLearner,
    settings: TrainSettings,
    task: Task | None,
    augmented: Dataset | None,
) -> dict[str, Any]:
    """Everything that decides the result, in JSON's terms."""
    return {
        "dataset": {"digest": dataset.digest(), "transitions": dataset.n_transitions},
        "augmented": None
        if augmented is None
        else {"digest": augmented.digest(), "transitions": augmented.n_transitions},
        "task": None if task is None else task.name,
        "learner": {
            "name": next(name for name, kind in LEARNERS.items() if kind is type(learner)),
            "settings": settings_of(learner),
        },
        "training": {**asdict(settings), "seeds": list(settings.seeds)},
    }


def check_fit(
    dataset: Dataset, augmented: Dataset | None, task: Task | None, settings: TrainSettings
) -> None:
    """Refuse combinations that cannot work, before anything is written."""
    sizes = (dataset.observation_dim, dataset.action_dim)
    if augmented is not None and (augmented.observation_dim, augmented.action_dim) != sizes:
        raise ConfigError(
            "The augmented data is of another shape than the dataset.",
            found=f"{augmented.observation_dim} observations, {augmented.action_dim} actions",
            expected=f"{sizes[0]} observations, {sizes[1]} actions",
        )
    if task is not None and (task.observation_dim, task.action_dim) != sizes:
        raise ConfigError(
            f"The dataset does not belong to the task {task.name}.",
            found=f"{sizes[0]} observations, {sizes[1]} actions",
            expected=f"{task.observation_dim} observations, {task.action_dim} actions",
            fix="name the task that the data was recorded in, or none",
        )
    if settings.checkpoint_every % settings.log_every:
        raise ConfigError(
            "Checkpoints are written between chunks.",
            field="checkpoint_every",
            found=settings.checkpoint_every,
            expected=f"a multiple of log_every ({settings.log_every})",
        )


def _train_to_the_end(
    folder: Any, tracker: Any, feed: Feed, learner: AnyLearner, settings: TrainSettings, how: Execution
) -> Any:
    from astro_rl.training import init_states, seed_keys, spread_over_devices

    keys = seed_keys(settings.seeds)
    states = init_states(learner, keys, feed.observation_dim, feed.action_dim)
    step, restored = folder.checkpoints.restore_latest(states)
    if restored is not None:
        states = spread_over_devices(restored, len(settings.seeds))
    folder.rewind(step)
    with _bar(how, "training", settings.steps, "updates") as report:
        report(step, settings.steps)
        while step < settings.steps:
            length = min(settings.log_every, settings.steps - step)
            states, info = feed.train(states, keys, step, length)
            step += length
            metrics = {name: np.asarray(values) for name, values in info.items()}
            metrics["value/probe_mean"] = feed.probe_values(states)
            _write_records(folder, tracker, settings.seeds, step, metrics)
            if step % settings.checkpoint_every == 0 or step == settings.steps:
                folder.checkpoints.save(step, states)
            report(step, settings.steps)
    return states


def _write_records(
    folder: Any, tracker: Any, seeds: tuple[int, ...], step: int, metrics: Mapping[str, np.ndarray]
) -> None:
    from astro_rl.run.divergence import require_finite

    require_finite(metrics, seeds, step)
    for position, seed in enumerate(seeds):
        folder.records.write(
            step, {"seed": seed, **{name: float(v[position]) for name, v in metrics.items()}}
        )
    tracker.log(step, {name: float(np.mean(values)) for name, values in metrics.items()})


def _evaluate(
    policy: Policy, task: Task | None, settings: TrainSettings, how: Execution
) -> dict[str, Any] | None:
    if task is None or settings.episodes == 0:
        return None
    with _bar(how, "evaluating", settings.episodes * len(settings.seeds), "episodes") as report:
        return evaluate_policy(
            policy, task, episodes=settings.episodes, workers=how.evaluation_workers, progress=report
        )


def _bar(how: Execution, description: str, total: int, unit: str) -> Any:
    if how.progress is not None:
        return how.progress(description, total, unit)
    from contextlib import nullcontext

    return nullcontext(lambda done, total: None)
