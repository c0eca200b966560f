"""`astro-rl run`: from data to scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from astro_rl.cli.astro import FitPreset, Settings
from astro_rl.cli.output import bar, print_json, print_table
from astro_rl.cli.train import DEFAULT_STEPS, Preset, parse_settings


@dataclass(frozen=True)
class Run:
    """Everything for one task: make or take its dataset, fit ASTRO, augment, train with and without, evaluate, report.

    The same command continues where it was stopped.
    """

    task: Positional[str]
    """A task's name (astro-rl tasks lists them)."""
    out: Path
    """The folder for all of it."""
    data: Path | None = None
    """The dataset. Without one it is made, where that is possible."""
    episodes: int | None = None
    """Episodes of a made dataset. Default: the published number."""
    preset: FitPreset = "auto"
    """Sizes of ASTRO's models."""
    set: Settings = ()
    """ASTRO's settings that differ from the preset, for example --set dynamics.steps=50000."""
    shape: tuple[int, int, int] | None = None
    """Pieces of a chain, l, M. Default: read off the data."""
    transitions: int | None = None
    """Augmented transitions. Default: as many as the dataset has."""
    rounds: int = 1
    """Rounds of augmentation."""
    learners: tuple[Literal["iql", "fql", "bc", "td3bc", "rebrac"], ...] = ("iql", "fql")
    """Which learners to train."""
    learner_preset: Preset = "cpu"
    """Sizes of the learners' networks."""
    learner_set: Settings = ()
    """Learner settings that differ from the preset."""
    steps: int | None = None
    """Updates of each learner. Default: 1,000 (tiny), 300,000 (cpu), 1,000,000 (paper, fql)."""
    seeds: int = 4
    """Training seeds for each learner and arm."""
    first_seed: int = 0
    """The first of them."""
    eval_episodes: int = 50
    """Evaluation episodes a seed."""
    seed: int = 0
    """Of data, fit and augmentation."""
    json: bool = False
    """Print scores and times as JSON."""

    def run(self) -> int:
        from astro_rl.run.devices import use_all_cores
        from astro_rl.run.pipeline import Plan, run_pipeline
        from astro_rl.run.train import TrainSettings
        from astro_rl.tasks import get_task

        use_all_cores()
        steps = DEFAULT_STEPS[self.learner_preset] if self.steps is None else self.steps
        plan = Plan(
            task=get_task(self.task),
            data=self.data,
            episodes=self.episodes,
            preset=self.preset,
            settings=parse_settings(self.set),
            shape=self.shape,
            transitions=self.transitions,
            rounds=self.rounds,
            learners=self.learners,
            learner_preset=self.learner_preset,
            learner_settings=parse_settings(self.learner_set),
            training=TrainSettings(
                steps=steps,
                seeds=tuple(range(self.first_seed, self.first_seed + self.seeds)),
                log_every=min(1_000, steps),
                checkpoint_every=min(20_000, steps),
                episodes=self.eval_episodes,
            ),
            seed=self.seed,
        )
        outcome = run_pipeline(plan, self.out, bar=bar, say=(lambda text: None) if self.json else print)
        show(outcome, self.json)
        return 0


def show(outcome: Any, as_json: bool) -> None:
    """Scores with intervals, times, and the page."""
    from astro_rl.report.of_run import report_run

    page = report_run(outcome.folder, dataset=outcome.dataset)
    if as_json:
        print_json(
            {
                "folder": str(outcome.folder),
                "page": str(page),
                "scores": outcome.scores,
                "seconds": dict(outcome.seconds),
            }
        )
        return
    rows = [
        (learner, arm, f"{sum(values) / len(values):.1f}", " ".join(f"{value:.0f}" for value in values))
        for learner, arms in outcome.scores.items()
        for arm, values in arms.items()
    ]
    print_table("success %", ("learner", "data", "mean", "each seed"), rows)
    print("seconds: " + ", ".join(f"{stage} {seconds:.0f}" for stage, seconds in outcome.seconds.items()))
    print(f"page: {page}")
