"""From saved measurements to a story: `astro-rl measure`'s report, and the geometry of what selection rules choose.

Both are read as the JSON that their makers write, so that a page can be made from files alone, long after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.errors import DataError
from astro_rl.report.evidence import ChosenPair, Measure, Measures, Reading

AUGMENTED, REAL = "augmented", "real, held out"
MEASUREMENT = "astro-rl measurement"
GROUPS = {
    "data": "The data",
    "simulator": "Against the simulator",
    "walls": "Walls",
    "violation": "Dynamics violation rate (appendix C)",
    "ensemble": "Without a simulator: an ensemble learned from recordings",
    "dynamics": "Without a simulator: the fitted dynamics model",
    "completion": "Completion of masked recordings",
    "geometry": "Geometry of paths (appendix C)",
    "novelty": "Coverage and novelty",
    "values": "What trained learners expect",
}
RULES = {
    "temporal": "temporal distance",
    "euclidean": "pregenerated, Euclidean",
    "random": "random",
    "original": "recorded",
}
SHAPES = (
    ("steps", "turn", "Direction change |Δθ| from step to step", "rad", "lower", ""),
    ("pieces", "turn", "Direction change |Δθ| between whole pieces", "rad", None, ""),
    ("steps", "curvature", "Curvature κ from step to step", "", None, "its formula grows with sharpness, though the paper's table calls more better"),  # noqa: E501
    ("pieces", "straightness", "Straightness of whole pieces", "", None, "1 straight on, 0 back"),
)  # fmt: skip
SHARES = (
    ("behind_wall", "Targets behind a wall", "the straight line to the target meets one"),
    ("out_of_reach", "Targets out of reach", "farther than 99 of 100 recorded windows of that length get"),
    ("never_joined", "Support breakout", "no recording goes from the one cell to the other in time"),
)


def metrics_of(saved: Any, *, file: str | Path | None = None) -> Measures:
    """What `MeasureReport.as_json` wrote."""
    if not isinstance(saved, Mapping) or saved.get("format") != MEASUREMENT:
        raise DataError("This file holds no measurement.", file=file, expected=f'"format": "{MEASUREMENT}"')
    try:
        measures = tuple(_metric(each) for each in saved["figures"])
        absent = {str(each["what"]): str(each["why"]) for each in saved["left_out"]}
        where = saved["data"].get("held_out")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError("The measurement is damaged.", file=file, found=repr(error)) from None
    told = tuple(measure for measure in measures if measure.readings)
    return Measures(told, REAL, absent, f"Real data: {where}." if where else "")


def geometry_of(
    saved: Any, *, file: str | Path | None = None
) -> tuple[Measures, dict[str, tuple[ChosenPair, ...]]]:
    """What `SelectionReport.as_json` wrote: measures by rule beside the paper's, and some pairs of each rule."""
    try:
        rules, paper = saved["rules"], saved.get("paper", {})
        names = {str(rule): RULES.get(str(rule), str(rule)) for rule in rules}
        measures = [_shape(rules, paper, names, *shape) for shape in SHAPES]
        measures += [_share(rules, names, *share) for share in SHARES]
        chosen = {
            names[rule]: tuple(_chosen(pair) for pair in each["examples"]) for rule, each in rules.items()
        }
        reach, cell = float(saved["reach"]), float(saved["cell"])
        about = (
            f"{_pairs(rules)}. Within reach is {reach:.3g} of the plane's units; cells are {cell:.3g} wide."
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError("The selection's geometry is damaged.", file=file, found=repr(error)) from None
    reference = RULES["original"] if "original" in rules else None
    return Measures(tuple(m for m in measures if m.readings), reference, about=about), chosen


def _metric(figure: Mapping[str, Any]) -> Measure:
    scale, unit = (100.0, "%") if figure["unit"] == "%" else (1.0, str(figure["unit"]))
    values = {AUGMENTED: figure["augmented"], REAL: figure["real"]}
    return Measure(
        name=str(figure["text"]),
        readings={name: Reading(scale * float(value)) for name, value in values.items() if value is not None},
        unit="" if unit == "count" else unit,
        note=str(figure["note"]),
        group=GROUPS.get(str(figure["key"]).partition("/")[0], str(figure["key"]).partition("/")[0]),
    )


def _shape(
    rules: Mapping[str, Any],
    paper: Mapping[str, Any],
    names: Mapping[str, str],
    reading: str,
    key: str,
    name: str,
    unit: str,
    better: Any,
    note: str,
) -> Measure:
    found = {}
    for rule, each in rules.items():
        moments = each[reading][key]
        if moments["mean"] is None:
            continue
        # The paper's formulas stand for single steps.
        printed = paper.get(rule, {}).get(key) if reading == "steps" else None
        mean, std = (None, None) if printed is None else printed
        found[names[rule]] = Reading(moments["mean"], moments["std"], paper=mean, paper_spread=std)
    return Measure(name, found, unit, better, note)


def _share(rules: Mapping[str, Any], names: Mapping[str, str], key: str, name: str, note: str) -> Measure:
    found = {}
    for rule, each in rules.items():
        low, high = share_interval(float(each[key]), int(each["pairs"]))
        found[names[rule]] = Reading(100 * float(each[key]), low=100 * low, high=100 * high)
    return Measure(name, found, "%", None, note)


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count` pairs."""
    z, n = 1.959964, max(count, 1)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(middle - reach)), min(1.0, float(middle + reach))


def _chosen(pair: Mapping[str, Any]) -> ChosenPair:
    return ChosenPair(
        source=np.array(pair["source"], np.float64).reshape(-1, 2),
        target=np.array(pair["target"], np.float64).reshape(-1, 2),
        behind_wall=bool(pair["behind_wall"]),
        out_of_reach=bool(pair["out_of_reach"]),
        never_joined=bool(pair["never_joined"]),
    )


def _pairs(rules: Mapping[str, Any]) -> str:
    counts = sorted({int(each["pairs"]) for each in rules.values()})
    return (
        f"{counts[0]:,} pairs of each rule"
        if len(counts) == 1
        else f"{counts[0]:,} to {counts[-1]:,} pairs a rule"
    )
