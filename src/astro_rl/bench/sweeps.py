"""Tables whose rows are settings or methods: selection, horizon, amount, geometry, completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astro_rl.bench import paper
from astro_rl.bench.records import Measurement, Records, Scores
from astro_rl.bench.render import Table
from astro_rl.bench.summary import ORIGINAL, ArmSummary, summaries

NAMES = {
    "threshold": "Filter threshold Δ_thresh",
    "pieces": "Chain length n",
    "horizon": "Horizon L",
    "mask_ratio": "Mask M/l",
    "amount": "Augmented data, in that of the other tables",
    "share": "Share of a batch from augmented data",
}
DEFAULTS = {"threshold": "3", "pieces": "5", "amount": "1", "share": "0.5"}
"""Settings under which a sweep's arm is ASTRO itself, and is recorded as such."""


def selection_tables(records: Records) -> list[Table]:
    """Table 6 (a) and (b): what a threshold and a chain length cost, and what is gained."""
    return [_sweep(records, name) for name in ("threshold", "pieces")]


def amount_tables(records: Records) -> list[Table]:
    return [_sweep(records, name) for name in ("amount", "share")]


def _sweep(records: Records, name: str) -> Table:
    """Rows exist where some record is of this very sweep; ASTRO's own arm then fills in the default."""
    times = {
        (one.data, one.arm): one for one in records.of_kind("selection") if one.arm.startswith(f"{name}=")
    }
    swept = {(one.task, one.learner, one.setup) for one in records.scores if one.arm.startswith(f"{name}=")}
    relevant = [one for one in records.scores if (one.task, one.learner, one.setup) in swept]
    found = summaries([one for one in relevant if _belongs(one, name)])
    rows = []
    for one in found:
        value = one.arm.partition("=")[2] or ("none" if one.arm == ORIGINAL else DEFAULTS[name])
        timed = times.pop((one.setup.data, f"{name}={value}"), None)
        rows.append(
            (one.task, one.learner.upper(), value, *_scored(one, name, value), *_timed(timed, name, value))
        )
    for (data, arm), timed in times.items():
        value = arm.partition("=")[2]
        rows.append((data, None, value, None, None, None, None, *_timed(timed, name, value)))
    rows.sort(key=lambda row: (str(row[0]), str(row[1]), _number(str(row[2]))))
    has_times = name in ("threshold", "pieces")
    timing = ("s for 10 chains", "accepted", "the paper's s") if has_times else ()
    return Table(
        f"sweep-{name}",
        NAMES[name],
        ("task", "learner", name, "seeds", "mean ± std", "IQM", "the paper's score", *timing),
        tuple(row if has_times else row[:7] for row in rows),
    )


def _belongs(one: Scores, name: str) -> bool:
    return one.arm in (ORIGINAL, "astro") or one.arm.startswith(f"{name}=")


def _scored(one: ArmSummary, name: str, value: str) -> tuple[str | None, ...]:
    published = paper.value("ablation-all", f"{name}={value}", "score")
    return (
        str(one.summary.seeds),
        f"{one.summary.mean:.1f} ± {one.summary.std:.1f}",
        str(one.summary.iqm),
        _text(published, ".1f"),
    )


def _timed(timed: Measurement | None, name: str, value: str) -> tuple[str | None, ...]:
    published = _text(paper.value("ablation-all", f"{name}={value}", "seconds"), ".1f")
    if timed is None:
        return None, None, published
    values = timed.values
    seconds, proposed = values.get("seconds"), values.get("proposed", 0)
    accepted = f"{values.get('accepted', 0):,} of {proposed:,}"
    return _text(seconds, ".4g"), accepted, published


def horizon_table(records: Records) -> Table:
    """Table 6 (c) and (d): errors of rolled-out states on real held-out windows."""
    rows = []
    for one in records.of_kind("completion"):
        name, _, value = one.arm.partition("=")
        if not value:
            continue
        shape = one.values["shape"]
        rows.append(
            (
                one.data,
                NAMES[name],
                value,
                f"{shape['pieces']} × ({shape['segment']} + {shape['mask']})",
                _text(one.values["state_mse"], ".4g"),
                _text(one.values["known_mse"], ".4g"),
                _text(one.values["action_mse"], ".4g"),
                _text(paper.value("ablation-all", one.arm, "state_mse"), ".3f"),
            )
        )
    rows.sort(key=lambda row: (row[0], row[1], _number(row[2])))
    return Table(
        "horizon",
        "Completion error by horizon and mask",
        ("data", "sweep", "value", "n × (l + M)", "τˢ MSE", "τˢₘ MSE", "τᵃ MSE", "the paper's τˢ MSE"),
        tuple(rows),
        (
            "States in units of each dimension's spread; the paper states none. Shapes are as near as patches allow.",
        ),
    )


def completion_table(records: Records) -> Table:
    """Table `dyna_mse`: ours, the paper's behind it."""
    rows = []
    for one in sorted(records.of_kind("completion"), key=lambda one: (one.data, _place(one.arm))):
        if "=" in one.arm:
            continue
        cells = [
            _beside(one.values.get(column), paper.value("dyna_mse", one.arm, column), "{:.4g}")
            for column in paper.COMPLETION_COLUMNS
        ]
        rows.append((one.data, one.arm, *cells, _text(one.values.get("violation_real"), ".1f")))
    return Table(
        "completion",
        "Completion: errors on held-out windows and dynamics violations (the paper's)",
        ("data", "method", "τᵃ MSE", "τˢ MSE", "τˢₘ MSE", "violations %", "violations of real data %"),
        tuple(rows),
        (
            (
                "Violations: stitched transitions that no tried action explains in the simulator, with n, δ and the "
                "subspace calibrated on real data."
            ),
        ),
    )


def geometry_table(records: Records) -> Table:
    """Table `td_geom`: direction change and curvature at the gaps of each rule's chains, and where targets lie."""
    rows = []
    for one in sorted(records.of_kind("geometry"), key=lambda one: (one.data, one.arm)):
        near, whole = one.values["steps"], one.values["pieces"]
        rows.append(
            (
                one.data,
                one.arm,
                f"{one.values['pairs']:,}",
                _moments(near["turn"]),
                _moments(whole["turn"]),
                _moments(whole["turn_sum"]),
                _printed(one.arm, "direction_change"),
                _moments(whole["curvature"]),
                _moments(whole["straightness"]),
                _printed(one.arm, "curvature"),
                *(
                    f"{100 * one.values[name]:.1f}"
                    for name in ("behind_wall", "out_of_reach", "never_joined")
                ),
            )
        )
    return Table(
        "geometry",
        "Source-target pairs by selection rule",
        (
            "data",
            "rule",
            "pairs",
            "|Δθ| of steps",
            "|Δθ| of pieces",
            "sum of both",
            "the paper's |Δθ|",
            "curvature",
            "straightness",
            "the paper's curvature",
            "behind walls %",
            "out of reach %",
            "never joined %",
        ),
        tuple(rows),
        (
            "Mean ± std. The paper's |Δθ| exceeds π, so it may be a sum of two.",
            "Its curvature is higher for smoother paths, as straightness is.",
        ),
    )


def _moments(told: Mapping[str, Any]) -> str | None:
    return None if told["mean"] is None else f"{told['mean']:.3f} ± {told['std']:.3f}"


def _printed(arm: str, column: str) -> str | None:
    found = paper.figure("td_geom", arm, column)
    return None if found is None else f"{found.value:.3f} ± {found.spread:.3f}"


def _beside(value: float | None, printed: float | None, shape: str) -> str | None:
    if value is None:
        return None if printed is None else f"– ({printed:g})"
    return shape.format(value) + ("" if printed is None else f" ({printed:g})")


def _text(value: float | None, spec: str) -> str | None:
    return None if value is None else format(value, spec)


def _number(text: str) -> float:
    """Where a setting stands in its sweep."""
    first, _, second = text.partition("/")
    try:
        return float(first) / float(second or 1)
    except ValueError:
        return -1.0


def _place(arm: str) -> int:
    order: Sequence[str] = [*dict.fromkeys(("si", "mb", "reg-only", "sc-only", "astro"))]
    return order.index(arm) if arm in order else len(order)
