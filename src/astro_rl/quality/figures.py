"""What was measured on a dataset: figures, each beside its value on real data, and what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from astro_rl.data.manifest import package_version
from astro_rl.errors import ConfigError

FORMAT, FORMAT_VERSION = "astro-rl measurement", 1
WIDTH = 62
SEEN = "real data with each other's actions:"
"""Before the share of those that a judge refuses: how well it sees."""


@dataclass(frozen=True)
class Figure:
    """One line of the table. Shares are fractions; `%` says that they are printed as percentages."""

    key: str
    """`section/name`, which does not change between versions."""
    text: str
    augmented: float | None
    real: float | None
    """The same of recordings that nothing was fitted to or set on, or what `text` says instead."""
    unit: str = ""
    note: str = ""

    @property
    def section(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True)
class LeftOut:
    """What does not apply to this data, or needs something that was not given."""

    what: str
    why: str


@dataclass(frozen=True)
class MeasureReport:
    """Everything that applies."""

    figures: tuple[Figure, ...]
    left_out: tuple[LeftOut, ...]
    details: Mapping[str, Any]
    """Whole records behind the figures, by section: quantiles, kinds of transitions, calibrations, maps."""
    data: Mapping[str, Any]
    """What was measured: task, lineage, where held-out recordings come from."""
    settings: Mapping[str, Any]

    def __getitem__(self, key: str) -> Figure:
        """A figure by its key."""
        for figure in self.figures:
            if figure.key == key:
                return figure
        raise ConfigError(
            "This was not measured.",
            field=key,
            expected=", ".join(figure.key for figure in self.figures) or "nothing was",
            fix="left_out says what was not, and why",
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": f"astro-rl {package_version()}",
            "data": dict(self.data),
            "figures": [asdict(figure) for figure in self.figures],
            "left_out": [asdict(each) for each in self.left_out],
            "settings": dict(self.settings),
            "details": dict(self.details),
        }

    def table(self) -> str:
        return measure_table(self)


TITLES = {
    "data": "the data",
    "simulator": "against the simulator",
    "walls": "walls",
    "violation": "dynamics violation rate (appendix C)",
    "ensemble": "without a simulator: an ensemble learned from recordings",
    "dynamics": "without a simulator: the fitted dynamics model",
    "completion": "completion of masked recordings (table 4)",
    "geometry": "geometry of paths (appendix C)",
    "novelty": "coverage and novelty",
    "values": "what trained learners expect: Q(s, π(s))",
}


def measure_table(report: MeasureReport) -> str:
    """Sections in the order in which they were measured, then what was left out."""
    lines: list[str] = []
    for section, figures in groupby(report.figures, key=lambda figure: figure.section):
        title, header = TITLES.get(section, section), ("augmented", "real")
        lines += ["", f"{title:{WIDTH}}{header[0]:>12}{header[1]:>12}"]
        for figure in figures:
            cells = "".join(f"{_shown(value, figure.unit):>12}" for value in (figure.augmented, figure.real))
            note = f"   {figure.note}" if figure.note else ""
            lines.append(f"  {figure.text:{WIDTH - 2}}{cells}{note}".rstrip())
    if report.left_out:
        lines += ["", "left out"]
        lines += [f"  {each.what}: {each.why}" for each in report.left_out]
    where = report.data.get("held_out")
    if where:
        lines += ["", f"real: {where}"]
    return "\n".join(lines).strip("\n")


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}" if unit == "count" else f"{value:.4g}"
