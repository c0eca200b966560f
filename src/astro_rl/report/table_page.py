"""A page of its own for one table of results: sortable, with an interval chart for each row."""

from __future__ import annotations

from html import escape
from pathlib import Path

from astro_rl.data.atomic import new_file
from astro_rl.report.markup import Section, counted, paragraph, table
from astro_rl.report.page import document
from astro_rl.report.table_charts import charts_section, digits_in, figure_text
from astro_rl.report.table_story import Cell, Row, TableStory


def write_table_page(story: TableStory, path: str | Path) -> Path:
    """Write the page at `path`, whole or not at all; one that stands there is replaced."""
    target = Path(path)
    with new_file(target, overwrite=True) as partial:
        partial.write_text(table_page(story), encoding="utf-8")
    return target


def table_page(story: TableStory) -> str:
    """The same table gives the same bytes."""
    found = [_table_section(story), charts_section(story), *_more(story), _notes(story), _repeat(story)]
    sections = [section for section in found if section is not None]
    links = "".join(f'<a href="#{section.name}">{escape(section.short)}</a>' for section in sections)
    header = (
        f'<header><p class="eyebrow">table of results</p><h1>{escape(story.title)}</h1>'
        + (paragraph(story.caption, "standing") if story.caption else "")
        + (paragraph(coverage(story), "soft") if story.rows else "")
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


def best_columns(row_: Row, story: TableStory) -> set[str]:
    """Columns with the best mean of a row; none where only one has a figure."""
    means = {name: cell.mean for name, cell in row_.cells.items() if cell.mean is not None}
    if len(means) < 2 or story.better is None:
        return set()
    best = max(means.values()) if story.better == "higher" else min(means.values())
    return {name for name, mean in means.items() if mean == best}


def _table_section(story: TableStory) -> Section | None:
    if not story.rows:
        return None
    text = paragraph(
        f"Means{f' in {story.unit}' if story.unit else ''} ± standard deviation, the 95 % interval and the paper's "
        "figure below, where there are any. "
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


def _more(story: TableStory) -> list[Section]:
    sections = []
    for number, each in enumerate(story.more):
        lines = [["–" if cell is None else cell for cell in line] for line in each.rows]
        notes = "".join(paragraph(text, "soft small") for text in each.notes)
        sections.append(
            Section(
                f"more-{number}",
                each.title,
                table(each.header, lines, classes="words") + notes,
                each.title.split(":")[0],
            )
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
