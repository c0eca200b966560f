"""The parts of a measurement that ask the simulator."""

from __future__ import annotations

import numpy as np

from astro_rl.quality.figures import SEEN, Figure
from astro_rl.quality.inputs import Inputs, Part

LEAST_TRIED, MOST_TRIED = 50, 600
"""Real transitions that n and δ are calibrated on."""
ASKED_FOR = 0.02
"""The most that real held-out data may score."""


def simulator(given: Inputs) -> Part:
    """One-step replays, open loops and walls: `truth`."""
    from astro_rl.quality.truth import truth_of

    report = truth_of(
        given.augmented,
        given.need_task(),
        rows=given.rows,
        seed=given.seed,
        real=given.real,
        sequences=given.sequences,
        workers=given.workers,
        progress=given.say,
    )
    kinds = report.kinds
    made = [kinds[kind] for kind in ("generated", "into gap", "out of gap") if kind in kinds]
    total = sum(kind.population for kind in made)
    real = kinds["real"] if given.real is not None else None
    typical = f"typical step from {report.scale_from}"
    seen = f"{SEEN} {100 * kinds['other action'].contradicted:.1f} %" if given.real is not None else ""
    figures = [
        Figure(
            "simulator/contradicted",
            "transitions off by more than a typical step",
            sum(kind.contradicted * kind.population for kind in made) / total if total else None,
            None if real is None else real.contradicted,
            "%",
            seen,
        )
    ]
    for kind, name in (
        ("generated", "within gaps"),
        ("into gap", "into gaps"),
        ("out of gap", "at junctions"),
    ):
        if kind in kinds:
            own = kinds[kind].groups["x-y"]
            of_real = None if real is None else real.groups["x-y"]
            figures += [
                Figure(
                    f"simulator/{kind.replace(' ', '_')}_{quantile}",
                    f"x-y error {name}, {words}, of a typical step",
                    getattr(own, f"{quantile}_of_rms_step"),
                    None if of_real is None else getattr(of_real, f"{quantile}_of_rms_step"),
                    "%",
                    typical if (kind, quantile) == ("generated", "median") else "",
                )
                for quantile, words in (("median", "median"), ("p95", "95th percentile"))
            ]
    for name, words in (("gap", "a gap"), ("whole", "a trajectory")):
        found = report.divergence.get(name)
        if found is not None:
            figures.append(
                Figure(
                    f"simulator/open_loop_{name}",
                    f"open loop: x-y distance at the end of {words}, median",
                    found.generated["end"].median,
                    None if found.real is None else found.real["end"].median,
                    note=f"{found.steps:.0f} steps",
                )
            )
    walls = report.walls
    figures += [
        Figure("walls/crossing", "transitions that cross a wall", walls.crossing, walls.crossing_real, "%"),
        Figure("walls/inside", "states inside a wall", walls.inside, None, "%"),
    ]
    return Part(figures, report.as_json())


def violation(given: Inputs) -> Part:
    from astro_rl.quality.violation import calibrate, violation_rate

    task, real = given.need_task(), given.need_parts().everything
    given.say("dynamics violation rate: calibration on real data")
    tried = int(np.clip(given.rows, LEAST_TRIED, MOST_TRIED))
    found = calibrate(real, task, rows=tried, seed=given.seed, workers=given.workers)
    given.say("dynamics violation rate: augmented data")
    rates = violation_rate(
        given.augmented, task, found, rows=given.rows, seed=given.seed, workers=given.workers
    )
    how = (
        f"n {found.samples}, δ {found.threshold:.3g} typical steps, {' + '.join(found.compares)}, actions from the "
        f"{found.actions}; real data with a step left out: {100 * found.skip_rate:.1f} %"
    )
    if found.real_rate > ASKED_FOR:
        how += f"; real data is above {100 * ASKED_FOR:.0f} %: too few rows to calibrate on"
    text = "stitched transitions that no sampled action explains"
    return Part([Figure("violation/rate", text, rates.stitched, found.real_rate, "%", how)], rates.as_json())
