"""The further parts of a story as figures for papers: pairs, selection rules, metrics, curves, a film strip, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from astro_rl.report.chosen_view import kind_of
from astro_rl.report.curve_view import DASHES, levels
from astro_rl.report.curves import band
from astro_rl.report.drawing import (
    ARM_MARKS,
    ARMS,
    COLUMN,
    FORMATS,
    GENERATED,
    REAL,
    SOFT,
    bare,
    ground,
    new_figure,
    save_figure,
)
from astro_rl.report.evidence import Attempt, ChosenPair, Curves, Film, Measure, Measures, Pair
from astro_rl.report.film_view import kind
from astro_rl.report.measure_view import line_sets, measure_range
from astro_rl.report.pairs_view import box_of, methods
from astro_rl.report.plane import Plane
from astro_rl.report.story import RunStory
from astro_rl.report.table_charts import chart_range, reach
from astro_rl.report.table_story import Cell, TableStory

DRIVEN = "#8a3a86"
KIND_LOOKS: dict[str, dict[str, Any]] = {
    "wall-between": {"color": GENERATED, "linestyle": (0, (3, 2))},
    "breakout": {"color": "#00795c"},
    "too-far": {"color": DRIVEN, "linestyle": ":"},
    "within": {"color": SOFT, "linewidth": 0.8},
}
FRAMES = 8
"""Of a film strip on paper."""

Entry = tuple[int, str, float, tuple[float, float], float | None]
"""(which of all sets, name, value, from where to where, the paper's figure)"""


def part_figures(story: RunStory, plane: Plane | None) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of every further part that the story has."""
    if plane is not None:
        for number, pair in enumerate(story.pairs[:3]):
            yield f"pair-{number + 1}", _pair(plane, story, pair)
        if story.chosen:
            yield "chosen-pairs", _chosen(plane, story)
    if story.geometry is not None:
        yield "selection-geometry", _measures(story.geometry)
    if story.metrics is not None:
        yield "metrics", _measures(story.metrics)
    for number, curves in enumerate(story.curves):
        yield f"curve-{number + 1}-{_plain(curves.group)}-{_plain(curves.quantity)}", _curves(curves)
    if isinstance(story.film, Film):
        yield "film", _film(story.film)


def save_table_figures(
    story: TableStory, folder: str | Path, name: str, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """A table's interval charts on one sheet."""
    panels = [panel for panel in _table_panels(story) if panel[1]]
    if not panels:
        return []
    return save_figure(_panels(panels), folder, name, formats)


def _plain(text: str) -> str:
    """A file's name from whatever records call their columns."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")[:40]


def _pair(plane: Plane, story: RunStory, pair: Pair) -> Figure:
    names = methods(story.pairs)
    x, y, wide, tall = box_of(plane, pair)
    figure = new_figure(0.75 * COLUMN * len(names), 0.75 * COLUMN * tall / wide + 0.3)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        ground(axes, plane, story)
        # The picture's y runs down, the plane's up.
        axes.set(
            xlim=(plane.x0 + x, plane.x0 + x + wide), ylim=(plane.y1 - y - tall, plane.y1 - y), title=name
        )
        axes.title.set_fontsize(9)
        _attempt(axes, pair, pair.attempts.get(name))
    return figure


def _attempt(axes: Axes, pair: Pair, attempt: Attempt | None) -> None:
    given = np.where(pair.known[:, None], pair.given, np.nan)
    if pair.lead is not None:
        axes.plot(*pair.lead.T, color=REAL, linewidth=0.8, alpha=0.6)
    axes.plot(*given.T, color=REAL, linewidth=1.6)
    if attempt is not None:
        axes.plot(*attempt.xy.T, color=GENERATED, linewidth=1.4, linestyle=(0, (2, 1.2)))
        if attempt.driven is not None:
            axes.plot(*attempt.driven.T, color=DRIVEN, linewidth=1.2, linestyle=(0, (5, 2)))
    axes.plot(*pair.given[0], marker="o", markersize=5, markerfacecolor="white", markeredgecolor="black")
    axes.plot(*pair.given[pair.target.start], marker="s", markersize=4.5, color="black")


def _chosen(plane: Plane, story: RunStory) -> Figure:
    rules = story.chosen
    figure = new_figure(0.8 * COLUMN * len(rules), 0.8 * COLUMN * plane.height / plane.width + 0.3)
    rows = figure.subplots(1, len(rules), squeeze=False)[0]
    for axes, (rule, pairs) in zip(rows, rules.items(), strict=True):
        ground(axes, plane, story)
        axes.set_title(rule, fontsize=9)
        for pair in pairs:
            _chosen_pair(axes, pair)
    return figure


def _chosen_pair(axes: Axes, pair: ChosenPair) -> None:
    look = {"linewidth": 1.2, **KIND_LOOKS[kind_of(pair)]}
    axes.plot(*pair.source.T, color=REAL, linewidth=0.9, alpha=0.65)
    axes.plot(*np.stack([pair.source[-1], pair.target[0]]).T, **look)
    axes.plot(*pair.target[0], marker="o", markersize=3, color=look["color"], markerfacecolor="white")


def _measures(found: Measures) -> Figure:
    sets = line_sets(found)
    return _panels([(_title(each), _readings(each, sets), measure_range(each)) for each in found.measures])


def _title(measure: Measure) -> str:
    return measure.name + (f", {measure.unit}" if measure.unit else "")


def _readings(measure: Measure, sets: Sequence[str]) -> list[Entry]:
    there = [(number, name, measure.readings.get(name)) for number, name in enumerate(sets)]
    return [(number, name, one.value, one.reach, one.paper) for number, name, one in there if one is not None]


def _table_panels(story: TableStory) -> Iterator[tuple[str, list[Entry], tuple[float, float]]]:
    if story.panels == "rows":
        titled = [
            (
                f"{row.name}, {row.group}".strip(", "),
                [(name, row.cells.get(name, Cell())) for name in story.columns],
            )
            for row in story.rows
        ]
    else:
        titled = [
            (name, [(row.name, row.cells.get(name, Cell())) for row in story.rows]) for name in story.columns
        ]
    shared = [cell for _, cells in titled for _, cell in cells if cell.mean is not None]
    for title, cells in titled:
        entries = [
            (number, name, cell.mean, reach(cell), cell.paper)
            for number, (name, cell) in enumerate(cells)
            if cell.mean is not None
        ]
        if entries:
            scaled = (
                shared if story.panels == "rows" else [cell for _, cell in cells if cell.mean is not None]
            )
            yield title, entries, chart_range(scaled, story.unit)


def _panels(panels: Sequence[tuple[str, list[Entry], tuple[float, float]]]) -> Figure:
    """A panel each, two in a row: a mark a set, its interval, the paper's figure as an open diamond."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    tallest = max(len(entries) for _, entries, _ in panels)
    figure = new_figure(1.6 * COLUMN * columns, (0.65 + 0.24 * tallest) * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, entries, (low, high)) in zip(grid, panels, strict=False):
        for number, (which, _, value, (left, right), paper) in enumerate(entries):
            colour, mark = ARMS[min(which, 4)], ARM_MARKS[min(which, 4)]
            axes.plot(
                [max(left, low), right],
                [number, number],
                color=colour,
                linewidth=6,
                alpha=0.28,
                solid_capstyle="butt",
            )
            face = "white" if which == 0 else colour
            axes.plot(value, number, mark, color=colour, markersize=5, markerfacecolor=face)
            if paper is not None:
                axes.plot(paper, number, "D", color="black", markersize=4.5, markerfacecolor="none")
        margin = 0.03 * (high - low)
        axes.set(xlim=(low - margin, high + margin), ylim=(len(entries) - 0.5, -0.5))
        axes.set_yticks(range(len(entries)), [name for _, name, *_ in entries])
        axes.set_title(title, fontsize=8, loc="left")
        axes.tick_params(labelsize=7)
        bare(axes, "top", "right", "left")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    return figure


def _curves(curves: Curves) -> Figure:
    figure = new_figure(1.4 * COLUMN, 0.8 * COLUMN)
    axes: Axes = figure.subplots()
    bands = [band(values) for values in curves.arms.values()]
    for number, (arm, found) in enumerate(zip(curves.arms, bands, strict=True)):
        colour, dashes = ARMS[min(number, 4)], DASHES[min(number, 4)]
        style = (0, tuple(float(part) / 2 for part in dashes.split())) if dashes else "-"
        axes.plot(curves.steps, found.mean, color=colour, linewidth=1.4, linestyle=style, label=arm)
        if found.low is not None and found.high is not None:
            axes.fill_between(curves.steps, found.low, found.high, color=colour, alpha=0.2, linewidth=0)
    lines = levels(bands)
    axes.set(ylim=(lines[0], lines[-1]), xlim=(0, None))
    axes.set_xlabel("updates", fontsize=8)
    axes.set_title(f"{curves.group}: {curves.quantity}", fontsize=8, loc="left")
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7, frameon=False)
    bare(axes, "top", "right")
    return figure


def _film(film: Film) -> Figure:
    shown = np.unique(np.linspace(0, len(film.frames) - 1, FRAMES).round().astype(int))
    rows, columns = -(-len(shown) // 4), min(4, len(shown))
    height, width = film.frames.shape[1:3]
    figure = new_figure(2 * COLUMN, (2 * COLUMN / columns * height / width + 0.25) * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, number in zip(grid, shown, strict=False):
        axes.imshow(film.frames[number])
        colour = GENERATED if film.generated[number] else REAL
        axes.set_title(f"{int(film.states[number]) + 1} {kind(film, int(number))}", fontsize=7, color=colour)
    return figure
