"""`astro-rl train` and `astro-rl evaluate`."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from astro_rl.cli.output import bar, print_scores
from astro_rl.errors import ConfigError

DEFAULT_STEPS = {"tiny": 1_000, "cpu": 300_000, "paper": 1_000_000, "fql": 1_000_000}
Preset = Literal["tiny", "cpu", "paper", "fql"]


@dataclass(frozen=True)
class Train:
    """Train a learner on a dataset, for one or several seeds at once, and evaluate it.

    The same command continues a run that was stopped. Sizes come from the preset: tiny (2x32, for tests), cpu (3x128),
    paper (3x256), fql (4x512 with layer norm on the value, as FQL's authors).
    """

    data: Positional[Path]
    """The dataset: a file or store in any format that `astro-rl data inspect` reads."""
    out: Path
    """The run's folder. Made if it is not there; continued if it is."""
    task: str | None = None
    """Whose rewards to train on and where to evaluate (astro-rl tasks lists them). Without one, the dataset's
    own rewards are used and nothing is evaluated."""
    learner: Literal["iql", "fql", "bc", "td3bc", "rebrac"] = "iql"
    preset: Preset = "cpu"
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Learner settings that differ from the preset, for example --set alpha=3 expectile=0.8."""
    augmented: Path | None = None
    """A second dataset to mix in, such as `astro-rl augment` writes."""
    augmented_share: float = 0.5
    """The share of each batch that comes from the augmented dataset."""
    any_source: bool = False
    """Take augmented data that was made from another dataset."""
    steps: int | None = None
    """Updates. Default: 1,000 (tiny), 300,000 (cpu), 1,000,000 (paper, fql)."""
    seeds: int = 1
    """How many seeds train side by side."""
    first_seed: int = 0
    """The first seed; the others follow it."""
    episodes: int = 50
    """Evaluation episodes a seed. 0 trains only."""
    log_every: int = 1_000
    """Updates between records."""
    checkpoint_every: int = 20_000
    """Updates between checkpoints: what a kill can cost."""
    memory: Literal["auto", "device", "stream"] = "auto"
    """Where data lies during training. stream reads it from disk, for datasets larger than memory."""
    evaluation_workers: int | None = None
    """Processes that step environments. Default: one a core."""
    track: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    """Trackers to feed besides the run's own records."""
    json: bool = False
    """Print the results as JSON."""

    def run(self) -> int:
        from astro_rl.agents.presets import learner_for
        from astro_rl.data import load
        from astro_rl.run.devices import use_all_cores
        from astro_rl.run.train import Execution, TrainSettings, train
        from astro_rl.tasks import get_task, relabel

        use_all_cores()
        task = None if self.task is None else get_task(self.task)
        learner = learner_for(self.learner, preset=self.preset, task=task, **parse_settings(self.set))
        settings = TrainSettings(
            steps=DEFAULT_STEPS[self.preset] if self.steps is None else self.steps,
            seeds=tuple(range(self.first_seed, self.first_seed + self.seeds)),
            augmented_share=self.augmented_share,
            log_every=self.log_every,
            checkpoint_every=self.checkpoint_every,
            episodes=self.episodes,
        )
        dataset = load(self.data)
        augmented = None if self.augmented is None else load(self.augmented)
        if task is not None:
            dataset = relabel(dataset, task)
            augmented = None if augmented is None else relabel(augmented, task)
        execution = Execution(
            memory=self.memory, evaluation_workers=self.evaluation_workers, trackers=self.track, progress=bar
        )
        result = train(
            dataset,
            learner,
            settings,
            out=self.out,
            task=task,
            augmented=augmented,
            any_source=self.any_source,
            execution=execution,
        )
        print_scores(result.results, folder=result.folder, as_json=self.json)
        return 0


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a finished run's policies again: more episodes, another task of the same shape."""

    run_folder: Positional[Path]
    """A folder that `astro-rl train` has finished."""
    task: str | None = None
    """Default: the task the run was trained for."""
    episodes: int = 50
    """Episodes a seed. The first 50 are those of the run itself."""
    evaluation_workers: int | None = None
    """Processes that step environments. Default: one a core."""
    json: bool = False
    """Print the results as JSON."""

    def run(self) -> int:
        from astro_rl.run.evaluation import evaluate_policy
        from astro_rl.run.policy import load_policy
        from astro_rl.tasks import get_task

        policy = load_policy(self.run_folder)
        task = get_task(self.task or trained_task(self.run_folder))
        with bar("evaluating", self.episodes * len(policy.seeds), "episodes") as report:
            evaluation = evaluate_policy(
                policy, task, episodes=self.episodes, workers=self.evaluation_workers, progress=report
            )
        print_scores({"evaluation": evaluation}, folder=self.run_folder, as_json=self.json)
        return 0


def trained_task(run_folder: Path) -> str:
    name = json.loads((run_folder / "config.json").read_text()).get("task")
    if name is None:
        raise ConfigError(
            "This run was trained without a task.",
            file=run_folder,
            fix="name the task to evaluate on with --task",
        )
    return name


def parse_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` as Python values, written as in JSON or as in Python; what is neither is text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(
                "A setting needs a name and a value.", field="--set", found=pair, expected="NAME=VALUE"
            )
        value = _value(text)
        settings[name.strip()] = tuple(value) if isinstance(value, list) else value
    return settings


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
