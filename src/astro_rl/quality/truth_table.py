"""A truth report as text."""

from __future__ import annotations

from typing import Any


def truth_table(report: dict[str, Any]) -> str:
    """`TruthReport.as_json()` as lines. Errors are in percent of a typical (rms) step."""
    names = list(report["typical_step"])
    typical = ", ".join(f"{name} {report['typical_step'][name]['rms']:.4g}" for name in names)
    lines = [
        f"{report['task']}: {report['transitions']} transitions",
        f"typical step (rms, {report['scale_from']}): {typical}",
        "",
        "one-step error, % of a typical step: median / 95th percentile; % of transitions above a threshold",
        f"{'':14}{'rows':>6}"
        + "".join(f"{name:>18}" for name in names)
        + f"{'x-y > 1/4':>11}{'> 1/2':>8}{'> 1':>8}"
        f"{'any > 1':>9}",
    ]
    for kind in report["kinds"].values():
        cells = (kind["groups"][name] for name in names)
        errors = "".join(
            f"{100 * cell['median_of_rms_step']:>9.3g} /{100 * cell['p95_of_rms_step']:>7.3g}"
            for cell in cells
        )
        quarter, half, one = (100 * share for share in kind["xy_above"].values())
        lines.append(
            f"{kind['kind']:14}{kind['rows']:>6}{errors}{quarter:>11.2f}{half:>8.2f}{one:>8.2f}"
            f"{100 * kind['contradicted']:>9.2f}"
        )
    walls = report["walls"]
    of_real = "" if walls["crossing_real"] is None else f" (real: {100 * walls['crossing_real']:.3f} %)"
    lines.append("")
    lines.append(
        f"walls: {100 * walls['crossing']:.3f} % of {walls['transitions']} transitions with a generated end cross one"
        f"{of_real}; {100 * walls['inside']:.3f} % of generated states stand inside one"
    )
    for name, found in report["divergence"].items():
        lines += [
            "",
            f"open loop, {name} ({found['steps']:.0f} steps): x-y distance, median / 95th percentile",
        ]
        for whose in ("generated", "real"):
            if found[whose] is not None:
                cells = (
                    f"{place}: {at['median']:.2g} / {at['p95']:.2g}" for place, at in found[whose].items()
                )
                lines.append(f"  {whose:10} " + "   ".join(cells))
    return "\n".join(lines)
