"""Pairs that selection rules put together, on a map a rule: which lie behind a wall, which lead where nobody went."""

from __future__ import annotations

from html import escape

import numpy as np

from astro_rl.report.evidence import ChosenPair
from astro_rl.report.maps import Sheet
from astro_rl.report.markup import LINE, counted, paragraph
from astro_rl.report.plane import Plane, svg, track
from astro_rl.report.story import RunStory

KINDS = (
    ("wall-between", "behind a wall", "behind_wall"),
    ("breakout", "never joined by a recording", "never_joined"),
    ("too-far", "out of reach", "out_of_reach"),
    ("within", "none of these", ""),
)
"""What a pair is called: the first of these that it is."""


def kind_of(pair: ChosenPair) -> str:
    return next(name for name, _, field in KINDS if not field or getattr(pair, field))


def chosen_maps(sheet: Sheet, story: RunStory) -> str:
    """One map a rule. Buttons leave one kind of pairs."""
    maps = []
    for rule, pairs in story.chosen.items():
        drawn = "".join(_pair(sheet.plane, pair) for pair in pairs)
        counts = [(text, sum(kind_of(pair) == name for pair in pairs)) for name, text, _ in KINDS]
        told = ", ".join(f"{count} {text}" for text, count in counts if count)
        maps.append(
            f"<div><h4>{escape(rule)}</h4>{svg(sheet.plane, drawn, f'Pairs chosen by {rule}: {told}')}"
            f'<p class="miss">{escape(counted(len(pairs), "pair"))}: {escape(told)}</p></div>'
        )
    key = "".join(f"<li>{LINE.format(name)}{escape(text)}</li>" for name, text, _ in KINDS)
    buttons = "".join(
        f'<button type="button" class="choice" data-kind="{name}" aria-pressed="{pressed}">{escape(text)}</button>'
        for name, text, pressed in (
            ("", "all pairs", "true"),
            *((name, text, "false") for name, text, _ in KINDS),
        )
    )
    text = paragraph(
        "Some pairs of each rule, drawn evenly through what it chose: a piece, and the straight line from its end to "
        "the target's first state.",
        "soft",
    )
    return (
        f'<h3>Pairs on the map</h3>{text}<ul class="key">{key}</ul><figure data-figure="chosen" data-chosen>'
        f'<div class="controls" hidden><span class="choices" role="group" aria-label="Show one kind of pairs">{buttons}'
        f'</span></div><div class="methods">{"".join(maps)}</div></figure>'
    )


def _pair(plane: Plane, pair: ChosenPair) -> str:
    kind, size = kind_of(pair), 0.35 * plane.mark
    gap = np.stack([pair.source[-1], pair.target[0]])
    x, y = plane.at(*(float(value) for value in pair.target[0]))
    return (
        f'<g class="pair-of {kind}">{track(plane, pair.source, "chosen-piece")}{track(plane, gap, kind)}'
        f'<circle class="{kind} target-dot" cx="{x:.2f}" cy="{y:.2f}" r="{size:.2f}"/></g>'
    )
