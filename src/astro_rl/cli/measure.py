"""`astro-rl measure`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from astro_rl.cli.output import print_json
from astro_rl.errors import AstroError, ConfigError

Skippable = Literal["simulator", "ensemble", "dynamics", "completion", "geometry", "novelty", "values"]


@dataclass(frozen=True)
class Measure:
    """Measure augmented data in every way that applies, each figure beside its value on real held-out data.

    Works on any data: with arrays alone, an ensemble learned from the recordings judges generated transitions, and
    novelty and geometry are measured. A task adds the simulator, a fit adds its models, runs add values.
    """

    augmented: Positional[Path]
    """The dataset to measure, in any format that `astro-rl data inspect` reads."""
    real: Path | None = None
    """The recordings it was made from. Little can be said without them."""
    held_out: Path | None = None
    """Other recordings of the same kind, such as OGBench's -val files. Default: some of the real ones."""
    task: str | None = None
    """The task, for simulator, walls and where x and y stand. Default: the one that the data's lineage names."""
    fit: Path | None = None
    """The folder of a fit of the real data, for its models' errors."""
    runs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME=]FOLDER")] = ()
    """Finished runs (astro-rl train), the one without augmented data first, for values. Runs of one NAME are taken
    together."""
    xy: tuple[int, int] | None = None
    """Entries of an observation that hold x and y, where no task says so."""
    violation: bool = False
    """Also appendix C's dynamics violation rate (minutes)."""
    skip: tuple[Skippable, ...] = ()
    """Parts to leave out."""
    rows: int = 2000
    """Transitions of each kind that are looked at."""
    sequences: int = 100
    """Trajectories and windows that are looked at."""
    seed: int = 0
    """Same seed, same figures."""
    workers: int | None = None
    """Processes that run the simulator. Default: one a core. 0: this one."""
    out: Path | None = None
    """Write everything as JSON to this file."""
    json: bool = False
    """Print the JSON instead of the table."""

    def run(self) -> int:
        from astro_rl.data import load
        from astro_rl.quality.measure import measure
        from astro_rl.run.files import jsonable, write_json
        from astro_rl.run.models import load_models

        if self.out is not None and not self.out.parent.is_dir():
            raise ConfigError("There is no such folder.", file=self.out.parent, fix="make it first")
        runs = named_runs(self.runs)
        augmented = load(self.augmented)
        report = measure(
            augmented,
            task=task_of(self.task, augmented.info),
            real=None if self.real is None else load(self.real),
            held_out=None if self.held_out is None else load(self.held_out),
            models=None if self.fit is None else load_models(self.fit),
            runs=runs,
            xy=self.xy,
            violation=self.violation,
            skip=self.skip,
            rows=self.rows,
            sequences=self.sequences,
            seed=self.seed,
            workers=self.workers,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
        told = jsonable({"files": self._files(), **report.as_json()})
        if self.out is not None:
            write_json(self.out, told)
        if self.json:
            print_json(told)
        else:
            print(report.table())
        return 0

    def _files(self) -> dict[str, Any]:
        named = {"augmented": self.augmented, "real": self.real, "held_out": self.held_out, "fit": self.fit}
        return {name: str(path) for name, path in named.items() if path is not None}


def named_runs(given: Sequence[str]) -> dict[str, list[Path]]:
    """`NAME=FOLDER` or folders alone, which are called by their last part."""
    runs: dict[str, list[Path]] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        path = Path(folder if equals else text)
        if not path.is_dir():
            raise ConfigError(
                "There is no such run.", file=path, field="--runs", fix="name the folder of a finished run"
            )
        runs.setdefault(name if equals else path.resolve().name, []).append(path)
    if len(runs) == 1:
        raise ConfigError(
            "Values are compared between runs.",
            field="--runs",
            found=" ".join(given),
            expected="runs of two names or more, the one without augmented data first",
            fix="--runs before=FOLDER after=FOLDER",
        )
    return runs


def task_of(name: str | None, info: Mapping[str, Any]) -> Any:
    """The task that was named, or that lineage names, if it is one of ours."""
    from astro_rl.tasks import get_task

    if name is not None:
        return get_task(name)
    lineage = info.get("lineage")
    told = lineage.get("task") if isinstance(lineage, Mapping) else None
    try:
        return get_task(told) if isinstance(told, str) else None
    except AstroError:
        return None
