"""A bench's records as tables with pages of their own: scores, geometry, completion, and what stays in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from astro_rl.bench import paper
from astro_rl.bench.averages import arms_of
from astro_rl.bench.records import Measurement, Records
from astro_rl.bench.render import Table
from astro_rl.bench.summary import ORIGINAL, ArmSummary, summaries
from astro_rl.bench.tables import tables_of
from astro_rl.report.findings import mean_interval
from astro_rl.report.measures import SHARES, share_interval
from astro_rl.report.provenance import method_name
from astro_rl.report.table_story import Cell, Row, TableStory, TextTable

WITH_SCORES = ("statistics", "overall", "averages", "regimes", "failed")
"""Tables in words that stand on the page of the scores."""
SETTINGS = ("sweep-threshold", "sweep-pieces", "sweep-amount", "sweep-share", "horizon")
COMPLETION = {
    "action_mse": "τᵃ MSE",
    "state_mse": "τˢ MSE",
    "known_mse": "τˢₘ MSE",
    "violation": "dynamics violations, %",
}
MOMENTS = (
    ("steps", "turn", "|Δθ| of steps, rad", "direction_change"),
    ("pieces", "turn", "|Δθ| of pieces, rad", None),
    ("steps", "curvature", "curvature κ of steps", "curvature"),
    ("pieces", "straightness", "straightness of pieces", None),
)


def stories_of(records: Records) -> dict[str, TableStory]:
    """By the names of their pages. A table without records is left out."""
    words = {table.name: _text(table) for table in tables_of(records)}
    found: dict[str, TableStory] = {}
    scores = scores_story(records, [words[name] for name in WITH_SCORES if name in words])
    if scores is not None:
        found["scores"] = scores
    for name, story in (("geometry", geometry_story(records)), ("completion", completion_story(records))):
        if story is not None:
            found[name] = story
    sweeps = tuple(words[name] for name in SETTINGS if name in words)
    if sweeps:
        found["settings"] = TableStory("What the settings do", ("score",), (), more=sweeps)
    return found


def scores_story(records: Records, more: Sequence[TextTable] = ()) -> TableStory | None:
    """A task a row, an arm a column. Intervals are of the mean; sweeps of a setting have tables of their own."""
    scores = [one for one in records.scores if "=" not in one.arm]
    if not scores:
        return None
    told = summaries(scores)
    values = {(one.task, one.learner, one.setup, one.arm): one.values for one in scores}
    arms = arms_of((one.task, one.learner, one.arm) for one in told)
    names = {arm: method_name(arm) for arm in arms}
    places = dict.fromkeys((one.learner, one.task, one.setup) for one in told)
    setups = {setup for *_, setup in places}
    rows = []
    for learner, task, setup in places:
        own = {one.arm: one for one in told if (one.learner, one.task, one.setup) == (learner, task, setup)}
        cells = {names[arm]: _scored(one, values[task, learner, setup, arm]) for arm, one in own.items()}
        rows.append(Row(task, cells, learner.upper(), str(setup) if len(setups) > 1 else ""))
    counted = sorted({one.episodes for one in scores if one.episodes is not None})
    notes = [f"{', '.join(map(str, counted))} evaluation episodes a seed."] if counted else []
    notes += [
        "The standard deviation is divided by the number of seeds, not by one less, as in the field's tables."
    ]
    return TableStory(
        "Success with and without augmented data",
        tuple(names.values()),
        tuple(rows),
        baseline=names.get(ORIGINAL),
        averages=_averages(rows, tuple(names.values())),
        caption="" if len(setups) > 1 else f"{next(iter(setups))}.",
        notes=tuple(notes),
        more=tuple(more),
        settings={"data": ", ".join(sorted({setup.data for setup in setups}))},
    )


def geometry_story(records: Records) -> TableStory | None:
    """Table `td_geom`: which pairs each selection rule puts together."""
    found = sorted(records.of_kind("geometry"), key=lambda one: (one.data, one.arm))
    if not found:
        return None
    columns = (*(name for *_, name, _ in MOMENTS), *(f"{name}, %" for _, name, _ in SHARES))
    return TableStory(
        "Source-target pairs by selection rule",
        columns,
        tuple(Row(method_name(one.arm), _geometry(one), one.data) for one in found),
        unit="",
        better=None,
        panels="columns",
        notes=(
            "The paper's |Δθ| exceeds π, so it may be a sum of two angles.",
            "The paper's curvature is higher for smoother paths, while its formula κ grows with sharpness.",
            *(f"{name}: {told}." for _, name, told in SHARES),
        ),
    )


def completion_story(records: Records) -> TableStory | None:
    """Table `dyna_mse`: errors of completions, and violations of the dynamics."""
    found = [one for one in records.of_kind("completion") if "=" not in one.arm]
    if not found:
        return None
    rows = []
    for one in sorted(found, key=lambda one: (one.data, one.arm)):
        cells = {
            name: Cell(_number(one.values.get(key)), paper=paper.value("dyna_mse", one.arm, key))
            for key, name in COMPLETION.items()
        }
        real = _number(one.values.get("violation_real"))
        note = "" if real is None else f"violations of real data {real:.1f} %"
        rows.append(Row(method_name(one.arm), cells, one.data, note))
    return TableStory(
        "Completion of masked recordings",
        tuple(COMPLETION.values()),
        tuple(rows),
        unit="",
        better=None,
        panels="columns",
        notes=(
            "States in units of each dimension's spread; the paper states none. Less is better throughout.",
        ),
    )


def _scored(one: ArmSummary, values: np.ndarray) -> Cell:
    spread = mean_interval(values)
    summary = one.summary
    return Cell(
        mean=summary.mean,
        std=summary.std,
        low=spread.low,
        high=spread.high,
        iqm=summary.iqm.value,
        seeds=summary.seeds,
        never_learned=summary.never_learned,
        paper=one.paper,
    )


def _averages(rows: Sequence[Row], columns: Sequence[str]) -> tuple[Row, ...]:
    """Means over a learner's tasks, of arms that were run on all of them."""
    found = []
    for learner in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == learner]
        whole = [name for name in columns if all(name in row.cells for row in own)]
        cells = {name: Cell(float(np.mean([row.cells[name].mean or 0.0 for row in own]))) for name in whole}
        if len(own) > 1 and cells:
            found.append(Row(f"{learner}, mean of {len(own)} tasks", cells))
    return tuple(found)


def _geometry(one: Measurement) -> dict[str, Cell]:
    cells = {}
    for reading, key, name, printed in MOMENTS:
        told = one.values[reading][key]
        there = None if printed is None else paper.figure("td_geom", one.arm, printed)
        note = "" if there is None or there.spread is None else f"paper ± {there.spread:g}"
        figure = None if there is None else there.value
        cells[name] = Cell(told["mean"], told["std"], paper=figure, note=note)
    for key, name, _ in SHARES:
        share, pairs = float(one.values[key]), int(one.values["pairs"])
        low, high = share_interval(share, pairs)
        cells[f"{name}, %"] = Cell(100 * share, low=100 * low, high=100 * high)
    return cells


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(table: Table) -> TextTable:
    return TextTable(table.title, tuple(table.header), tuple(map(tuple, table.rows)), tuple(table.notes))
