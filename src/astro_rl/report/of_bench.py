"""Pages of a bench's folder: one for each table of its records (`bench_tables`), and for each that lies there as
`NAME.table.json` (`table_story`)."""

from __future__ import annotations

from pathlib import Path

from astro_rl.bench.records import RECORDS, read
from astro_rl.errors import DataError
from astro_rl.report.bench_tables import stories_of
from astro_rl.report.static_parts import save_table_figures
from astro_rl.report.table_page import write_table_page
from astro_rl.report.table_story import SUFFIX, TableStory
from astro_rl.run.files import read_json, write_json

PAGES = "pages"
PLACES = ("", "tables/")
"""Where tables lie in the folder."""


def is_bench(folder: Path) -> bool:
    """A bench's folder has cells or records, or tables already."""
    return (folder / "cells").is_dir() or (folder / RECORDS).is_file() or bool(_files(folder))


def save_table(story: TableStory, folder: str | Path, name: str) -> Path:
    """Where `astro-rl report` finds it."""
    path = Path(folder) / f"{name}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, story.as_json())
    return path


def report_bench(
    folder: str | Path, *, out: str | Path | None = None, figures: str | Path | None = None
) -> list[Path]:
    """Write every table's page, and its figures where a folder for them is named."""
    stories = stories_in(Path(folder))
    if not stories:
        raise DataError(
            "There is no table in this folder yet.",
            file=folder,
            expected=f"records.jsonl, as astro-rl bench writes it, or NAME{SUFFIX}",
            fix="run astro-rl bench until a cell of the table has finished",
        )
    pages = Path(folder) / PAGES if out is None else Path(out)
    written = []
    for name, story in stories.items():
        written.append(write_table_page(story, pages / f"{name}.html"))
        written += [] if figures is None else save_table_figures(story, figures, name)
    return written


def stories_in(folder: Path) -> dict[str, TableStory]:
    """Tables of the bench's records, and those that lie there as files, which come first where names are the same."""
    found: dict[str, TableStory] = {}
    if (folder / RECORDS).is_file():
        found |= stories_of(read([folder]))
    for file in _files(folder):
        found[file.name.removesuffix(SUFFIX)] = TableStory.from_json(read_json(file), file=file)
    return dict(sorted(found.items()))


def _files(folder: Path) -> list[Path]:
    return sorted(path for place in PLACES for path in (folder / place).glob(f"*{SUFFIX}"))
