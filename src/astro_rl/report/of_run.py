"""The page of a run folder, as `astro-rl run` leaves it: whatever has finished is told, the rest is left out.

RUN/
  data/                     the recorded dataset, unless it is given
  fit/                      fitted models
  augmented.<format>        augmented data
  train-ARM-LEARNER/        finished training runs; arm `original` is what others are compared with
  stages.json               {name: seconds}, optional
  truth.json                `astro-rl run`'s replays, optional
  measure.json              `astro-rl measure --out`, optional
  selection.json            `quality.selection_geometry`'s report, optional
  pairs.json                `report.completions.save_pairs`, optional
  report.html               what is written here
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from astro_rl.augment.settings import STAGES
from astro_rl.data.registry import load
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, DataError
from astro_rl.report.completions import load_pairs
from astro_rl.report.curves import curves_of_fit, curves_of_runs
from astro_rl.report.evidence import ChosenPair, Curves, Film, Measures, NoFilm
from astro_rl.report.gather import gather
from astro_rl.report.measures import geometry_of, metrics_of
from astro_rl.report.outcomes import scores_of, value_maps
from astro_rl.report.page import write_page
from astro_rl.report.provenance import method_name
from astro_rl.report.story import Link, RunStory, Scores, Stage, Truth, ValueMaps, Walls
from astro_rl.report.walls import walls_of
from astro_rl.run.files import read_json
from astro_rl.run.policy import load_policy
from astro_rl.tasks import get_task
from astro_rl.tasks.task import Task

PAGE = "report.html"
MEASURED, SELECTION, PAIRS = "measure.json", "selection.json", "pairs.json"
TRAINING = re.compile(r"train-(?P<arm>.+)-(?P<learner>[a-z0-9]+)")
KINDS = {
    "generated": "between two generated states",
    "into gap": "from a recorded state into a gap",
    "out of gap": "from a gap to a recorded state",
}
"""Transitions with a generated end, as `quality.truth` tells them apart."""

Runs = Mapping[str, Mapping[str, Path]]
"""Finished training runs by learner, then by arm."""


def report_run(
    run_folder: str | Path,
    *,
    out: str | Path | None = None,
    dataset: Dataset | None = None,
    film: bool = False,
    commands: Sequence[str] = (),
) -> Path:
    """Write the page, RUN/report.html unless told otherwise, and return where it lies. Started again, it is written
    again."""
    folder = Path(run_folder)
    page = folder / PAGE if out is None else Path(out)
    story = story_of_run(folder, dataset=dataset, film=film, commands=commands, page_folder=page.parent)
    return write_page(story, page)


def story_of_run(
    run_folder: str | Path,
    *,
    dataset: Dataset | None = None,
    film: bool = False,
    commands: Sequence[str] = (),
    page_folder: Path | None = None,
) -> RunStory:
    """`dataset`: the recorded one, where the run was given it and has no copy. `film`: draw a trajectory too, which
    takes a renderer and a minute. `page_folder`: where links start."""
    folder = Path(run_folder)
    if not folder.is_dir():
        raise DataError("There is no such run.", file=folder, fix="name the folder of an astro-rl run")
    runs = finished_runs(folder)
    dataset = _recorded(folder) if dataset is None else dataset
    augmented_at = next(iter(sorted(folder.glob("augmented.*"))), None)
    augmented = None if augmented_at is None else load(augmented_at)
    task = _task(folder, runs)
    models = _models(folder)
    xy = None if task is None else task.xy_indices
    walls = None if task is None else walls_of(task)
    geometry, chosen = _geometry(folder)
    return gather(
        task,
        dataset,
        augmented,
        name="" if task is not None else folder.name,
        distances=None if models is None else models.temporal,
        values=() if xy is None else _value_maps(runs, dataset, xy, walls),
        scores=_scores(runs),
        pairs=load_pairs(folder / PAIRS) if (folder / PAIRS).is_file() else (),
        geometry=geometry,
        chosen=chosen,
        film=_film(task, dataset, augmented) if film else None,
        metrics=metrics_of(read_json(folder / MEASURED), file=folder / MEASURED)
        if (folder / MEASURED).is_file()
        else None,
        curves=_curves(folder, runs),
        truth=_truth(folder),
        stages=_stages(folder),
        machine=_machine(runs),
        settings={} if models is None else fit_texts(models),
        commands=commands,
        links=_links(folder, runs, augmented_at, folder if page_folder is None else page_folder),
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
        "There is no dataset in this run.",
        file=folder / "data",
        fix="name the folder of an astro-rl run, and its dataset with --data where the run was given one",
    )


def _models(folder: Path) -> Any:
    """None while the fit goes on."""
    from astro_rl.run.models import load_models

    with suppress(DataError):
        return load_models(folder / "fit")
    return None


def _task(folder: Path, runs: Runs) -> Task | None:
    """The one that training or the fit was told."""
    places = [path for arms in runs.values() for path in arms.values()] + [folder / "fit"]
    for path in places:
        with suppress(AstroError):
            name = read_json(path / "config.json").get("task")
            if name is not None:
                return get_task(name)
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
        scores_of(learner, {method_name(arm): [path] for arm, path in arms.items()})
        for learner, arms in runs.items()
    ]
    return [scores for scores in found if scores is not None]


def _value_maps(runs: Runs, dataset: Dataset, xy: tuple[int, int], walls: Walls | None) -> list[ValueMaps]:
    """Of ASTRO's arm, or of the first rival's where it has none."""
    found = []
    for learner, arms in runs.items():
        others = sorted((arm for arm in arms if arm != "original"), key=lambda arm: (arm != "astro", arm))
        if "original" in arms and others:
            before, after = (load_policy(arms[arm]) for arm in ("original", others[0]))
            found.append(value_maps(learner, before, after, dataset, xy, walls=walls))
    return found


def _curves(folder: Path, runs: Runs) -> list[Curves]:
    found = [
        curve
        for learner, arms in runs.items()
        for curve in curves_of_runs(learner, {method_name(arm): [path] for arm, path in arms.items()})
    ]
    return [*found, *curves_of_fit(folder / "fit")]


def _geometry(folder: Path) -> tuple[Measures | None, dict[str, tuple[ChosenPair, ...]]]:
    path = folder / SELECTION
    return geometry_of(read_json(path), file=path) if path.is_file() else (None, {})


def _film(task: Task | None, dataset: Dataset, augmented: Dataset | None) -> Film | NoFilm:
    from astro_rl.report.film import film_of

    if task is None:
        return NoFilm("no task says how the simulator is built.")
    if augmented is None:
        return NoFilm("there is no augmented data yet.")
    return film_of(augmented, dataset, task)


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


def _links(folder: Path, runs: Runs, augmented: Path | None, start: Path) -> list[Link]:
    found = [] if augmented is None else [("augmented data", augmented)]
    found += [
        (f"results of {learner.upper()}, {method_name(arm)}", path / "results.json")
        for learner, arms in runs.items()
        for arm, path in arms.items()
    ]
    found += [
        (text, folder / name)
        for text, name in (("measurement", MEASURED), ("selection geometry", SELECTION), ("pairs", PAIRS))
    ]
    return [
        Link(text, Path(os.path.relpath(path, start)).as_posix()) for text, path in found if path.exists()
    ]
