"""The page: one HTML file that holds everything it shows. Nothing is fetched, from this machine or any other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from astro_rl.data.atomic import new_file
from astro_rl.report.curve_view import curves_section
from astro_rl.report.evidence import Film
from astro_rl.report.film_view import film_section
from astro_rl.report.findings import comparisons, headline, sentence, standing
from astro_rl.report.maps import Sheet, distance_section, fragments_figure, values_section
from astro_rl.report.markup import Section, beside, paragraph
from astro_rl.report.measure_view import geometry_section, metrics_section
from astro_rl.report.pairs_view import pairs_section
from astro_rl.report.plane import plane_of, walls_path
from astro_rl.report.sections import (
    facts_table,
    limits_section,
    lineage_section,
    rejections_section,
    repeat_section,
    scores_section,
    tiles,
    timings_section,
    truth_section,
)
from astro_rl.report.story import RunStory
from astro_rl.report.viewers import chains_section, generated_section, stitched_section

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"  # noqa: E501
"""A browser that heeds it sends nothing, whatever stands in the page."""

VERDICT_MARKS = {
    "gain": '<path d="M10 17V4M4 10l6-6 6 6"/>',
    "loss": '<path d="M10 3v13M4 10l6 6 6-6"/>',
    "none": '<path d="M3 7.5h14M3 12.5h14"/>',
    "few": '<path d="M7 7a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M10 15.5v1"/>',
}


def write_page(story: RunStory, path: str | Path) -> Path:
    """Write the page at `path`, whole or not at all; one that stands there is replaced."""
    target = Path(path)
    with new_file(target, overwrite=True) as partial:
        partial.write_text(page(story), encoding="utf-8")
    return target


def page(story: RunStory) -> str:
    """The same story gives the same bytes."""
    plane = plane_of(story)
    sheet = None if plane is None else Sheet(plane)
    sections = _sections(story, sheet)
    title = f"{story.task}: {headline(story)}"
    body = (
        f"{_definitions(story, sheet)}{_header(story, sections)}\n<main>"
        + "\n".join(section.html() for section in sections)
        + "</main>"
    )
    return document(title, body, "" if sheet is None else _script(sheet), [*_scripts(story)])


def document(title: str, body: str, data: str, scripts: Sequence[str]) -> str:
    """A whole file around a body. `data`: an element that scripts read; `scripts`: names of our own."""
    texts = "".join(f"<script>{_resource(name)}</script>\n" for name in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>\n<style>{_resource('page.css')}</style></head>\n<body>"
        f"{body}\n<footer>Written by astro-rl {escape(_version())}. One file, no scripts from elsewhere, "
        f"no requests.</footer>\n{data}{texts}</body></html>\n"
    )


def _scripts(story: RunStory) -> Iterator[str]:
    """Only what the page has parts for."""
    if plane_of(story) is not None:
        yield "page.js"
    if story.curves or story.chosen or isinstance(story.film, Film):
        yield "parts.js"


def _sections(story: RunStory, sheet: Sheet | None) -> list[Section]:
    """In the order of the method, then what it led to, then what is needed to judge and to repeat it."""
    maps = {} if sheet is None else _maps(story, sheet)
    every = [
        _data_section(story, sheet),
        maps.get("distance"),
        geometry_section(story, sheet),
        maps.get("chains"),
        maps.get("pairs"),
        maps.get("stitched"),
        maps.get("generated"),
        film_section(story),
        truth_section(story),
        metrics_section(story),
        maps.get("values"),
        curves_section(story),
        scores_section(story),
        rejections_section(story),
        lineage_section(story),
        timings_section(story),
        limits_section(story),
        repeat_section(story),
    ]
    return [section for section in every if section is not None]


def _maps(story: RunStory, sheet: Sheet) -> dict[str, Section | None]:
    return {
        "distance": None if story.distance is None else distance_section(sheet, story, story.distance),
        "chains": chains_section(sheet, story),
        "stitched": stitched_section(sheet, story),
        "generated": generated_section(sheet, story),
        "pairs": pairs_section(sheet, story),
        "values": values_section(sheet, story),
    }


def _data_section(story: RunStory, sheet: Sheet | None) -> Section:
    table = facts_table(story)
    if sheet is None or story.fragments is None:
        return Section("data", "The data", table, "Data")
    return Section("data", "The data", beside(table, fragments_figure(sheet, story, story.fragments)), "Data")


def _header(story: RunStory, sections: list[Section]) -> str:
    verdicts = "".join(
        f'<li class="verdict-{found.verdict}"><svg viewBox="0 0 20 20" aria-hidden="true">'
        f"{VERDICT_MARKS[found.verdict]}</svg>{escape(sentence(found))}</li>"
        for found in comparisons(story)
    )
    links = "".join(f'<a href="#{section.name}">{escape(section.short)}</a>' for section in sections)
    return (
        f'<header><p class="eyebrow">{escape(story.task)}</p><h1>{escape(headline(story))}</h1>'
        f"{paragraph(standing(story), 'standing')}"
        + (f'<ul class="verdicts">{verdicts}</ul>' if verdicts else "")
        + f'{tiles(story)}<nav aria-label="Parts of this page">{links}</nav></header>'
    )


def _definitions(story: RunStory, sheet: Sheet | None) -> str:
    """What several pictures use: drawn once, however often it is seen."""
    if sheet is None:
        return ""
    walls = f'<g id="walls">{walls_path(sheet.plane, story.walls)}</g>'
    return f'<svg class="defs" aria-hidden="true"><defs>{walls}{"".join(sheet.definitions)}</defs></svg>'


def _script(sheet: Sheet) -> str:
    plane = sheet.plane
    data = {
        "plane": {"x0": plane.x0, "y0": plane.y0, "x1": plane.x1, "y1": plane.y1},
        "fields": sheet.fields,
        "tracks": sheet.tracks,
        "pairs": sheet.pairs,
    }
    # "<" would let a text end the element that holds it.
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return f'<script type="application/json" id="story">{text}</script>\n'


@cache
def _resource(name: str) -> str:
    return files("astro_rl.report").joinpath(name).read_text(encoding="utf-8")


def _version() -> str:
    try:
        return version("astro-rl")
    except PackageNotFoundError:
        return "(not installed)"
