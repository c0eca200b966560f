"""Learning curves: mean and 95 % band over seeds, an arm a colour, one quantity at a time to choose."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from astro_rl.report.curves import Band, band
from astro_rl.report.evidence import Curves
from astro_rl.report.markup import Section, counted, paragraph
from astro_rl.report.measure_view import number_text
from astro_rl.report.score_chart import nice
from astro_rl.report.story import RunStory

WIDTH, HEIGHT = 1000.0, 400.0
"""Of a plot's own coordinates: the page stretches them."""
LINES, TICKS = 4, 5
DASHES = ("", "7 4", "2 4", "9 3 2 3", "14 4")
"""A pattern an arm: colour is never the only difference."""


def curves_section(story: RunStory) -> Section | None:
    if not story.curves:
        return None
    seeds = sorted({len(values) for curves in story.curves for values in curves.arms.values()})
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    text = paragraph(
        "What was recorded during training. Lines are means over seeds, shaded bands their 95 % interval (percentile "
        f"bootstrap; {counts} seed{'s' if seeds != [1] else ''} an arm, and one seed alone has no band). They show how "
        "training went; what it led to stands with the scores."
    )
    groups = dict.fromkeys(curves.group for curves in story.curves)
    body = "".join(_group(name, [each for each in story.curves if each.group == name]) for name in groups)
    return Section("curves", "Learning curves", text + body, "Curves")


def levels(bands: list[Band]) -> list[float]:
    """Round values for the lines of a plot: its ends, and some between. What lies far outside of the rest is left out,
    and drawn at the edge: a first loss of a thousand would press all that follows onto the axis."""
    ends = np.concatenate([part for each in bands for part in each if part is not None])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return [0.0, 1.0]
    inner_low, inner_high = (float(value) for value in np.percentile(ends, [2, 98]))
    reach = 2 * (inner_high - inner_low)
    low, high = max(float(ends.min()), inner_low - reach), min(float(ends.max()), inner_high + reach)
    step = nice(max((high - low) / LINES, 1e-6 * max(abs(low), abs(high)), 1e-12))
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return [step * number for number in range(first, max(last, first + 1) + 1)]


def _group(name: str, every: list[Curves]) -> str:
    options = "".join(
        f'<button type="button" class="choice" aria-pressed="{"true" if number == 0 else "false"}">'
        f"{escape(curves.quantity)}</button>"
        for number, curves in enumerate(every)
    )
    choose = (
        f'<div class="controls" hidden><span class="choices" role="group" aria-label="Choose a quantity">{options}'
        "</span></div>"
        if len(every) > 1
        else ""
    )
    charts = "".join(_chart(curves, hidden=number > 0) for number, curves in enumerate(every))
    title = name.upper() if ":" not in name else name.capitalize()
    inside = choose + _legend(every[0]) + charts
    return f'<h3>{escape(title)}</h3><figure data-figure="curves" data-curves>{inside}</figure>'


def _legend(curves: Curves) -> str:
    entries = "".join(
        f'<li class="arm-{min(number, 4)}"><svg viewBox="0 0 34 14" aria-hidden="true"><path class="curve" '
        f'stroke-dasharray="{DASHES[min(number, 4)]}" d="M2 7H32"/></svg>{escape(arm)}, '
        f"{counted(len(values), 'seed')}</li>"
        for number, (arm, values) in enumerate(curves.arms.items())
    )
    return f'<ul class="key">{entries}</ul>'


def _chart(curves: Curves, *, hidden: bool) -> str:
    bands = [band(values) for values in curves.arms.values()]
    lines, last = levels(bands), max(float(curves.steps[-1]), 1.0)
    low, high = lines[0], lines[-1]
    x = curves.steps / last * WIDTH
    drawn = "".join(_arm(number, found, x, low, high) for number, found in reversed(list(enumerate(bands))))
    heights = [HEIGHT * number / (len(lines) - 1) for number in range(len(lines))]
    grid = "".join(f'<path class="grid-line" d="M0 {height:g}H{WIDTH:g}"/>' for height in heights)
    plot = (
        f'<svg class="curve-plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(_told(curves, bands))}">{grid}{drawn}<path class="hair" visibility="hidden" '
        f'd="M0 0V{HEIGHT:g}"/></svg>'
    )
    ticks = "".join(f"<span>{_tick(value)}</span>" for value in reversed(lines))
    updates = "".join(f"<span>{round(last * part / (TICKS - 1)):,}</span>" for part in range(TICKS))
    return (
        f'<div class="chart" data-chart="{escape(_data(curves, bands), quote=True)}"{" hidden" if hidden else ""}>'
        f'<h4>{escape(curves.quantity)}</h4><div class="with-axes"><div class="y-ticks" aria-hidden="true">{ticks}'
        f'</div>{plot}<div class="x-ticks" aria-hidden="true">{updates}</div></div>'
        f'<p class="soft small x-name">updates</p><p class="readout" aria-live="polite">{escape(_told(curves, bands))}'
        "</p></div>"
    )


def _tick(value: float) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
    return text.replace("-", "−")


def _arm(number: int, found: Band, x: np.ndarray, low: float, high: float) -> str:
    def at(values: np.ndarray) -> np.ndarray:
        return (high - np.clip(values, low, high)) / (high - low) * HEIGHT

    seen = np.isfinite(found.mean)
    shade = ""
    if found.low is not None and found.high is not None and seen.any():
        there = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x[seen], at(found.high[seen]), strict=True))
        back = "L".join(
            f"{a:.1f} {b:.1f}" for a, b in zip(x[seen][::-1], at(found.low[seen])[::-1], strict=True)
        )
        shade = f'<path class="band" d="M{there}L{back}z"/>'
    line = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x[seen], at(found.mean[seen]), strict=True))
    dashes = DASHES[min(number, 4)]
    curve = f'<path class="curve" stroke-dasharray="{dashes}" d="M{line}"/>' if line else ""
    return f'<g class="arm-{min(number, 4)}">{shade}{curve}</g>'


def _told(curves: Curves, bands: list[Band]) -> str:
    """Where the curves end, in words."""
    ends = []
    for arm, found in zip(curves.arms, bands, strict=True):
        seen = np.flatnonzero(np.isfinite(found.mean))
        if len(seen):
            ends.append(f"{arm} {_with_band(found, int(seen[-1]))}")
    return f"After {int(curves.steps[-1]):,} updates: " + (", ".join(ends) or "no finite value") + "."


def _with_band(found: Band, point: int) -> str:
    told = number_text(float(found.mean[point]))
    if found.low is None or found.high is None:
        return told
    return f"{told} ({number_text(float(found.low[point]))} to {number_text(float(found.high[point]))})"


def _data(curves: Curves, bands: list[Band]) -> str:
    """What the pointer reads: a text an arm and point."""
    return json.dumps(
        {
            "steps": [int(step) for step in curves.steps],
            "arms": {
                arm: [
                    _with_band(found, point) if np.isfinite(found.mean[point]) else None
                    for point in range(len(curves.steps))
                ]
                for arm, found in zip(curves.arms, bands, strict=True)
            },
        },
        allow_nan=False,
        separators=(",", ":"),
    )
