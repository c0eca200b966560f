"""Pages of a bench's folder: one for each table that lies there as `NAME.table.json` (`table_story`)."""

from __future__ import annotations

from pathlib import Path

from astro_rl.errors import DataError
from astro_rl.report.static_parts import save_table_figures
from astro_rl.report.table_page import write_table_page
from astro_rl.report.table_story import SUFFIX, TableStory
from astro_rl.run.files import read_json, write_json

PAGES = "pages"
PLACES = ("", "tables/")
"""Where tables lie in the folder."""


def is_bench(folder: Path) -> bool:
    """A bench's folder has cells or records, or tables already."""
    return (folder / "cells").is_dir() or (folder / "records.jsonl").is_file() or bool(_files(folder))


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
    files = _files(Path(folder))
    if not files:
        raise DataError(
            "There is no table in this folder yet.",
            file=folder,
            expected=f"NAME{SUFFIX}, as astro-rl bench writes them",
            fix="run astro-rl bench to its end, or ask it for its tables",
        )
    pages = Path(folder) / PAGES if out is None else Path(out)
    written = []
    for file in files:
        story, name = TableStory.from_json(read_json(file), file=file), file.name.removesuffix(SUFFIX)
        written.append(write_table_page(story, pages / f"{name}.html"))
        written += [] if figures is None else save_table_figures(story, figures, name)
    return written


def _files(folder: Path) -> list[Path]:
    return sorted(path for place in PLACES for path in (folder / place).glob(f"*{SUFFIX}"))
