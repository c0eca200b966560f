"""Everything from data to scores in one folder: what `astro-rl run` and the quickstart do.

RUN/
  data/                           the dataset, where it was made here
  fit/                            models (`run.fit`)
  augmented.astro                 augmented data (`run.augment`)
  truth.json                      what the simulator says of it, where it can be put into its states
  train-original-iql/ …           a training run for each learner, without and with it (`run.train`)
  stages.json, summary.json       times and scores
  report.html                     the page
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from astro_rl.agents.presets import learner_for
from astro_rl.astro import Astro
from astro_rl.augment.fitting import Bar, no_bar
from astro_rl.augment.settings import settings_for
from astro_rl.collect import make_dataset
from astro_rl.collect.request import check_request
from astro_rl.data import Dataset, load
from astro_rl.errors import ConfigError, UnavailableError
from astro_rl.quality.truth import truth_of
from astro_rl.run.evaluation import require_environment
from astro_rl.run.files import read_json, write_json
from astro_rl.run.train import Execution, TrainSettings, train
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import Task, relabel
from astro_rl.tasks.states import StateMap

ORIGINAL, ASTRO, TRUTH = "original", "astro", "truth.json"
LearnerName = Literal["iql", "fql", "bc", "td3bc", "rebrac"]


@dataclass(frozen=True)
class Plan:
    """What is done, and how much of it."""

    task: Task
    data: Path | None = None
    """None: the task's dataset is made."""
    episodes: int | None = None
    """Of a made dataset. None: as many as the published one has."""
    preset: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of ASTRO, by path."""
    shape: tuple[int, int, int] | None = None
    transitions: int | None = None
    """To augment. None: as many as the dataset has."""
    rounds: int = 1
    learners: tuple[LearnerName, ...] = ("iql", "fql")
    learner_preset: str = "cpu"
    learner_settings: Mapping[str, Any] = field(default_factory=dict)
    training: TrainSettings = field(default_factory=lambda: TrainSettings(steps=300_000, seeds=(0, 1, 2, 3)))
    seed: int = 0
    """Of data, fit and augmentation; training has its own seeds."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where everything lies, and the scores: learner to arm to a figure a seed."""

    folder: Path
    dataset: Dataset
    augmented: Dataset
    stitcher: Astro
    runs: Mapping[str, Mapping[str, Path]]
    scores: Mapping[str, Mapping[str, list[float]]]
    seconds: Mapping[str, float]


def run_pipeline(
    plan: Plan, out: str | Path, *, bar: Bar = no_bar, say: Callable[[str], None] = lambda text: None
) -> Outcome:
    """All stages. Each is resumable by itself; a finished one costs nothing when this is called again."""
    folder = Path(out)
    require_environment(plan.task.env_id)
    require_possible(plan)
    folder.mkdir(parents=True, exist_ok=True)
    watch = Stopwatch(folder / "stages.json")
    with watch("data"):
        path = plan.data if plan.data is not None else _made(plan, folder, bar)
        dataset = relabel(load(path), plan.task)
    say(f"data: {dataset.n_trajectories:,} trajectories, {dataset.n_transitions:,} transitions")
    with watch("fit"):
        stitcher = Astro.fit(
            dataset,
            preset=plan.preset,
            task=plan.task,
            shape=plan.shape,
            settings=plan.settings,
            seed=plan.seed,
            out=folder / "fit",
            bar=bar,
        )
    say(f"chains: {stitcher.models.why}")
    with watch("augment"):
        augmented = stitcher.augment(
            dataset.n_transitions if plan.transitions is None else plan.transitions,
            out=folder / "augmented.astro",
            seed=plan.seed,
            rounds=plan.rounds,
            bar=bar,
        )
    say(f"augmented: {augmented.n_trajectories:,} trajectories, {augmented.n_transitions:,} transitions")
    if isinstance(plan.task.state, StateMap) and not (folder / TRUTH).exists():
        with watch("truth"):
            report = truth_of(augmented, plan.task, rows=1_000, sequences=50, real=dataset, seed=plan.seed)
            write_json(folder / TRUTH, report.as_json())
    runs: dict[str, dict[str, Path]] = {}
    scores: dict[str, dict[str, list[float]]] = {}
    for name in plan.learners:
        learner = learner_for(name, preset=plan.learner_preset, task=plan.task, **plan.learner_settings)
        for arm, extra in ((ORIGINAL, None), (ASTRO, augmented)):
            with watch(f"{arm} {name}"):
                result = train(
                    dataset,
                    learner,
                    plan.training,
                    out=folder / f"train-{arm}-{name}",
                    task=plan.task,
                    augmented=extra,
                    execution=Execution(progress=bar),
                )
            runs.setdefault(name, {})[arm] = result.folder
            scores.setdefault(name, {})[arm] = result.scores
    write_json(folder / "summary.json", {"task": plan.task.name, "scores": scores, "seconds": watch.seconds})
    return Outcome(folder, dataset, augmented, stitcher, runs, scores, watch.seconds)


def require_possible(plan: Plan) -> None:
    """Settings that would be refused after minutes of work are refused before it."""
    settings_for(plan.preset, plan.settings)
    for learner in plan.learners:
        learner_for(learner, preset=plan.learner_preset, task=plan.task, **plan.learner_settings)
    for name, value in (
        ("transitions", plan.transitions),
        ("rounds", plan.rounds),
        ("episodes", plan.episodes),
    ):
        if value is not None and value < 1:
            raise ConfigError("This has to be at least 1.", field=name, found=value)
    if plan.shape is not None:
        ChainShape(*plan.shape)
    if plan.data is None:
        try:
            check_request(plan.task.dataset, plan.episodes, None, plan.seed)
        except UnavailableError as error:
            raise UnavailableError(
                error.what,
                fix=f"astro-rl data fetch {plan.task.dataset} --out DIR, then name its file with --data",
            ) from error
    if plan.data is not None and plan.episodes is not None:
        raise ConfigError(
            "The number of episodes is that of a dataset that is made; this one is given.",
            field="episodes",
            found=f"{plan.episodes}, and data {plan.data}",
            fix="leave one of them out",
        )


class Stopwatch:
    """Seconds a stage took, kept in a file: a stage that was resumed counts all its parts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seconds: dict[str, float] = read_json(path) if path.exists() else {}
        self._stage, self._start = "", 0.0

    def __call__(self, stage: str) -> Stopwatch:
        self._stage = stage
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start + self.seconds.get(self._stage, 0.0)
        self.seconds[self._stage] = round(spent, 1)
        write_json(self._path, self.seconds)


def _made(plan: Plan, folder: Path, bar: Bar) -> Path:
    name = plan.task.dataset
    with bar("making data", plan.episodes or 0, "episodes") as report:
        path, _ = make_dataset(
            name, out=folder / "data", episodes=plan.episodes, seed=plan.seed, progress=report
        )
    return path
