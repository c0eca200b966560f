"""Interval charts of a table of results: a mark a cell, the paper's figure beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from astro_rl.evaluate.statistics import Estimate
from astro_rl.report.markup import Section, paragraph
from astro_rl.report.measure_view import PAPER_MARK
from astro_rl.report.score_chart import axis, interval_line, nice, place, row, shape
from astro_rl.report.table_story import Cell, TableStory

PAPER_KEY = (
    '<ul class="key"><li><svg viewBox="0 0 34 14" aria-hidden="true"><g class="paper" '
    'transform="translate(17 7)"><path d="M0-6L6 0 0 6-6 0z"/></g></svg>the paper\'s figure</li></ul>'
)


def charts_section(story: TableStory) -> Section | None:
    """A panel a row, on one scale for all, or a panel a column, each on its own."""
    cells = [cell for each in story.rows for cell in each.cells.values() if cell.mean is not None]
    if not cells or all(cell.low is None and cell.std is None and cell.paper is None for cell in cells):
        return None
    if story.panels == "rows":
        spans, told = chart_range(cells, story.unit), "one scale for all rows"
        panels = [
            _panel(
                f"{each.name}, {each.group}" if each.group else each.name,
                [(number, name, each.cells.get(name)) for number, name in enumerate(story.columns)],
                story,
                spans,
            )
            for each in story.rows
        ]
    else:
        told = "each column on a scale of its own"
        panels = [
            _panel(
                name,
                [(number, each.name, each.cells.get(name)) for number, each in enumerate(story.rows)],
                story,
            )
            for name in story.columns
        ]
    text = paragraph(
        f"Marks are means, thick lines their 95 % intervals (or standard deviations, where there is none); {told}.",
        "soft small",
    )
    figure = f'<figure data-figure="intervals"><div class="panels">{"".join(panels)}</div></figure>'
    body = text + (PAPER_KEY if any(cell.paper is not None for cell in cells) else "") + figure
    title, short = ("Row by row", "Rows") if story.panels == "rows" else ("Column by column", "Columns")
    return Section("intervals", title, body, short)


def reach(cell: Cell) -> tuple[float, float]:
    """From where to where a cell is drawn: its interval, else its spread, else its mean alone."""
    assert cell.mean is not None
    if cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    return cell.mean - (cell.std or 0.0), cell.mean + (cell.std or 0.0)


def chart_range(cells: Sequence[Cell], unit: str) -> tuple[float, float]:
    """0 to 100 for percentages that go far; else all that is drawn, from 0 where no mean lies below it."""
    means = [cell.mean for cell in cells if cell.mean is not None]
    ends = [end for cell in cells if cell.mean is not None for end in (*reach(cell), cell.paper)]
    low, high = (float(pick(end for end in ends if end is not None)) for pick in (min, max))
    if unit == "%" and min(means) >= 0 and 25 < high <= 100:
        return 0.0, 100.0
    if min(means) >= 0:
        return 0.0, nice(high) if high > 0 else 1.0
    most = nice(max(abs(low), abs(high)))
    return -most, most if high > 0 else 0.0


def _panel(
    title: str,
    entries: list[tuple[int, str, Cell | None]],
    story: TableStory,
    spans: tuple[float, float] | None = None,
) -> str:
    shown = [
        (number, name, cell) for number, name, cell in entries if cell is not None and cell.mean is not None
    ]
    if not shown:
        return ""
    unit = story.unit if story.panels == "rows" else ""
    low, high = spans or chart_range([cell for *_, cell in shown], unit)
    digits = digits_of(story) if spans else decimals([cell for *_, cell in shown])
    rows = [_strip(number, name, cell, low, high, digits) for number, name, cell in shown]
    strips = "".join(rows) + axis(low, high, unit)
    return f'<div class="panel"><h3>{escape(title)}</h3><div class="strips">{strips}</div></div>'


def _strip(number: int, name: str, cell: Cell, low: float, high: float, digits: int) -> str:
    assert cell.mean is not None
    value = figure_text(cell.mean, digits)
    inside, told, numbers = "", f"{name}: {value}", f"<b>{value}</b>"
    left, right = reach(cell)
    if left < right:
        inside += interval_line(Estimate(cell.mean, left, right), low, high, tick=False)
        span = f"{figure_text(left, digits)} to {figure_text(right, digits)}"
        numbers += f" <span>{span}</span>"
        told += f", {span}"
    if cell.paper is not None:
        inside += PAPER_MARK.format(place(cell.paper, low, high), 20)
        told += f", paper {figure_text(cell.paper, digits)}"
    inside += f'<svg class="dot" x="{place(cell.mean, low, high)}" y="20">{shape(number)}</svg>'
    return row(number, name, inside, numbers, told)


def digits_of(story: TableStory) -> int:
    """Decimals of all its figures: one for percentages, else enough to tell them apart."""
    return 1 if story.unit == "%" else decimals([cell for each in story.rows for cell in each.cells.values()])


def digits_in(story: TableStory, column: str) -> int:
    """Columns that are no rivals have decimals of their own."""
    if story.panels == "rows":
        return digits_of(story)
    return decimals([each.cells[column] for each in story.rows if column in each.cells])


def decimals(cells: Sequence[Cell]) -> int:
    """Enough for three digits of the median figure."""
    means = [abs(cell.mean) for cell in cells if cell.mean]
    return int(np.clip(2 - np.floor(np.log10(np.median(means))), 0, 5)) if means else 1


def figure_text(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}".replace("-", "−")
