"""Chains and stitched trajectories: all as small pictures, one of them large, to choose and to walk along."""

from __future__ import annotations

from html import escape
from itertools import pairwise

import numpy as np

from astro_rl.report.maps import FRAGMENT_COLOURS, Sheet
from astro_rl.report.markup import Section, amount, beside, counted, figure, key, paragraph
from astro_rl.report.plane import Plane, end_mark, goal_mark, start_mark, stitched_track, svg, track
from astro_rl.report.story import Chain, RunStory, Stitched


def chains_section(sheet: Sheet, story: RunStory) -> Section | None:
    if not story.chains:
        return None
    for number, chain in enumerate(story.chains):
        sheet.definitions.append(f'<g id="chains-{number}">{_chain(sheet.plane, chain)}</g>')
    sheet.tracks["chains"] = [{"text": _chain_text(chain)} for chain in story.chains]
    text = paragraph(
        "Recorded pieces that the search put in a row before anything was generated: each starts about as many steps "
        "after the one before as the models will fill in. Pieces keep their numbers; dashes join them and stand for "
        "what is still missing."
    )
    marks = key(("bridge", "to be generated"), ("start", "first state"), ("end", "last state"))
    names = [f"chain {number + 1}" for number in range(len(story.chains))]
    body = text + marks + _viewer(sheet, story, "chains", names, _chain_text(story.chains[0]), walk=None)
    return Section("chains", "Chains of recorded pieces", body, "Chains")


def generated_section(sheet: Sheet, story: RunStory) -> Section | None:
    """Trajectories of a step or two, all on one map."""
    if story.generated is None:
        return None
    plane, drawn = sheet.plane, story.generated.tracks
    inside = "".join(track(plane, xy, "single") for xy in drawn) + goal_mark(
        plane, story.goal, story.goal_radius
    )
    shown = f"{len(drawn):,} of {counted(story.generated.total, 'generated trajectory', 'generated trajectories')}"
    text = paragraph(
        "The augmented data consists of single transitions. Each line leads from a generated state to the generated "
        "one after it; they join nothing, and are drawn evenly through the data."
    )
    picture = figure("generated", svg(plane, inside, f"Map of {shown}"), f"{shown}.")
    return Section("generated", "Generated transitions", beside(text, picture), "Transitions")


def stitched_section(sheet: Sheet, story: RunStory) -> Section | None:
    if not story.stitched:
        return None
    for number, stitched in enumerate(story.stitched):
        sheet.definitions.append(f'<g id="stitched-{number}">{stitched_track(sheet.plane, stitched)}</g>')
    sheet.tracks["stitched"] = [_track_data(stitched) for stitched in story.stitched]
    text = paragraph(
        "Trajectories of the augmented data. Solid lines are recorded steps; dotted ones were generated, or lead from "
        "one recording to another."
    )
    marks = key(
        ("real", "recorded"),
        ("generated", "generated"),
        ("start", "start"),
        ("end", "end"),
        *((("goal", "goal"),) if story.goal is not None else ()),
    )
    names = [f"{counted(len(stitched.xy), 'state')}" for stitched in story.stitched]
    first = story.stitched[0]
    body = (
        text + marks + _viewer(sheet, story, "stitched", names, stitched_text(first), walk=len(first.xy) - 1)
    )
    return Section("stitched", "Stitched trajectories", body, "Trajectories")


def stitched_text(stitched: Stitched) -> str:
    """One trajectory in words."""
    share = f"{100 * float(np.mean(stitched.generated)):.0f} % generated"
    recordings = [] if stitched.source is None else _in_order(stitched.source)
    if not recordings:
        return f"{counted(len(stitched.xy), 'state')}, {share}."
    shown = ", ".join(f"{number:,}" for number in recordings[:8]) + (" …" if len(recordings) > 8 else "")
    return f"{counted(len(stitched.xy), 'state')}, {share}; recorded in {_trajectories(recordings)} {shown}."


def _trajectories(recordings: list[int]) -> str:
    return "trajectory" if len(recordings) == 1 else "trajectories"


def _in_order(source: np.ndarray) -> list[int]:
    """The recordings that a trajectory visits, each where it comes first."""
    return list(dict.fromkeys(int(number) for number in source if number >= 0))


def _viewer(sheet: Sheet, story: RunStory, name: str, names: list[str], told: str, walk: int | None) -> str:
    """`walk`: the last state that the slider reaches; None for a viewer without one."""
    plane = sheet.plane
    chosen = f'<use class="chosen" href="#{name}-0"/>'
    walker = (
        "" if walk is None else f'<circle class="walker" visibility="hidden" r="{0.5 * plane.mark:.2f}"/>'
    )
    inside = goal_mark(plane, story.goal, story.goal_radius) + chosen + walker
    main = svg(plane, inside, f"Map of the chosen one: {told}")
    thumbs = "".join(
        f'<button type="button" class="thumb" aria-pressed="{"true" if number == 0 else "false"}">'
        + svg(plane, f'<use href="#{name}-{number}"/>', f"{name} {number + 1}").replace(
            'role="img"', 'aria-hidden="true"'
        )
        + f"<span>{escape(text)}</span></button>"
        for number, text in enumerate(names)
    )
    slider = (
        ""
        if walk is None
        else f'<input type="range" min="0" max="{walk}" value="0" aria-label="State along the trajectory">'
    )
    turn = (
        '<button type="button" data-turn="-1">Previous</button><button type="button" data-turn="1">Next</button>'
        if len(names) > 1
        else '<button type="button" data-turn="-1" hidden></button><button type="button" data-turn="1" hidden></button>'
    )
    zoom = "" if walk is None else '<button type="button" data-zoom aria-pressed="false">Zoom in</button>'
    return (
        f'<div class="viewer" data-viewer="{name}"><figure class="main" data-figure="{name}">{main}'
        f'<div class="controls" hidden>{turn}{slider}{zoom}</div>'
        f'<p class="about">{escape(told)}</p><p class="readout" aria-live="polite"></p></figure>'
        f'<div class="thumbs" role="group" aria-label="Choose one">{thumbs}</div></div>'
    )


def _chain(plane: Plane, chain: Chain) -> str:
    parts, pieces = [], [piece for piece in chain.pieces if len(piece)]
    for one, other in pairwise(pieces):
        parts.append(track(plane, np.stack([one[-1], other[0]]), "bridge"))
    for number, piece in enumerate(pieces):
        parts.append(track(plane, piece, f"piece f{number % FRAGMENT_COLOURS}"))
    parts += [start_mark(plane, pieces[0][0]), end_mark(plane, pieces[-1][-1])] if pieces else []
    for number, piece in enumerate(pieces):
        x, y = plane.at(*(float(value) for value in piece[len(piece) // 2]))
        size = 1.3 * plane.mark
        # Beside the piece: a short one would lie hidden under its number.
        y = y - size if y > 2 * size else y + size
        parts.append(
            f'<text class="order" x="{x:.2f}" y="{y:.2f}" font-size="{size:.2f}" '
            f'stroke-width="{0.25 * size:.2f}">{number + 1}</text>'
        )
    return "".join(parts)


def _chain_text(chain: Chain) -> str:
    states = sum(len(piece) for piece in chain.pieces)
    told = f"{counted(len(chain.pieces), 'piece')}, {counted(states, 'recorded state')}"
    if chain.statistic is None:
        return f"{told}."
    return f"{told}; E[Δ] = {amount(chain.statistic)} steps between learned distance and place in the chain."


def _track_data(stitched: Stitched) -> dict[str, object]:
    return {
        "text": stitched_text(stitched),
        "xy": [round(float(value), 3) for value in stitched.xy.ravel()],
        "generated": [int(value) for value in stitched.generated],
        "source": None if stitched.source is None else [int(value) for value in stitched.source],
    }
