"""A page of its own for one table of results: sortable, with an interval chart for each row."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from astro_rl.data.atomic import new_file
from astro_rl.evaluate.statistics import Estimate
from astro_rl.report.markup import Section, counted, paragraph, table
from astro_rl.report.measure_view import PAPER_MARK
from astro_rl.report.page import document
from astro_rl.report.score_chart import axis, interval_line, nice, place, row, shape
from astro_rl.report.table_story import Cell, Row, TableStory

PAPER_KEY = (
    '<ul class="key"><li><svg viewBox="0 0 34 14" aria-hidden="true"><g class="paper" '
    'transform="translate(17 7)"><path d="M0-6L6 0 0 6-6 0z"/></g></svg>the paper\'s figure</li></ul>'
)


def write_table_page(story: TableStory, path: str | Path) -> Path:
    """Write the page at `path`, whole or not at all; one that stands there is replaced."""
    target = Path(path)
    with new_file(target, overwrite=True) as partial:
        partial.write_text(table_page(story), encoding="utf-8")
    return target


def table_page(story: TableStory) -> str:
    """The same table gives the same bytes."""
    found = [_table_section(story), _charts_section(story), *_more(story), _notes(story), _repeat(story)]
    sections = [section for section in found if section is not None]
    links = "".join(f'<a href="#{section.name}">{escape(section.short)}</a>' for section in sections)
    header = (
        f'<header><p class="eyebrow">table of results</p><h1>{escape(story.title)}</h1>'
        + (paragraph(story.caption, "standing") if story.caption else "")
        + paragraph(coverage(story), "soft")
        + f'<nav aria-label="Parts of this page">{links}</nav></header>'
    )
    main = "\n".join(section.html() for section in sections)
    return document(story.title, f"{header}\n<main>{main}</main>", "", ["table.js"])


def coverage(story: TableStory) -> str:
    """How much of the table is there, and how many seeds stand behind it."""
    cells = [row.cells.get(column, Cell()) for row in story.rows for column in story.columns]
    there = [cell for cell in cells if cell.mean is not None]
    failed = sum(cell.note.startswith("failed") for cell in cells)
    told = f"{len(there)} of {counted(len(cells), 'cell')} have a figure"
    if failed:
        told += f", {failed} failed"
    seeds = sorted({cell.seeds for cell in there if cell.seeds is not None})
    if seeds:
        span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        told += f"; {span} seed{'' if seeds == [1] else 's'} a cell"
    return f"{told}."


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


def best_columns(row_: Row, story: TableStory) -> set[str]:
    """Columns with the best mean of a row; none where only one has a figure."""
    means = {name: cell.mean for name, cell in row_.cells.items() if cell.mean is not None}
    if len(means) < 2 or story.better is None:
        return set()
    best = max(means.values()) if story.better == "higher" else min(means.values())
    return {name for name, mean in means.items() if mean == best}


def _table_section(story: TableStory) -> Section:
    text = paragraph(
        f"Means{f' in {story.unit}' if story.unit else ''} ± standard deviation, the 95 % interval and the paper's figure "
        "below, where there are any. "
        + (
            "The best mean of a row is underlined, which claims nothing: look at the intervals. "
            if story.better is not None
            else ""
        )
        + "Columns sort by a click on their names.",
        "soft small",
    )
    head = "".join(
        f'<th scope="col"><button type="button" data-sort="{number}">{escape(name)}</button></th>'
        for number, name in enumerate(("", *story.columns))
    ).replace('data-sort="0"></button>', 'data-sort="0">Row</button>', 1)
    body, groups = [], story.groups
    for group in groups:
        rows = [each for each in story.rows if each.group == group]
        title = (
            f'<tr class="group"><th scope="rowgroup" colspan="{len(story.columns) + 1}">{escape(group)}</th></tr>'
            if group
            else ""
        )
        body.append("<tbody>" + title + "".join(_line(each, story) for each in rows) + "</tbody>")
    foot = "".join(_line(each, story) for each in story.averages)
    drawn = (
        f'<figure data-figure="table"><div class="table" tabindex="0"><table class="results sortable"><thead><tr>{head}'
        f"</tr></thead>{''.join(body)}{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div></figure>"
    )
    return Section("table", "The table", text + drawn, "Table")


def _line(each: Row, story: TableStory) -> str:
    best = best_columns(each, story)
    note = f'<span class="sub">{escape(each.note)}</span>' if each.note else ""
    cells = "".join(
        _cell(each.cells.get(name, Cell()), name in best, digits_in(story, name)) for name in story.columns
    )
    return f'<tr><th scope="row">{escape(each.name)}{note}</th>{cells}</tr>'


def _cell(cell: Cell, best: bool, digits: int) -> str:
    below = []
    if cell.low is not None and cell.high is not None:
        below.append(f"{figure_text(cell.low, digits)} to {figure_text(cell.high, digits)}")
    if cell.iqm is not None:
        below.append(f"IQM {figure_text(cell.iqm, digits)}")
    if cell.never_learned:
        below.append(f"{cell.never_learned} never learned")
    if cell.paper is not None:
        below.append(f"paper {figure_text(cell.paper, digits)}")
    if cell.note and cell.mean is not None:
        below.append(cell.note)
    subs = "".join(f'<span class="sub">{escape(text)}</span>' for text in below)
    if cell.mean is None:
        return f'<td class="note">{escape(cell.note or "–")}{subs}</td>'
    spread = f" ± {figure_text(cell.std, digits)}" if cell.std is not None else ""
    return (
        f'<td data-value="{cell.mean!r}"{" class=best" if best else ""}><b>{figure_text(cell.mean, digits)}</b>'
        f"{spread}{subs}</td>"
    )


def _charts_section(story: TableStory) -> Section | None:
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


def _more(story: TableStory) -> list[Section]:
    sections = []
    for number, each in enumerate(story.more):
        lines = [["–" if cell is None else cell for cell in line] for line in each.rows]
        notes = "".join(paragraph(text, "soft small") for text in each.notes)
        sections.append(
            Section(f"more-{number}", each.title, table(each.header, lines) + notes, each.title.split(":")[0])
        )
    return sections


def _notes(story: TableStory) -> Section | None:
    if not story.notes:
        return None
    items = "".join(f"<li>{escape(text)}</li>" for text in story.notes)
    return Section("notes", "Notes", f'<ul class="limits">{items}</ul>', "Notes")


def _repeat(story: TableStory) -> Section | None:
    parts = []
    if story.commands:
        parts.append(f'<pre tabindex="0">{escape(chr(10).join(story.commands))}</pre>')
    settings = dict(story.settings) | ({"machine": story.machine} if story.machine else {})
    if settings:
        parts.append(table(["", ""], settings.items(), classes="left"))
    return Section("repeat", "Make it again", "".join(parts), "Repeat") if parts else None
