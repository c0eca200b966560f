"""Maps of numbers and of data: fragments, learned distances, values before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from astro_rl.report.markup import (
    Section,
    amount,
    bar_picture,
    beside,
    colour_bar,
    counted,
    figure,
    paragraph,
)
from astro_rl.report.plane import Plane, contours, goal_mark, image, svg, track
from astro_rl.report.raster import (
    Colours,
    Grid,
    Scale,
    bar,
    diverging,
    grid_of,
    picture,
    sequential,
    shared_scale,
    symmetric_scale,
)
from astro_rl.report.score_chart import nice
from astro_rl.report.story import DistanceMap, Fragments, PlaceMap, RunStory, ValueMaps

LIGHT_FLOOR, DARK_FLOOR = (255, 255, 255), (28, 34, 42)
"""The style sheet's `--floor`, which a difference of 0 takes."""
FRAGMENT_COLOURS = 7
CONTOURS = 7


@dataclass
class Sheet:
    """What several maps share: the plane, and what goes to the page's definitions and its script."""

    plane: Plane
    definitions: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    tracks: dict[str, Any] = field(default_factory=dict)
    pairs: list[Any] = field(default_factory=list)

    def add_field(self, name: str, shown: str, grid: Grid) -> None:
        """A grid for the pointer to read; four digits are more than a map can show."""
        rows, columns = grid.values.shape
        self.fields[name] = {
            "name": shown,
            "x0": grid.x0,
            "y0": grid.y0,
            "cell": grid.cell,
            "rows": rows,
            "columns": columns,
            "values": [None if np.isnan(value) else float(f"{value:.4g}") for value in grid.values.ravel()],
        }


def fragments_figure(sheet: Sheet, story: RunStory, fragments: Fragments) -> str:
    plane = sheet.plane
    tracks = "".join(
        track(plane, xy, f"fragment f{number % FRAGMENT_COLOURS}")
        for number, xy in enumerate(fragments.tracks)
        if len(xy)
    )
    inside = tracks + goal_mark(plane, story.goal, story.goal_radius)
    shown = f"{len(fragments.tracks)} of {counted(fragments.total, 'recorded trajectory', 'recorded trajectories')}"
    caption = f"{shown}, each in one of {FRAGMENT_COLOURS} colours." + (
        " The star is the goal." if story.goal is not None else ""
    )
    return figure("fragments", svg(plane, inside, f"Map of {shown}"), caption)


def distance_section(sheet: Sheet, story: RunStory, distance: DistanceMap) -> Section:
    plane, grid = sheet.plane, grid_of(distance.steps)
    scale, colours = shared_scale(grid), sequential()
    sheet.add_field("distance", "learned steps", grid)
    spacing = nice((scale.high - scale.low) / CONTOURS)
    levels = [spacing * number for number in range(1, int(scale.high / spacing) + 1)]
    x, y = plane.at(float(distance.source[0]), float(distance.source[1]))
    source = f'<circle class="source" cx="{x:.2f}" cy="{y:.2f}" r="{0.6 * plane.mark:.2f}"/>'
    inside = (
        image(plane, grid, picture(grid, scale, colours))
        + contours(plane, grid, levels)
        + source
        + _probe(plane)
    )
    legend = colour_bar(amount(scale.low), amount(scale.high), "learned steps", bar_picture(bar(colours)))
    drawn = svg(
        plane, inside, "Map of learned distances from one place", "map on-colour", ' data-field="distance"'
    )
    text = paragraph(
        "Steps that the learned representation puts between the circle and every other place. It has seen fragments "
        "only. Where it has understood the maze, lines of equal distance follow the corridors, and two sides of a wall "
        "differ."
    ) + paragraph(f"Lines are {spacing:g} learned steps apart. Squares without data are left empty.", "soft")
    group = (
        f"<div data-fields>{figure('distance', drawn + legend, 'Learned steps from the circle.')}"
        f"{_readout('Point at the map to read it.')}</div>"
    )
    return Section("distance", "Learned distance from one place", beside(text, group), "Distance")


def values_section(sheet: Sheet, story: RunStory) -> Section | None:
    if not story.values:
        return None
    text = paragraph(
        "What the learner expects from each place of the data, without and with augmented data, on one scale, and the "
        "difference. A higher value is no better score: it may be too high."
    )
    body = "".join(_value_maps(sheet, story, number, values) for number, values in enumerate(story.values))
    return Section("values", "Value maps before and after", text + body, "Values")


def _value_maps(sheet: Sheet, story: RunStory, number: int, values: ValueMaps) -> str:
    before, after, scale = value_grids(values)
    change = Grid(before.x0, before.y0, before.cell, after.values - before.values)
    reach = symmetric_scale(change)
    colours = sequential()
    maps = []
    for name, title, grid in (
        ("before", "without augmented data", before),
        ("after", "with augmented data", after),
    ):
        key_name = f"value-{number}-{name}"
        sheet.add_field(key_name, title, grid)
        layers = image(sheet.plane, grid, picture(grid, scale, colours))
        maps.append(_value_map(sheet, story, key_name, title, layers, "on-colour"))
    key_name = f"value-{number}-change"
    sheet.add_field(key_name, "difference", change)
    layers = "".join(
        image(sheet.plane, change, picture(change, reach, shades), f"squares {classes}")
        for shades, classes in _shades()
    )
    maps.append(_value_map(sheet, story, key_name, "difference", layers, "", wide=True))
    bars = (
        colour_bar(amount(scale.low), amount(scale.high), "value", bar_picture(bar(colours))),
        colour_bar(
            amount(reach.low),
            "+" + amount(reach.high),
            "difference",
            "".join(bar_picture(bar(shades), classes) for shades, classes in _shades()),
        ),
    )
    caption = f"{values.learner.upper()}, mean of {counted(values.seeds, 'seed')}." + (
        " The star is the goal." if story.goal is not None else ""
    )
    trio = f'<div class="trio">{"".join(maps)}</div><div class="two-bars">{"".join(bars)}</div>'
    return (
        f"<h3>{escape(values.learner.upper())}</h3><div data-fields>{figure('values', trio, caption)}"
        f"{_readout('Point at a map to read all three at once.')}</div>"
    )


def _value_map(
    sheet: Sheet, story: RunStory, name: str, title: str, layers: str, classes: str, wide: bool = False
) -> str:
    inside = layers + goal_mark(sheet.plane, story.goal, story.goal_radius) + _probe(sheet.plane)
    drawn = svg(sheet.plane, inside, f"Value map: {title}", f"map {classes}".strip(), f' data-field="{name}"')
    return (
        f'<div class="{"wide" if wide else ""}"><h4>{escape(title[0].upper() + title[1:])}</h4>{drawn}</div>'
    )


def _shades() -> tuple[tuple[Colours, str], ...]:
    return (diverging(LIGHT_FLOOR), "light-only"), (diverging(DARK_FLOOR), "dark-only")


def _probe(plane: Plane) -> str:
    return f'<circle class="probe" visibility="hidden" r="{0.35 * plane.mark:.2f}"/>'


def _readout(text: str) -> str:
    return f'<p class="readout" aria-live="polite">{escape(text)}</p>'


def value_grids(values: ValueMaps) -> tuple[Grid, Grid, Scale]:
    """Both of a learner's grids and the scale that they share: the page's and the papers' figures alike."""
    before, after = (
        grid_of(PlaceMap(values.xy, part, values.cell)) for part in (values.before, values.after)
    )
    return before, after, shared_scale(before, after)
