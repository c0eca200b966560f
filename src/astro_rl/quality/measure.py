"""One call that measures augmented data in every way that applies, each beside its value on real held-out data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from astro_rl.augment.lineage import require_same_source, source_digest
from astro_rl.augment.models import FittedModels
from astro_rl.augment.shares import held_out_split
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, ConfigError, DataError
from astro_rl.quality import with_arrays, with_models, with_simulator
from astro_rl.quality.cells import check_plane
from astro_rl.quality.ensemble import EnsembleSettings
from astro_rl.quality.figures import Figure, LeftOut, MeasureReport
from astro_rl.quality.inputs import Inputs, Part
from astro_rl.quality.parts import RealParts, marked, real_parts, require_same_widths
from astro_rl.tasks import get_task
from astro_rl.tasks.relabel import check_width
from astro_rl.tasks.task import Task

Section = Literal[
    "simulator", "violation", "ensemble", "dynamics", "completion", "geometry", "novelty", "values"
]
SECTIONS: dict[Section, tuple[str, Callable[[Inputs], Part]]] = {
    "simulator": ("replays in the simulator, walls", with_simulator.simulator),
    "violation": ("dynamics violation rate", with_simulator.violation),
    "ensemble": ("ensemble of one-step models", with_models.ensemble),
    "dynamics": ("the dynamics model's own error", with_models.dynamics),
    "completion": ("completion errors", with_models.completion),
    "geometry": ("geometry of paths", with_arrays.geometry),
    "novelty": ("coverage and novelty", with_arrays.coverage),
    "values": ("values of trained learners", with_models.values),
}
Folders = str | Path | Sequence[str | Path]


def measure(
    augmented: Dataset,
    *,
    task: Task | str | None = None,
    real: Dataset | None = None,
    held_out: Dataset | None = None,
    models: FittedModels | None = None,
    runs: Mapping[str, Folders] | None = None,
    xy: tuple[int, int] | None = None,
    violation: bool = False,
    skip: Sequence[str] = (),
    ensemble: EnsembleSettings | None = None,
    rows: int = 2000,
    sequences: int = 100,
    seed: int = 0,
    workers: int | None = 0,
    say: Callable[[str], None] | None = None,
) -> MeasureReport:
    """Everything that applies to `augmented`; what does not is listed with its reason.

    `real`: the recordings it was made from. `held_out`: others of the same kind; unless given, some of `real` are held
    out, those that `models` were not fitted to where there are such. `task`: brings simulator, walls and where x and y
    stand; without one, `xy` names the two entries. `models`: a fit of `real`. `runs`: folders of trained runs by name,
    the one before augmentation first. `violation`: also appendix C's rate, which takes minutes. `rows` transitions of
    each kind and `sequences` trajectories or windows are looked at. `workers`: processes for the simulator; None is
    one a core, 0 this process.
    """
    _check(augmented, rows, sequences, skip)
    task = get_task(task) if isinstance(task, str) else task
    if task is not None:
        check_width(augmented, task)
        xy = xy or task.xy_indices
    if xy is not None:
        check_plane(augmented, xy)
    parts, why = None, Inputs.no_parts
    if real is None and (held_out is not None or models is not None):
        raise ConfigError(
            "Held-out data and a fit belong to the real data, which is not there.",
            field="real",
            fix="name the recordings that the data was made from (real=…, --real)",
        )
    if real is not None:
        require_same_widths(augmented, real, "The augmented data")
        parts, why = _parts(real, held_out, models, seed)
    given = Inputs(
        augmented=marked(augmented, real),
        real=real,
        parts=parts,
        task=task,
        xy=xy,
        models=models,
        runs={name: _folders(each) for name, each in (runs or {}).items()},
        ensemble=ensemble or EnsembleSettings(),
        rows=rows,
        sequences=sequences,
        seed=seed,
        workers=workers,
        say=say or (lambda text: None),
        no_parts=why,
    )
    figures: list[Figure] = list(with_arrays.facts(given).figures)
    details: dict[str, Any] = {}
    left_out: list[LeftOut] = []
    for name, (what, section) in SECTIONS.items():
        if name in skip:
            left_out.append(LeftOut(what, "it was to be skipped"))
            continue
        if name == "violation" and not violation:
            left_out.append(
                LeftOut(what, "it was not asked for, since it takes minutes (violation=True, --violation)")
            )
            continue
        try:
            found = section(given)
        except AstroError as error:
            left_out.append(LeftOut(what, _reason(error)))
            continue
        figures += found.figures
        details[name] = found.details
    return MeasureReport(
        figures=tuple(figures),
        left_out=tuple(left_out),
        details=details,
        data=_about(augmented, given),
        settings={
            "rows": rows,
            "sequences": sequences,
            "seed": seed,
            "xy": None if xy is None else list(xy),
            "violation": violation,
            "skip": list(skip),
        },
    )


def _check(augmented: Dataset, rows: int, sequences: int, skip: Sequence[str]) -> None:
    if rows < 1 or sequences < 1:
        raise ConfigError(
            "There has to be something to measure on.",
            field="rows, sequences",
            found=f"{rows}, {sequences}",
            expected="1 or more of each",
        )
    if unknown := sorted(set(skip) - set(get_args(Section))):
        raise ConfigError(
            "No part of a measurement is called that.",
            field="skip",
            found=", ".join(unknown),
            expected=", ".join(get_args(Section)),
        )
    if not augmented.n_transitions:
        raise DataError("The augmented data holds no transition.", found=f"{augmented.n_rows} rows")


def _parts(
    real: Dataset, held_out: Dataset | None, models: FittedModels | None, seed: int
) -> tuple[RealParts | None, str]:
    trajectories = None
    if models is not None:
        require_same_source(
            real,
            models.source_digest,
            what="The fit",
            fix="name the dataset that was fitted (real=…, --real)",
        )
        learned, kept = held_out_split(real, models.settings.held_out, models.planner.horizon)
        # Where a single recording was long enough, it served for both.
        trajectories = None if np.isin(kept, learned).any() else kept
    try:
        return real_parts(real, held_out=held_out, trajectories=trajectories, seed=seed), ""
    except DataError as error:
        if held_out is not None:
            raise
        return None, _reason(error)


def _about(augmented: Dataset, given: Inputs) -> dict[str, Any]:
    lineage = augmented.info.get("lineage")
    told: dict[str, Any] = {
        "task": None if given.task is None else given.task.name,
        "held_out": None if given.parts is None else given.parts.why,
        "lineage": dict(lineage) if isinstance(lineage, Mapping) else None,
    }
    if given.real is not None and isinstance(lineage, Mapping) and "source_digest" in lineage:
        told["real_is_the_source"] = source_digest(given.real) == lineage["source_digest"]
    return told


def _folders(given: Folders) -> list[Path]:
    return [Path(given)] if isinstance(given, str | Path) else [Path(each) for each in given]


def _reason(error: AstroError) -> str:
    parts = [error.what.rstrip(".")]
    if error.found is not None:
        parts.append(f"found {error.found}")
    if error.expected is not None:
        parts.append(f"expected {error.expected}")
    if error.fix is not None:
        parts.append(f"to change that: {error.fix}")
    return "; ".join(parts)
