"""Scores as strips: a dot a seed, the mean, its interval, and the difference below. Widths are percentages, so that the
same picture fits a phone and a desk."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from astro_rl.evaluate.statistics import Estimate
from astro_rl.report.findings import Comparison, compare, mean_interval, shown, signed
from astro_rl.report.story import PERCENT, Scores

SHAPES = (
    '<circle r="5.5"/>',
    '<circle r="5.5"/>',
    '<rect x="-5" y="-5" width="10" height="10"/>',
    '<path d="M0-6.5L6 5H-6z"/>',
    '<path d="M0-6.5L6.5 0 0 6.5-6.5 0z"/>',
)
"""A shape an arm, after the first two by turns: colour is never the only difference."""


def score_chart(scores: Scores) -> str:
    """All of one learner."""
    low, high = score_range(scores)
    rows = []
    for number, (arm, figures) in enumerate(scores.arms.items()):
        rows.append(_arm_row(number, arm, figures, scores.unit, low, high))
    rows.append(axis(low, high, scores.unit))
    found = compare(scores)
    if found:
        reach = nice(max(abs(c.difference.low) for c in found) or 1.0)
        reach = max([reach, *(nice(abs(c.difference.high)) for c in found if c.difference.high)])
        rows.append('<p class="strip-title">Difference of the means</p>')
        rows += [_difference_row(number + 1, c, reach) for number, c in enumerate(found)]
        rows.append(axis(-reach, reach, scores.unit, sign=True))
    return f'<div class="strips">{"".join(rows)}</div>'


def score_range(scores: Scores) -> tuple[float, float]:
    """0 to 100 for percentages; else everything that has to be shown, rounded outwards."""
    if scores.unit == PERCENT:
        return 0.0, 100.0
    every = np.concatenate(list(scores.arms.values()))
    low, high = float(every.min()), float(every.max())
    step = nice(max(high - low, 1e-9)) / 4
    low, high = float(np.floor(low / step) * step), float(np.ceil(high / step) * step)
    return (low, high) if high > low else (low - step, high + step)


def nice(value: float) -> float:
    """The next of 1, 2, 4, 5, 10 times a power of ten: it can be halved and quartered for an axis."""
    if value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m for m in (1, 2, 4, 5, 10) if m * power >= value - 1e-12) * power)


def _arm_row(number: int, arm: str, figures: np.ndarray, unit: str, low: float, high: float) -> str:
    estimate = mean_interval(figures)
    label = f"{arm}: mean {shown(estimate.value, unit)}, {len(figures)} seeds"
    dots = "".join(
        f'<svg class="dot" x="{place(value, low, high)}" y="{20 + rise}">{shape(number)}</svg>'
        for value, rise in spread(figures, low, high)
    )
    inside = interval_line(estimate, low, high) + dots
    return row(number, arm, inside, _number(estimate, unit), label)


def _difference_row(number: int, found: Comparison, reach: float) -> str:
    zero = '<line class="zero" x1="50%" x2="50%" y1="0" y2="40"/>'
    estimate = found.difference
    middle = f'<svg class="dot" x="{place(estimate.value, -reach, reach)}" y="20">{shape(number)}</svg>'
    inside = zero + interval_line(estimate, -reach, reach, tick=False) + middle
    numbers = (
        f"<b>{signed(estimate.value)}</b> <span>{signed(estimate.low)} to {signed(estimate.high)}</span>"
    )
    name = f"{found.arm} − {found.baseline}"
    return row(number, name, inside, numbers, f"{name}: {signed(estimate.value)}")


def row(number: int, name: str, inside: str, numbers: str, label: str) -> str:
    """A strip: name, plot, numbers. `number` chooses colour and shape."""
    return (
        f'<div class="strip arm-{min(number, 4)}"><div class="strip-name">{escape(name)}</div>'
        f'<svg class="strip-plot" role="img" aria-label="{escape(label)}">{inside}</svg>'
        f'<div class="strip-number">{numbers}</div></div>'
    )


def interval_line(estimate: Estimate, low: float, high: float, *, tick: bool = True) -> str:
    left, right = place(estimate.low, low, high), place(estimate.high, low, high)
    mean = place(estimate.value, low, high)
    line = f'<line class="interval" x1="{left}" x2="{right}" y1="20" y2="20"/>'
    return line + (f'<line class="mean" x1="{mean}" x2="{mean}" y1="6" y2="34"/>' if tick else "")


def axis(low: float, high: float, unit: str, *, sign: bool = False) -> str:
    texts = []
    for part in range(5):
        value = low + (high - low) * part / 4
        text = f"{abs(value):g}" if sign else f"{value:g}".replace("-", "−")
        if sign and value:
            text = ("+" if value > 0 else "−") + text
        text += " %" if unit == PERCENT and part == 4 and not sign else ""
        x = place(value, low, high)
        texts.append(
            f'<line class="tick" x1="{x}" x2="{x}" y1="0" y2="5"/><text x="{x}" y="18">{text}</text>'
        )
    line = f'<line class="tick" x1="{place(low, low, high)}" x2="{place(high, low, high)}" y1="0" y2="0"/>'
    inside = line + "".join(texts)
    picture = f'<svg class="strip-axis" aria-hidden="true">{inside}</svg>'
    return f'<div class="strip axis"><div></div>{picture}<div></div></div>'


def spread(figures: np.ndarray, low: float, high: float) -> list[tuple[float, float]]:
    """Each score with a step up or down where others of the same height would hide it."""
    near = (high - low) / 60
    placed: list[tuple[float, float]] = []
    offsets = (0.0, -8.0, 8.0, -14.0, 14.0)
    for value in sorted(float(v) for v in figures):
        crowd = sum(abs(value - other) < near for other, _ in placed)
        placed.append((value, offsets[crowd % len(offsets)]))
    return placed


def shape(number: int) -> str:
    return SHAPES[number if number < 2 else 2 + (number - 2) % (len(SHAPES) - 2)]


def place(value: float, low: float, high: float) -> str:
    """A margin of 2 % at either end leaves room for dots."""
    share = (value - low) / (high - low)
    return f"{2 + 96 * min(max(share, 0.0), 1.0):.2f}%"


def _number(estimate: Estimate, unit: str) -> str:
    low, high = f"{estimate.low:.1f}".replace("-", "−"), f"{estimate.high:.1f}".replace("-", "−")
    return f"<b>{shown(estimate.value, unit)}</b> <span>{low} to {high}</span>"


def legend(scores: Sequence[Scores]) -> str:
    """How strips are to be read."""
    seeds = sorted({len(arm) for each in scores for arm in each.arms.values()})
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return (
        f"Each mark is one training seed ({counts} an arm), the upright bar their mean, the thick line the mean's 95 % "
        "interval (percentile bootstrap over seeds, 50,000 resamples). Final checkpoints, no selection."
    )
