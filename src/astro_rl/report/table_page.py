"""A page of its own for one table of results: sortable, with an interval chart for each row."""

from __future__ import annotations

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
    """Decimals of all its figures: one for percentages, else enough for three digits of the median."""
    means = [abs(c.mean) for each in story.rows for c in each.cells.values() if c.mean]
    if story.unit == "%" or not means:
        return 1
    return int(np.clip(2 - np.floor(np.log10(np.median(means))), 0, 5))


def figure_text(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def best_columns(row_: Row, story: TableStory) -> set[str]:
    """Columns with the best mean of a row; none where only one has a figure."""
    means = {name: cell.mean for name, cell in row_.cells.items() if cell.mean is not None}
    if len(means) < 2:
        return set()
    best = max(means.values()) if story.better == "higher" else min(means.values())
    return {name for name, mean in means.items() if mean == best}


def _table_section(story: TableStory) -> Section:
    text = paragraph(
        f"Means over seeds{f' in {story.unit}' if story.unit else ''} ± standard deviation, the 95 % interval and the "
        f"paper's figure below, where there are any. The best mean of a row is underlined, which claims nothing: look "
        "at the intervals. Columns sort by a click on their names.",
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
    digits = digits_of(story)
    cells = "".join(_cell(each.cells.get(name, Cell()), name in best, digits) for name in story.columns)
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
    shown = [each for each in story.rows if sum(c.mean is not None for c in each.cells.values())]
    if not shown or not any(c.low is not None for each in shown for c in each.cells.values()):
        return None
    low, high = chart_range(story)
    paper = any(cell.paper is not None for each in shown for cell in each.cells.values())
    panels = "".join(_panel(each, story, low, high) for each in shown)
    text = paragraph(
        "Marks are means, thick lines their 95 % intervals; one scale for all rows.", "soft small"
    )
    figure = f'<figure data-figure="intervals"><div class="panels">{panels}</div></figure>'
    body = text + (PAPER_KEY if paper else "") + figure
    return Section("intervals", "Row by row", body, "Intervals")


def chart_range(story: TableStory) -> tuple[float, float]:
    """0 to 100 for percentages that lie there; else all that is drawn, from 0 where nothing lies below it."""
    cells = [cell for each in story.rows for cell in each.cells.values() if cell.mean is not None]
    ends = [end for cell in cells for end in (cell.mean, cell.low, cell.high, cell.paper) if end is not None]
    low, high = min(ends), max(ends)
    if story.unit == "%" and low >= 0 and 25 < high <= 100:
        return 0.0, 100.0
    if low >= 0:
        return 0.0, nice(high) if high > 0 else 1.0
    reach = nice(max(abs(low), abs(high)))
    return -reach, reach if high > 0 else 0.0


def _panel(each: Row, story: TableStory, low: float, high: float) -> str:
    rows = [
        _strip(number, name, each.cells[name], low, high, digits_of(story))
        for number, name in enumerate(story.columns)
        if name in each.cells and each.cells[name].mean is not None
    ]
    title = f"{each.name}, {each.group}" if each.group else each.name
    strips = "".join(rows) + axis(low, high, story.unit)
    return f'<div class="panel"><h3>{escape(title)}</h3><div class="strips">{strips}</div></div>'


def _strip(number: int, name: str, cell: Cell, low: float, high: float, digits: int) -> str:
    assert cell.mean is not None
    inside, told = "", f"{name}: {figure_text(cell.mean, digits)}"
    numbers = f"<b>{figure_text(cell.mean, digits)}</b>"
    if cell.low is not None and cell.high is not None:
        inside += interval_line(Estimate(cell.mean, cell.low, cell.high), low, high, tick=False)
        numbers += f" <span>{figure_text(cell.low, digits)} to {figure_text(cell.high, digits)}</span>"
        told += f", interval {figure_text(cell.low, digits)} to {figure_text(cell.high, digits)}"
    if cell.paper is not None:
        inside += PAPER_MARK.format(place(cell.paper, low, high), 20)
        told += f", paper {figure_text(cell.paper, digits)}"
    inside += f'<svg class="dot" x="{place(cell.mean, low, high)}" y="20">{shape(number)}</svg>'
    return row(number, name, inside, numbers, told)


def _more(story: TableStory) -> list[Section]:
    sections = []
    for number, each in enumerate(story.more):
        lines = [
            [f"{line.group}: {line.name}" if line.group else line.name]
            + [_plain(line.cells.get(name, Cell()), digits_of(each)) for name in each.columns]
            for line in (*each.rows, *each.averages)
        ]
        notes = "".join(paragraph(text, "soft small") for text in each.notes)
        body = (paragraph(each.caption) if each.caption else "") + table(["", *each.columns], lines) + notes
        sections.append(Section(f"more-{number}", each.title, body, each.title.split(":")[0]))
    return sections


def _plain(cell: Cell, digits: int) -> str:
    """A cell in one line."""
    if cell.mean is None:
        return cell.note or "–"
    told = figure_text(cell.mean, digits)
    if cell.std is not None:
        told += f" ± {figure_text(cell.std, digits)}"
    if cell.low is not None and cell.high is not None:
        told += f" [{figure_text(cell.low, digits)}, {figure_text(cell.high, digits)}]"
    if cell.paper is not None:
        told += f" (paper {figure_text(cell.paper, digits)})"
    return f"{told}; {cell.note}" if cell.note else told


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
