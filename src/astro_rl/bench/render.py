"""A table as text: Markdown for reading, CSV for other programs, LaTeX for papers."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from astro_rl.run.files import write_bytes

NOTHING = "–"
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "−": "$-$",
    "≥": r"$\geq$",
    "Δ": r"$\Delta$",
    "θ": r"$\theta$",
    "τᵃ": r"$\tau^a$",
    "τˢ": r"$\tau^s$",
    "ₘ": "$_m$",
    "–": "--",
    "×": r"$\times$",
    "|": r"$|$",
    "<": r"$<$",
    ">": r"$>$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


@dataclass(frozen=True)
class Table:
    """Cells that are text already; None where there is nothing to say."""

    name: str
    """A file's stem."""
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(table: Table) -> str:
    def line(cells: Sequence[str | None]) -> str:
        return "| " + " | ".join((cell or NOTHING).replace("|", "\\|") for cell in cells) + " |"

    lines = [f"## {table.title}", "", line(table.header), "|" + " --- |" * len(table.header)]
    lines += [line(row) for row in table.rows]
    lines += [text for note in table.notes for text in ("", note)]
    return "\n".join(lines) + "\n"


def as_csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([cell or "" for cell in row] for row in table.rows)
    return out.getvalue()


def latex(table: Table) -> str:
    """With booktabs' rules, as the paper's own."""
    body = " \\\\\n".join(
        " & ".join(escaped(cell or NOTHING) for cell in row) for row in (table.header, *table.rows)
    )
    first, _, rest = body.partition("\n")
    rows = f"{first}\n\\midrule\n{rest} \\\\" if table.rows else f"{body} \\\\"
    notes = "".join(f"\n% {note}" for note in table.notes)
    columns = "l" * len(table.header)
    return (
        f"\\begin{{table}}[t]\n\\centering\n\\caption{{{escaped(table.title)}}}\n"
        f"\\label{{tab:{table.name}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{rows}\n"
        f"\\bottomrule\n\\end{{tabular}}{notes}\n\\end{{table}}\n"
    )


def escaped(text: str) -> str:
    """What LaTeX reads as the same text. Longer symbols first: τˢₘ holds τˢ."""
    marked = text
    for number, symbol in enumerate(sorted(_LATEX, key=len, reverse=True)):
        marked = marked.replace(symbol, f"\x00{number}\x01")
    for number, symbol in enumerate(sorted(_LATEX, key=len, reverse=True)):
        marked = marked.replace(f"\x00{number}\x01", _LATEX[symbol])
    return marked


def write(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Each as NAME.md, NAME.csv and NAME.tex, and all of them on one page, `tables.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in tables:
        for suffix, text in ((".md", markdown(table)), (".csv", as_csv(table)), (".tex", latex(table))):
            path = folder / f"{table.name}{suffix}"
            write_bytes(path, text.encode())
            paths.append(path)
    page = folder / "tables.md"
    write_bytes(page, "\n".join(map(markdown, tables)).encode())
    return [page, *paths]
