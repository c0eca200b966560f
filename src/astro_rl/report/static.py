"""Each figure of a story by itself: PNG for a look, PDF for a paper. The page draws the same from the same story."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from astro_rl.report.drawing import (
    ARM_MARKS,
    ARMS,
    COLUMN,
    FORMATS,
    GENERATED,
    PIECES,
    REAL,
    SOFT,
    bare,
    ends,
    ground,
    new_figure,
    save_figure,
)
from astro_rl.report.findings import compare, mean_interval
from astro_rl.report.maps import value_grids
from astro_rl.report.plane import Plane, plane_of, step_runs
from astro_rl.report.raster import Grid, Scale, diverging, grid_of, shared_scale, symmetric_scale
from astro_rl.report.score_chart import score_range, spread
from astro_rl.report.static_parts import part_figures
from astro_rl.report.story import Chain, RunStory, Scores, Stitched, ValueMaps

Drawn = tuple[str, Figure]


def save_figures(story: RunStory, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every figure that the story has parts for: `folder/NAME.png` and `.pdf` (or whatever matplotlib writes).

    The same story gives the same bytes. Existing files are replaced.
    """
    return [path for name, figure in figures(story) for path in save_figure(figure, folder, name, formats)]


def figures(story: RunStory) -> Iterator[Drawn]:
    """(name, figure), one at a time."""
    plane = plane_of(story)
    if plane is not None:
        if story.fragments is not None:
            yield "fragments", _one(plane, story, lambda axes: _fragments(axes, story))
        if story.distance is not None:
            yield "distance", _distance(plane, story)
        for number, chain in enumerate(story.chains[:3]):
            yield f"chain-{number + 1}", _one(plane, story, lambda axes, each=chain: _chain(axes, each))
        for number, stitched in enumerate(story.stitched[:3]):
            yield (
                f"stitched-{number + 1}",
                _one(plane, story, lambda axes, each=stitched: _stitched(axes, each)),
            )
        for values in story.values:
            yield f"values-{values.learner}", _values(plane, story, values)
    yield from part_figures(story, plane)
    for scores in story.scores:
        yield f"scores-{scores.learner}", _scores(scores)


def _one(plane: Plane, story: RunStory, draw: Callable[[Axes], None]) -> Figure:
    figure = new_figure(COLUMN, COLUMN * plane.height / plane.width)
    axes = figure.subplots()
    ground(axes, plane, story)
    draw(axes)
    _goal(axes, story)
    return figure


def _goal(axes: Axes, story: RunStory) -> None:
    if story.goal is not None:
        axes.plot(
            *story.goal, marker="*", markersize=9, color="black", markeredgecolor="white", markeredgewidth=0.6
        )


def _fragments(axes: Axes, story: RunStory) -> None:
    assert story.fragments is not None
    for number, track in enumerate(story.fragments.tracks):
        axes.plot(*track.T, color=PIECES[number % len(PIECES)], linewidth=0.7, alpha=0.85)


def _chain(axes: Axes, chain: Chain) -> None:
    whole = np.concatenate(chain.pieces)
    axes.plot(*whole.T, color=SOFT, linewidth=0.8, linestyle=":")
    for number, piece in enumerate(chain.pieces):
        axes.plot(*piece.T, color=PIECES[number % len(PIECES)], linewidth=1.6)
        middle = piece[len(piece) // 2]
        axes.annotate(str(number + 1), middle, xytext=(5, 5), textcoords="offset points", fontsize=7)
    ends(axes, whole)


def _stitched(axes: Axes, stitched: Stitched) -> None:
    for first, last, real in step_runs(stitched.generated, stitched.source):
        part = stitched.xy[first : last + 1]
        look: dict[str, Any] = {"color": REAL} if real else {"color": GENERATED, "linestyle": (0, (2, 1.2))}
        axes.plot(*part.T, linewidth=1.5, **look)
    ends(axes, stitched.xy)


def _squares(axes: Axes, grid: Grid, scale: Scale, colours: Any) -> Any:
    rows, columns = grid.values.shape
    extent = (grid.x0, grid.x0 + columns * grid.cell, grid.y0, grid.y0 + rows * grid.cell)
    return axes.imshow(
        np.ma.masked_invalid(grid.values),
        origin="lower",
        extent=extent,
        cmap=colours,
        vmin=scale.low,
        vmax=scale.high,
        interpolation="nearest",
    )


def _bar(figure: Figure, shown: Any, axes: list[Axes], label: str, **look: Any) -> None:
    drawn = figure.colorbar(shown, ax=axes, **look)
    drawn.set_label(label, fontsize=8)
    drawn.ax.tick_params(labelsize=7)


def _distance(plane: Plane, story: RunStory) -> Figure:
    assert story.distance is not None
    grid = grid_of(story.distance.steps)
    figure = new_figure(COLUMN, COLUMN * plane.height / plane.width)
    axes = figure.subplots()
    ground(axes, plane, story)
    shown = _squares(axes, grid, shared_scale(grid), "viridis")
    axes.plot(*story.distance.source, marker="o", markersize=6, color="white", markeredgecolor="black")
    axes.set(xlim=(plane.x0, plane.x1), ylim=(plane.y0, plane.y1))
    _bar(figure, shown, [axes], "learned steps", shrink=0.8)
    return figure


def _values(plane: Plane, story: RunStory, values: ValueMaps) -> Figure:
    before, after, scale = value_grids(values)
    change = Grid(before.x0, before.y0, before.cell, after.values - before.values)
    figure = new_figure(2.2 * COLUMN, 0.85 * COLUMN * plane.height / plane.width)
    grid_of_axes = figure.subplots(1, 3)
    drawn = (
        ("without augmented data", before, scale, "viridis"),
        ("with augmented data", after, scale, "viridis"),
        ("difference", change, symmetric_scale(change), ListedColormap(diverging((255, 255, 255)) / 255)),
    )
    shown = []
    for axes, (title, grid, its_scale, colours) in zip(grid_of_axes, drawn, strict=True):
        ground(axes, plane, story)
        shown.append(_squares(axes, grid, its_scale, colours))
        axes.set(xlim=(plane.x0, plane.x1), ylim=(plane.y0, plane.y1))
        axes.set_title(title, fontsize=8)
        _goal(axes, story)
    look: dict[str, Any] = {"orientation": "horizontal", "shrink": 0.8}
    _bar(figure, shown[1], list(grid_of_axes[:2]), f"value, {values.learner.upper()}", aspect=40, **look)
    _bar(figure, shown[2], [grid_of_axes[2]], "difference", aspect=20, **look)
    return figure


def _scores(scores: Scores) -> Figure:
    figure = new_figure(2 * COLUMN, 0.7 + 0.34 * (len(scores.arms) + len(compare(scores))))
    found = compare(scores)
    rows = figure.subplots(
        2 if found else 1, 1, squeeze=False, height_ratios=[len(scores.arms), len(found)][: 2 if found else 1]
    )
    low, high = score_range(scores)
    top: Axes = rows[0, 0]
    for number, (_, figures_of_arm) in enumerate(scores.arms.items()):
        colour, mark = ARMS[number % len(ARMS)], ARM_MARKS[number % len(ARM_MARKS)]
        estimate = mean_interval(figures_of_arm)
        top.plot(
            [estimate.low, estimate.high],
            [number, number],
            color=colour,
            linewidth=7,
            alpha=0.28,
            solid_capstyle="butt",
        )
        for value, rise in spread(figures_of_arm, low, high):
            face = "white" if number == 0 else colour
            top.plot(value, number + rise / 40, mark, markersize=4.5, color=colour, markerfacecolor=face)
        top.plot([estimate.value] * 2, [number - 0.35, number + 0.35], color=colour, linewidth=2)
    margin = 0.02 * (high - low)
    top.set(xlim=(low - margin, high + margin), yticks=range(len(scores.arms)), yticklabels=list(scores.arms))
    top.set_xlabel(f"{scores.learner.upper()}, {scores.unit}", fontsize=8)
    top.set_ylim(len(scores.arms) - 0.5, -0.5)
    if found:
        _differences(rows[1, 0], scores)
    for axes in rows[:, 0]:
        axes.tick_params(labelsize=8)
        bare(axes, "top", "right", "left")
    return figure


def _differences(axes: Axes, scores: Scores) -> None:
    found = compare(scores)
    for number, each in enumerate(found):
        colour, mark = ARMS[(number + 1) % len(ARMS)], ARM_MARKS[(number + 1) % len(ARM_MARKS)]
        difference = each.difference
        axes.plot(
            [difference.low, difference.high],
            [number, number],
            color=colour,
            linewidth=7,
            alpha=0.28,
            solid_capstyle="butt",
        )
        axes.plot(difference.value, number, mark, color=colour, markersize=5)
    axes.axvline(0, color="black", linewidth=0.8)
    reach = (
        1.08 * max(abs(bound) for each in found for bound in (each.difference.low, each.difference.high))
        or 1.0
    )
    axes.set(
        xlim=(-reach, reach),
        yticks=range(len(found)),
        yticklabels=[f"{each.arm} − {each.baseline}" for each in found],
    )
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("difference of the means, 95 % interval", fontsize=8)
