"""Measures of several sets of data: a strip a set for each measure, the paper's figure beside it, all again as a table.

One drawing serves selection rules (direction change, curvature, walls, support) and the metrics of augmented data."""

from __future__ import annotations

from html import escape

import numpy as np

from astro_rl.evaluate.statistics import Estimate
from astro_rl.report.chosen_view import chosen_maps
from astro_rl.report.evidence import Measure, Measures, Reading
from astro_rl.report.maps import Sheet
from astro_rl.report.markup import Section, amount, paragraph, table
from astro_rl.report.score_chart import axis, interval_line, nice, place, row, shape
from astro_rl.report.story import RunStory

PAPER_MARK = '<svg class="paper" x="{0}" y="{1}"><path d="M0-6L6 0 0 6-6 0z"/></svg>'
BETTER = {"lower": "the paper calls less better", "higher": "the paper calls more better"}


def geometry_section(story: RunStory, sheet: Sheet | None) -> Section | None:
    """What each selection rule chooses."""
    if story.geometry is None:
        return None
    text = paragraph(
        "Pairs of source and target as each selection rule puts them together, before anything is generated: how "
        "sharply the path turns, how often a wall stands between the two, how often a pair leads where no recording "
        "went."
    )
    maps = "" if sheet is None or not story.chosen else chosen_maps(sheet, story)
    body = text + measures_body(story.geometry, "geometry") + maps
    return Section("geometry", "What each selection rule chooses", body, "Selection")


def metrics_section(story: RunStory) -> Section | None:
    """Metrics of augmented data beside real data's."""
    if story.metrics is None:
        return None
    reference = story.metrics.reference
    text = paragraph(
        "Every metric that applies to this data"
        + (f", with its value on data that is {reference} beside it." if reference else ".")
    )
    body = text + lines_body(story.metrics)
    return Section("metrics", "Metrics beside real data's", body, "Metrics")


def measures_body(found: Measures, name: str) -> str:
    """Charts, the same figures as a table, and what did not apply."""
    marks = [reading for measure in found.measures for reading in measure.readings.values()]
    parts = [paragraph(found.about, "soft")] if found.about else []
    if any(reading.paper is not None for reading in marks):
        parts.append(
            '<ul class="key"><li><svg viewBox="0 0 34 14" aria-hidden="true"><g class="paper" '
            'transform="translate(17 7)"><path d="M0-6L6 0 0 6-6 0z"/></g></svg>the paper\'s figure</li></ul>'
        )
    panels = "".join(_panel(measure, found) for measure in found.measures)
    parts.append(f'<figure data-figure="{name}"><div class="panels">{panels}</div></figure>')
    parts.append(_table(found))
    return "".join(parts) + _absent(found)


def lines_body(found: Measures) -> str:
    """Many measures: a line each, its sets on one small scale of its own. The whole text stands in the line, so no
    table repeats it."""
    groups = dict.fromkeys(measure.group for measure in found.measures)
    parts = [paragraph(found.about, "soft")] if found.about else []
    marks = "".join(
        f'<li class="arm-{min(number, 4)}"><svg class="dots" viewBox="0 0 34 14" aria-hidden="true">'
        f'<g class="dot" transform="translate(17 7)">{shape(number)}</g></svg>{escape(name)}</li>'
        for number, name in enumerate(line_sets(found))
    )
    drawn = ""
    for group in groups:
        lines = "".join(_line(measure, found) for measure in found.measures if measure.group == group)
        drawn += (f"<h3>{escape(group)}</h3>" if group else "") + f'<div class="lines">{lines}</div>'
    scale = paragraph(
        "Each line has a scale of its own, from 0 on, or as far either side of 0 where values are negative.",
        "soft small",
    )
    return (
        "".join(parts)
        + f'<ul class="key">{marks}</ul>{scale}<figure data-figure="metrics">{drawn}</figure>'
        + _absent(found)
    )


def line_sets(found: Measures) -> tuple[str, ...]:
    """The reference first: it takes the hollow mark."""
    return tuple(sorted(found.sets, key=lambda name: name != found.reference))


def _line(measure: Measure, found: Measures) -> str:
    low, high = measure_range(measure)
    dots, told = "", []
    for number, name in enumerate(line_sets(found)):
        reading = measure.readings.get(name)
        told.append(f"<b>{escape(name)}</b> {_told(reading, measure.unit)}")
        if reading is not None:
            dots += (
                f'<g class="arm-{min(number, 4)}"><svg class="dot" x="{place(reading.value, low, high)}" y="10">'
                f"{shape(number)}</svg></g>"
            )
    note = f'<span class="sub">{escape(measure.note)}</span>' if measure.note else ""
    rail = f'<line class="rail-line" x1="{place(low, low, high)}" x2="{place(high, low, high)}" y1="10" y2="10"/>'
    cells = "".join(f"<span>{each}</span>" for each in told)
    return (
        f'<div class="line"><div class="line-name">{escape(measure.name)}{note}</div>'
        f'<svg class="line-plot" aria-hidden="true">{rail}{dots}</svg><div class="line-numbers">{cells}</div></div>'
    )


def _told(reading: Reading | None, unit: str) -> str:
    return "–" if reading is None else escape(reading_text(reading, unit))


def _absent(found: Measures) -> str:
    if not found.absent:
        return ""
    items = "".join(f"<li><b>{escape(what)}</b>: {escape(why)}</li>" for what, why in found.absent.items())
    return f'<h3>What did not apply</h3><ul class="limits">{items}</ul>'


def measure_range(measure: Measure) -> tuple[float, float]:
    """From 0, where nothing lies below it, to the next round number above all that is drawn."""
    ends = [end for reading in measure.readings.values() for end in reading.reach]
    ends += [reading.paper for reading in measure.readings.values() if reading.paper is not None]
    low, high = min(ends), max(ends)
    if all(reading.value >= 0 for reading in measure.readings.values()):
        # A spread that reaches below 0 says nothing about values there.
        return 0.0, nice(high) if high > 0 else 1.0
    reach = nice(max(abs(low), abs(high)))
    return -reach, reach if high > 0 else 0.0


def reading_text(reading: Reading, unit: str) -> str:
    """`1.25 ± 0.45 rad`, `3.2 (2.9 to 3.6) %`."""
    text = number_text(reading.value)
    if reading.low is not None and reading.high is not None:
        text += f" ({number_text(reading.low)} to {number_text(reading.high)})"
    elif reading.spread is not None:
        text += f" ± {number_text(reading.spread)}"
    return f"{text} {unit}".strip()


def paper_text(reading: Reading) -> str:
    if reading.paper is None:
        return ""
    told = number_text(reading.paper)
    return told if reading.paper_spread is None else f"{told} ± {number_text(reading.paper_spread)}"


def number_text(value: float) -> str:
    """Three digits: enough to compare, and no more than a table can bear."""
    size = abs(value)
    if value == round(value) and size < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    if size >= 100 or size < 0.001:
        return amount(value) if size >= 100 else f"{value:.1e}".replace("-", "−")
    digits = 2 - int(np.floor(np.log10(size)))
    return f"{value:.{max(digits, 0)}f}".replace("-", "−")


def _panel(measure: Measure, found: Measures) -> str:
    low, high = measure_range(measure)
    rows = [
        _row(number, name, measure.readings[name], measure.unit, low, high, name == found.reference)
        for number, name in enumerate(line_sets(found))
        if name in measure.readings
    ]
    told = [text for text in (measure.note, BETTER.get(measure.better or "")) if text]
    note = paragraph("; ".join(told).capitalize() + ".", "soft small") if told else ""
    title = measure.name + (f", {measure.unit}" if measure.unit else "")
    strips = "".join(rows) + axis(low, high, "")
    return f'<div class="panel"><h3>{escape(title)}</h3>{note}<div class="strips">{strips}</div></div>'


def _row(
    number: int, name: str, reading: Reading, unit: str, low: float, high: float, reference: bool
) -> str:
    estimate = Estimate(reading.value, *reading.reach)
    inside = interval_line(estimate, low, high, tick=False) if estimate.low < estimate.high else ""
    if reading.paper is not None:
        inside += PAPER_MARK.format(place(reading.paper, low, high), 20)
    inside += f'<svg class="dot" x="{place(reading.value, low, high)}" y="20">{shape(number)}</svg>'
    numbers = f"<b>{number_text(reading.value)}</b>"
    if reading.paper is not None:
        numbers += f" <span>paper {escape(number_text(reading.paper))}</span>"
    label = f"{name}: {reading_text(reading, unit)}"
    if reading.paper is not None:
        label += f", paper {paper_text(reading)}"
    drawn = row(number, name, inside, numbers, label)
    return drawn.replace('class="strip ', 'class="strip reference ', 1) if reference else drawn


def _table(found: Measures) -> str:
    """The chart's figures as text, for those who do not see it or want to copy them."""
    with_paper = [
        name
        for name in found.sets
        if any(
            measure.readings[name].paper is not None for measure in found.measures if name in measure.readings
        )
    ]
    head = ["Measure"]
    for name in found.sets:
        head += [name] + ([f"{name}, paper"] if name in with_paper else [])
    lines = []
    for measure in found.measures:
        cells = [measure.name + (f", {measure.unit}" if measure.unit else "")]
        for name in found.sets:
            reading = measure.readings.get(name)
            cells.append("–" if reading is None else reading_text(reading, ""))
            if name in with_paper:
                cells.append((paper_text(reading) if reading is not None else "") or "–")
        lines.append(cells)
    return f"<details><summary>All figures as a table</summary>{table(head, lines)}</details>"
