"""The page's building blocks as text: sections, tables, bars, keys. What comes in as data is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

LINE = '<svg viewBox="0 0 34 14" aria-hidden="true"><path class="{0}" d="M2 7H32"/></svg>'
KEY_MARKS = {
    "real": LINE.format("real"),
    "generated": LINE.format("generated"),
    "bridge": LINE.format("bridge"),
    "start": '<svg viewBox="0 0 34 14" aria-hidden="true"><circle class="start" cx="17" cy="7" r="5"/></svg>',
    "end": '<svg viewBox="0 0 34 14" aria-hidden="true"><rect class="end" x="12" y="2" width="10" height="10"/></svg>',
    "goal": '<svg viewBox="0 0 34 14" aria-hidden="true"><polygon class="goal" '
    'points="17,0 19,5 24,5 20,8 22,14 17,10.5 12,14 14,8 10,5 15,5"/></svg>',
}


class Section(NamedTuple):
    """A part of the page and what the navigation calls it."""

    name: str
    """The anchor."""
    title: str
    body: str
    short: str = ""

    def html(self) -> str:
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-title">'
            f'<h2 id="{self.name}-title">{escape(self.title)}</h2>{self.body}</section>'
        )


class Bar(NamedTuple):
    text: str
    share: float
    number: str
    note: str = ""
    classes: str = ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, classes: str = "") -> str:
    """The first column names its row. Cells are texts, not markup."""
    titles = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    top = f"<thead><tr>{titles}</tr></thead>" if any(head) else ""
    return (
        f'<div class="table" tabindex="0"><table class="{classes}">{top}<tbody>{lines}</tbody></table></div>'
    )


def bars(rows: Iterable[Bar]) -> str:
    """Shares of 1 as bars, each with its name and number in words: the bar itself is decoration to a screen reader."""
    return (
        '<ul class="bars">'
        + "".join(
            f'<li class="{row.classes}"><span>{escape(row.text)}</span>'
            f'<span class="rail" aria-hidden="true"><span class="fill" '
            f'style="width:{100 * min(max(row.share, 0.0), 1.0):.2f}%"></span></span>'
            f'<span class="number">{escape(row.number)} <span>{escape(row.note)}</span></span></li>'
            for row in rows
        )
        + "</ul>"
    )


def key(*entries: tuple[str, str]) -> str:
    """What marks and lines mean: (name of the mark, text)."""
    inside = "".join(f"<li>{KEY_MARKS[mark]}{escape(text)}</li>" for mark, text in entries)
    return f'<ul class="key">{inside}</ul>'


def colour_bar(low: str, high: str, name: str, pictures: str) -> str:
    return (
        f'<div class="colour-bar"><span class="name">{escape(name)}</span>'
        f"<span>{escape(low)}</span>{pictures}<span>{escape(high)}</span></div>"
    )


def bar_picture(uri: str, classes: str = "") -> str:
    return f'<img class="{classes}" src="{uri}" alt="">'


def beside(text: str, figure: str) -> str:
    """Text and picture next to each other; one above the other on a phone."""
    return f'<div class="beside"><div class="text">{text}</div><div>{figure}</div></div>'


def figure(name: str, inside: str, caption: str) -> str:
    return f'<figure data-figure="{name}">{inside}<figcaption>{escape(caption)}</figcaption></figure>'


def paragraph(text: str, classes: str = "") -> str:
    return f'<p class="{classes}">{escape(text)}</p>' if classes else f"<p>{escape(text)}</p>"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 seed`, `4 seeds`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def amount(value: float) -> str:
    """A number with as many decimals as it can bear: 1,234, 56.7, 0.083."""
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 1 else f"{value:.2g}"
    return text.replace("-", "−")


def duration(seconds: float) -> str:
    """4 s, 1 min 30 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"
