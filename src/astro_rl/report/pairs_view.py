"""One source and one target, the gap between them completed by several methods, side by side."""

from __future__ import annotations

from html import escape

import numpy as np

from astro_rl.report.evidence import Attempt, Pair
from astro_rl.report.maps import Sheet
from astro_rl.report.markup import LINE, Section, counted, paragraph, table
from astro_rl.report.measure_view import number_text
from astro_rl.report.plane import Plane, path_data, svg
from astro_rl.report.story import RunStory

ROOM = 0.12
"""Around what is drawn of a pair, as a share of it."""
KEY = (
    (LINE.format("real"), "recorded, given to each method"),
    (LINE.format("lead"), "recorded before it"),
    (LINE.format("generated"), "the method's states"),
    (LINE.format("driven"), "where the simulator gets to under its actions"),
)


def pairs_section(sheet: Sheet, story: RunStory) -> Section | None:
    if not story.pairs:
        return None
    plane, driven = sheet.plane, any_driven(story.pairs)
    for number, pair in enumerate(story.pairs):
        size = max(box_of(plane, pair)[2:]) / 40
        for column, name in enumerate(methods(story.pairs)):
            drawn = _drawn(plane, pair, pair.attempts.get(name), size)
            sheet.definitions.append(f'<g id="pair-{number}-{column}">{drawn}</g>')
        sheet.pairs.append(_data(plane, pair, number, methods(story.pairs)))
    text = paragraph(
        "The same recorded pieces, and the states between them filled in by each method. All start from the same state "
        "and are asked for the same target."
    )
    if driven:
        text += paragraph(
            "A method may write down states that its own actions do not reach. The simulator, started in the first "
            "state and given the method's actions, shows where they lead.",
            "soft",
        )
    marks = [entry for entry in KEY if driven or "driven" not in entry[0]]
    if not any(pair.lead is not None for pair in story.pairs):
        marks = [entry for entry in marks if "lead" not in entry[0]]
    key = "".join(f"<li>{mark}{escape(told)}</li>" for mark, told in marks)
    body = f'{text}<ul class="key">{key}</ul>{_viewer(sheet, story)}{_summary(story.pairs)}'
    return Section("pairs", "The same pair completed by each method", body, "Completions")


def methods(pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    """In the order in which they first come."""
    return tuple(dict.fromkeys(name for pair in pairs for name in pair.attempts))


def any_driven(pairs: tuple[Pair, ...]) -> bool:
    return any(attempt.driven is not None for pair in pairs for attempt in pair.attempts.values())


def box_of(plane: Plane, pair: Pair) -> tuple[float, float, float, float]:
    """The part of the picture that the pair needs, in the plane's own proportions: x, y, width, height."""
    places = [pair.given[pair.known], *([pair.lead] if pair.lead is not None else [])]
    for attempt in pair.attempts.values():
        places += [attempt.xy] + ([attempt.driven] if attempt.driven is not None else [])
    points = plane.points(np.concatenate(places))
    low, high = points.min(axis=0), points.max(axis=0)
    # What strays far beyond the plane is cut off by it.
    low, high = np.maximum(low, 0), np.minimum(high, [plane.width, plane.height])
    share = max(*((high - low) / [plane.width, plane.height] * (1 + 2 * ROOM)), 0.15)
    share = min(float(share), 1.0)
    wide, tall = share * plane.width, share * plane.height
    middle = (low + high) / 2
    x = float(np.clip(middle[0] - wide / 2, 0, plane.width - wide))
    y = float(np.clip(middle[1] - tall / 2, 0, plane.height - tall))
    return x, y, wide, tall


def miss_text(pair: Pair, attempt: Attempt | None) -> str:
    """How far from the target, in the plane's units."""
    if attempt is None:
        return "not completed"
    told = f"misses the target by {distance_text(pair.miss(attempt.xy))}"
    if attempt.driven is not None:
        told += f"; driven by its actions, by {distance_text(pair.miss(attempt.driven))}"
    return told


def distance_text(distance: float) -> str:
    """Rounding errors of known states are no distance."""
    return number_text(round(distance, 4))


def pair_text(pair: Pair, number: int) -> str:
    gap = int((~pair.known).sum())
    told = f"Pair {number + 1}: {counted(gap, 'state')} to fill in"
    if pair.recordings is not None:
        told += f", between recordings {pair.recordings[0]:,} and {pair.recordings[1]:,}"
    return f"{told}."


def _drawn(plane: Plane, pair: Pair, attempt: Attempt | None, size: float) -> str:
    parts = [] if pair.lead is None else [f'<path class="lead" d="{path_data(plane, pair.lead)}"/>']
    known = np.flatnonzero(pair.known)
    for run in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        parts.append(f'<path class="real" d="{path_data(plane, pair.given[run])}"/>')
    target = pair.target
    if attempt is not None:
        parts.append(f'<path class="generated" d="{path_data(plane, attempt.xy)}"/>')
        parts.append(_cross(plane, attempt.xy[target.start], size, "arrival"))
        if attempt.driven is not None:
            parts.append(f'<path class="driven" d="{path_data(plane, attempt.driven)}"/>')
            parts.append(_cross(plane, attempt.driven[target.start], size, "arrival driven-end"))
    first, last = (plane.at(float(xy[0]), float(xy[1])) for xy in (pair.given[0], pair.given[target.start]))
    parts.append(f'<circle class="start" cx="{first[0]:.2f}" cy="{first[1]:.2f}" r="{0.6 * size:.3f}"/>')
    parts.append(
        f'<rect class="end" x="{last[0] - size / 2:.2f}" y="{last[1] - size / 2:.2f}" '
        f'width="{size:.3f}" height="{size:.3f}"/>'
    )
    return "".join(parts)


def _cross(plane: Plane, at: np.ndarray, size: float, classes: str) -> str:
    x, y = plane.at(float(at[0]), float(at[1]))
    reach = 0.6 * size
    return (
        f'<path class="{classes}" d="M{x - reach:.2f} {y - reach:.2f}L{x + reach:.2f} {y + reach:.2f}'
        f'M{x - reach:.2f} {y + reach:.2f}L{x + reach:.2f} {y - reach:.2f}"/>'
    )


def _viewer(sheet: Sheet, story: RunStory) -> str:
    plane, first = sheet.plane, story.pairs[0]
    box = " ".join(f"{value:.2f}" for value in box_of(plane, first))
    maps = []
    for column, name in enumerate(methods(story.pairs)):
        drawn = svg(
            plane, f'<use class="chosen" href="#pair-0-{column}"/>', f"The pair completed by {name}"
        ).replace(f'viewBox="{_whole(plane)}"', f'viewBox="{box}"', 1)
        told = miss_text(first, first.attempts.get(name))
        maps.append(f'<div><h4>{escape(name)}</h4>{drawn}<p class="miss">{escape(told)}</p></div>')
    choices = "".join(
        f'<button type="button" class="choice" aria-pressed="{"true" if number == 0 else "false"}">'
        f"{number + 1}</button>"
        for number in range(len(story.pairs))
    )
    choose = (
        f'<span class="choices" role="group" aria-label="Choose a pair">{choices}</span>'
        if len(story.pairs) > 1
        else ""
    )
    return (
        f'<figure data-figure="pairs" data-pairs><div class="methods">{"".join(maps)}</div>'
        f'<div class="controls" hidden>{choose}<button type="button" data-whole aria-pressed="false">'
        f'Whole map</button></div><p class="about" aria-live="polite">{escape(pair_text(first, 0))}</p></figure>'
    )


def _whole(plane: Plane) -> str:
    text = svg(plane, "", "")
    return text.split('viewBox="', 1)[1].split('"', 1)[0]


def _data(plane: Plane, pair: Pair, number: int, names: tuple[str, ...]) -> dict[str, object]:
    return {
        "text": pair_text(pair, number),
        "box": [round(value, 3) for value in box_of(plane, pair)],
        "miss": [miss_text(pair, pair.attempts.get(name)) for name in names],
    }


def mean_misses(pairs: tuple[Pair, ...], name: str) -> tuple[float | None, float | None]:
    """Over all pairs that the method completed: as written down, and as driven."""
    attempts = [(pair, pair.attempts[name]) for pair in pairs if name in pair.attempts]
    written = [pair.miss(attempt.xy) for pair, attempt in attempts]
    driven = [pair.miss(attempt.driven) for pair, attempt in attempts if attempt.driven is not None]
    return (
        float(np.mean(written)) if written else None,
        float(np.mean(driven)) if driven else None,
    )


def _summary(pairs: tuple[Pair, ...]) -> str:
    driven = any_driven(pairs)
    rows = []
    for name in methods(pairs):
        found = mean_misses(pairs, name)[: 2 if driven else 1]
        rows.append((name, *("–" if value is None else distance_text(value) for value in found)))
    head = [f"Distance from the target, mean of {counted(len(pairs), 'pair')}", "as written down"]
    return table(head + (["as driven"] if driven else []), rows) + paragraph(
        "Distances are in the plane's units, between each target state and the method's state at the same time. Pairs "
        "are drawn evenly through what the search found; none is picked.",
        "soft small",
    )
