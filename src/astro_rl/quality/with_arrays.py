"""The parts of a measurement that need arrays and nothing else."""

from __future__ import annotations

import numpy as np

from astro_rl.errors import DataError
from astro_rl.quality.figures import Figure
from astro_rl.quality.geometry import GeometrySummary, dataset_geometry
from astro_rl.quality.inputs import Inputs, Part
from astro_rl.quality.novelty import Novelty, novelty
from astro_rl.quality.parts import generated_transitions

HEADING_STRIDE = 5
"""Steps over which a heading is read off as well: single steps of a body sway."""


def facts(given: Inputs) -> Part:
    augmented, real = given.augmented, given.real
    made = generated_transitions(augmented)
    of_real = (None, None, None)
    if real is not None:
        of_real = (float(len(real)), float(real.n_transitions), float(np.median(real.lengths)))
    return Part(
        [
            Figure("data/trajectories", "trajectories", float(len(augmented)), of_real[0], "count"),
            Figure("data/transitions", "transitions", float(augmented.n_transitions), of_real[1], "count"),
            Figure("data/length", "median length", float(np.median(augmented.lengths)), of_real[2], "count"),
            Figure(
                "data/generated",
                "transitions with a generated end",
                len(made) / augmented.n_transitions,
                None,
                "%",
            ),
        ]
    )


def geometry(given: Inputs) -> Part:
    """Δθ and κ at generated places, beside all places of recordings."""
    xy = given.need_xy()
    made = np.asarray(given.augmented.extras["source_step"]) < 0
    figures, details = [], {}
    for stride in (1, HEADING_STRIDE):
        ours = dataset_geometry(given.augmented, xy, stride=stride, among=made).summary()
        if stride == 1 and ours.bending is None:
            raise DataError("No trajectory has three places of which the middle one is generated and moves")
        theirs = None
        if given.parts is not None:
            theirs = dataset_geometry(given.parts.held_out, xy, stride=stride).summary()
        over, suffix = ("", "") if stride == 1 else (f", every {stride} steps", f"_{stride}")
        for name, text in (("turning", "mean |Δθ|, radians"), ("bending", "mean curvature κ, 1 / length")):
            figures.append(_geometry_figure(name, suffix, text + over, ours, theirs))
        of_real = None if theirs is None else theirs.as_json()
        details[str(stride)] = {"augmented": ours.as_json(), "real": of_real}
    return Part(figures, details)


def _geometry_figure(
    name: str, suffix: str, text: str, ours: GeometrySummary, theirs: GeometrySummary | None
) -> Figure:
    def both(part: str) -> str:
        values = [getattr(one, f"{name}_{part}") for one in (ours, theirs) if one is not None]
        return " and ".join("–" if value is None else f"{value:.3g}" for value in values)

    return Figure(
        f"geometry/{name}{suffix}",
        text,
        getattr(ours, name),
        None if theirs is None else getattr(theirs, name),
        note=f"over trajectories: median {both('median')}, std {both('std')}",
    )


def coverage(given: Inputs) -> Part:
    given.say("coverage and novelty")
    found = novelty(given.augmented, given.need_parts(), xy=given.xy, rows=given.rows, seed=given.seed)
    return Part(_novelty_figures(found), found.as_json())


def _novelty_figures(found: Novelty) -> list[Figure]:
    figures = []
    ours, theirs = found.coverage, found.coverage_real
    if ours is not None and theirs is not None:
        cell = f"cells of {found.side:.3g}; samples of {ours.rows:,} and {theirs.rows:,} rows"
        figures += [
            Figure(
                "novelty/new_states",
                "states in cells that no recording visits",
                ours.new_states,
                theirs.new_states,
                "%",
                cell,
            ),
            Figure(
                "novelty/new_cells",
                "visited cells that no recording visits",
                ours.new_cells,
                theirs.new_cells,
                "%",
            ),
        ]
        figures += [
            Figure(
                f"novelty/{name}_{k}",
                text.format(k=k),
                getattr(ours, name)[k],
                getattr(theirs, name)[k],
                "%",
            )
            for name, text in (
                ("new_pairs", "joins within {k} steps that no recording makes"),
                ("new_distinct_pairs", "the same, each pair of cells once (within {k})"),
            )
            for k in ours.new_pairs
        ]
    for kind, text in (("states", "state"), ("transitions", "transition")):
        one, other = getattr(found, kind), getattr(found, f"{kind}_real")
        figures += [
            Figure(
                f"novelty/nearest_{kind}",
                f"distance to the nearest real {text}, median",
                None if one is None else one.median,
                other.median,
                note=f"root mean square, in spreads; among {other.reference:,}",
            ),
            Figure(
                f"novelty/far_{kind}",
                f"{kind} farther from real ones than 99 % of real ones",
                None if one is None else one.above_real,
                other.above_real,
                "%",
            ),
        ]
    return figures
