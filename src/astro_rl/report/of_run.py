"""The page of a run folder, as `astro-rl run` leaves it: whatever has finished is told, the rest is left out.

RUN/
  data/                     the recorded dataset
  fit/                      fitted models
  augmented.<format>        augmented data
  train-ARM-LEARNER/        finished training runs; arm `original` is what others are compared with
  stages.json               {name: seconds}, optional
  report.html               what is written here
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from astro_rl.augment.settings import STAGES
from astro_rl.data.registry import load
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, DataError
from astro_rl.report.gather import gather
from astro_rl.report.outcomes import ASTRO, ORIGINAL, scores_of, value_maps
from astro_rl.report.page import write_page
from astro_rl.report.story import Link, RunStory, Scores, Stage, Truth, ValueMaps, Walls
from astro_rl.report.walls import walls_of
from astro_rl.run.files import read_json
from astro_rl.run.policy import load_policy
from astro_rl.tasks import get_task
from astro_rl.tasks.task import Task

PAGE = "report.html"
TRAINING = re.compile(r"train-(?P<arm>.+)-(?P<learner>[a-z0-9]+)")
NAMES = {"original": ORIGINAL, "astro": ASTRO}
"""How an arm is called on the page; others keep their folder's name."""

KINDS = {
    "generated": "between two generated states",
    "into gap": "from a recorded state into a gap",
    "out of gap": "from a gap to a recorded state",
}
"""Transitions with a generated end, as `quality.truth` tells them apart."""

Runs = Mapping[str, Mapping[str, Path]]
"""Finished training runs by learner, then by arm."""


def report_run(run_folder: str | Path, *, commands: Sequence[str] = ()) -> Path:
    """Write RUN/report.html and return where it lies. Started again, it is written again."""
    folder = Path(run_folder)
    return write_page(story_of_run(folder, commands=commands), folder / PAGE)


def story_of_run(run_folder: str | Path, *, commands: Sequence[str] = ()) -> RunStory:
    folder = Path(run_folder)
    runs = finished_runs(folder)
    dataset = _recorded(folder)
    augmented_at = next(iter(sorted(folder.glob("augmented.*"))), None)
    augmented = None if augmented_at is None else load(augmented_at)
    task = _task(runs)
    models = _models(folder)
    xy = None if task is None else task.xy_indices
    walls = None if task is None else walls_of(task)
    return gather(
        task,
        dataset,
        augmented,
        name="" if task is not None else folder.name,
        distances=None if models is None else models.temporal,
        values=() if xy is None else _value_maps(runs, dataset, xy, walls),
        scores=_scores(runs),
        truth=_truth(folder),
        stages=_stages(folder),
        machine=_machine(runs),
        settings={} if models is None else fit_texts(models),
        commands=commands,
        links=_links(folder, runs, augmented_at),
    )


def finished_runs(folder: Path) -> dict[str, dict[str, Path]]:
    """By learner, then arm, the original one first."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.glob("train-*")):
        named = TRAINING.fullmatch(path.name)
        if named is not None and (path / "results.json").is_file():
            found.setdefault(named["learner"], {})[named["arm"]] = path
    return {
        learner: dict(sorted(arms.items(), key=lambda entry: (entry[0] != "original", entry[0])))
        for learner, arms in found.items()
    }


def fit_texts(models: Any) -> dict[str, str]:
    """What somebody needs who fits again."""
    shape, settings = models.shape, models.settings
    return {
        "chain": f"n = {shape.pieces}, l = {shape.segment}, M = {shape.mask}, L = {shape.horizon}",
        "completion": settings.generate.mode,
        "updates": ", ".join(
            f"{stage} {getattr(settings, stage).steps:,}"
            for stage in STAGES
            if stage != "onestep" or models.onestep is not None
        ),
        "seed of the fit": str(models.seed),
    }


def _recorded(folder: Path) -> Dataset:
    for path in sorted((folder / "data").glob("*")):
        if path.name.startswith(".") or path.stem.endswith("-val") or path.name.endswith(".json"):
            continue
        return load(path)
    raise DataError(
        "There is no dataset in this run.", file=folder / "data", fix="name the folder of an astro-rl run"
    )


def _models(folder: Path) -> Any:
    """None while the fit goes on."""
    from astro_rl.run.models import load_models

    with suppress(DataError):
        return load_models(folder / "fit")
    return None


def _task(runs: Runs) -> Task | None:
    for arms in runs.values():
        for path in arms.values():
            name = read_json(path / "config.json").get("task")
            with suppress(AstroError):
                return None if name is None else get_task(name)
    return None


def _truth(folder: Path) -> list[Truth]:
    """Of transitions in the plane, by kind, beside recorded ones replayed the same way."""
    path = folder / "truth.json"
    if not path.is_file():
        return []
    report = read_json(path)
    group = next(iter(report["typical_step"]))
    figures = {kind: each["groups"][group] for kind, each in report["kinds"].items()}
    floor = figures.get("real", {})
    return [
        Truth(
            f"{text} ({group})",
            figures[kind]["median_of_rms_step"],
            figures[kind]["p95_of_rms_step"],
            floor.get("median_of_rms_step"),
            floor.get("p95_of_rms_step"),
        )
        for kind, text in KINDS.items()
        if kind in figures
    ]


def _scores(runs: Runs) -> list[Scores]:
    found = [
        scores_of(learner, {NAMES.get(arm, arm): [path] for arm, path in arms.items()})
        for learner, arms in runs.items()
    ]
    return [scores for scores in found if scores is not None]


def _value_maps(runs: Runs, dataset: Dataset, xy: tuple[int, int], walls: Walls | None) -> list[ValueMaps]:
    return [
        value_maps(
            learner, load_policy(arms["original"]), load_policy(arms["astro"]), dataset, xy, walls=walls
        )
        for learner, arms in runs.items()
        if {"original", "astro"} <= set(arms)
    ]


def _stages(folder: Path) -> list[Stage]:
    path = folder / "stages.json"
    return (
        [Stage(name, float(seconds)) for name, seconds in read_json(path).items()] if path.is_file() else []
    )


def _machine(runs: Runs) -> str | None:
    for arms in runs.values():
        for path in arms.values():
            with suppress(DataError, KeyError):
                found = read_json(path / "environment.json")
                return f"{found['cores']} cores, {found['cpu']}"
    return None


def _links(folder: Path, runs: Runs, augmented: Path | None) -> list[Link]:
    found = [] if augmented is None else [Link("augmented data", augmented.name)]
    found += [
        Link(f"results of {learner.upper()}, {NAMES.get(arm, arm)}", f"{path.name}/results.json")
        for learner, arms in runs.items()
        for arm, path in arms.items()
    ]
    return [link for link in found if (folder / link.path).exists()]
