"""A table of results as plain records, for whoever has one: `bench` fills it, `table_page` writes its page.

A cell's mean stands beside its spread over seeds, its interval and the paper's figure. A cell without a mean says why
in its note. As JSON the same record lies beside the raw results (`NAME.table.json`), and `astro-rl report` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from astro_rl.errors import DataError

FORMAT, FORMAT_VERSION, SUFFIX = "astro-rl table", 1, ".table.json"


@dataclass(frozen=True)
class Cell:
    """One method on one task, or an average of such."""

    mean: float | None = None
    """None: there is no figure; the note says why."""
    std: float | None = None
    """Over seeds, as the paper's ±."""
    low: float | None = None
    high: float | None = None
    """95 % interval."""
    iqm: float | None = None
    seeds: int | None = None
    never_learned: int | None = None
    paper: float | None = None
    note: str = ""
    """`failed: …`, `not run`, or what a reader has to know of this number."""


@dataclass(frozen=True)
class Row:
    name: str
    cells: Mapping[str, Cell]
    """By column. A column that is not named here is empty."""
    group: str = ""
    """Rows of one group stand together: a learner, a suite, a regime."""
    note: str = ""


@dataclass(frozen=True)
class TextTable:
    """A smaller table beside the main one, in words: regimes, averages, probabilities of improvement."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    """The first cell names its row. None where there is nothing to say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableStory:
    """One table, with everything that its page says."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    unit: str = "%"
    better: Literal["higher", "lower"] | None = "higher"
    """None: columns are no rivals of each other, and none is the best."""
    panels: Literal["rows", "columns"] = "rows"
    """Charts: all columns of a row on one scale, or all rows of a column, each on a scale of its own."""
    baseline: str | None = None
    """The column that others are held against."""
    averages: tuple[Row, ...] = ()
    """Means over rows: below the table, never sorted among its rows."""
    caption: str = ""
    notes: tuple[str, ...] = ()
    """Sentences below the table: how it was made, where it differs from the paper."""
    more: tuple[TextTable, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    machine: str | None = None

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise DataError(
                "A table needs columns of different names.", field=self.title, found=list(self.columns)
            )
        if self.baseline is not None and self.baseline not in self.columns:
            raise DataError(
                "The baseline is no column of the table.",
                field=self.title,
                found=self.baseline,
                expected=", ".join(self.columns),
            )
        for row in (*self.rows, *self.averages):
            strange = set(row.cells) - set(self.columns)
            if strange:
                raise DataError(
                    "A row has cells of no column.",
                    field=f"{self.title}: {row.name}",
                    found=", ".join(sorted(strange)),
                    expected=", ".join(self.columns),
                )

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.group for row in self.rows))

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], *, file: str | Path | None = None) -> TableStory:
        """Refuses what is no table of this version, with the place of the fault."""
        if not isinstance(saved, Mapping) or saved.get("format") != FORMAT:
            raise DataError("This file holds no table.", file=file, expected=f'"format": "{FORMAT}"')
        if saved.get("format_version") != FORMAT_VERSION:
            raise DataError(
                "The table was written by another version of astro-rl.",
                file=file,
                field="format_version",
                found=saved.get("format_version"),
                expected=FORMAT_VERSION,
            )
        try:
            return _table(saved)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError("The table is damaged.", file=file, found=repr(error)) from None


def _table(saved: Mapping[str, Any]) -> TableStory:
    names = ("title", "unit", "better", "panels", "baseline", "caption", "machine")
    plain: dict[str, Any] = {name: saved[name] for name in names}
    texts: dict[str, Any] = {name: tuple(saved[name]) for name in ("columns", "notes", "commands")}
    return TableStory(
        **plain,
        **texts,
        rows=tuple(_row(row) for row in saved["rows"]),
        averages=tuple(_row(row) for row in saved["averages"]),
        more=tuple(
            TextTable(
                each["title"],
                tuple(each["header"]),
                tuple(tuple(line) for line in each["rows"]),
                tuple(each["notes"]),
            )
            for each in saved["more"]
        ),
        settings=dict(saved["settings"]),
    )


def _row(saved: Mapping[str, Any]) -> Row:
    cells = {name: Cell(**cell) for name, cell in saved["cells"].items()}
    return Row(saved["name"], cells, saved["group"], saved["note"])
