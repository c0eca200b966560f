"""Every figure of the paper's tables, as printed, with the table that it stands in.

Tables 1 and 2 lie beside the tasks they belong to (`tasks.published`); here they get the form of all others. What the
paper computes from them is in `averages`; where its own arithmetic does not hold is in `DISAGREEMENTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from astro_rl.tasks import SUITE_AVERAGES, paper_tasks

TableName = Literal[
    "astro", "astro_ablation", "td_geom", "dyna_mse", "ablation-all", "iql-fql-hparams", "horizon-settings"
]
"""The label that a table has in the paper's source, without `tab:`."""

ARMS = ("original", "astro", "diffstitch", "synther")
"""Data settings of table 1, in its order."""
ABLATION_ARMS = ("original", "astro", "rand", "pre-euc", "mb", "si")
"""Columns of table 2, by the names our variants have."""
_VARIANT_ARMS = {
    "random": "rand",
    "pregenerated_euclidean": "pre-euc",
    "model_based": "mb",
    "state_inverse": "si",
}


@dataclass(frozen=True)
class Figure:
    """One number of one table."""

    table: TableName
    row: str
    """A task's full name, a method, a setting's value or a group of tasks."""
    column: str
    value: float
    spread: float | None = None
    """What the paper prints behind ±; its tables 1 and 2 print nothing there."""
    learner: Literal["iql", "fql"] | None = None


def _table_1() -> tuple[Figure, ...]:
    cells = [
        Figure("astro", task.name, score.method, score.score, learner=score.learner)
        for task in paper_tasks()
        for score in task.published
    ]
    averages = [
        Figure("astro", group, score.method, score.score, learner=score.learner)
        for group, scores in SUITE_AVERAGES.items()
        for score in scores
    ]
    return (*cells, *averages)


def _table_2() -> tuple[Figure, ...]:
    cells = [
        Figure(
            "astro_ablation",
            task.name,
            _VARIANT_ARMS.get(score.variant, score.variant),
            score.score,
            learner="fql",
        )
        for task in paper_tasks()
        for score in task.ablation
    ]
    averages = zip(ABLATION_ARMS, (18.60, 36.75, 24.55, 25.85, 31.80, 22.20), strict=True)
    return (*cells, *(Figure("astro_ablation", "average", arm, v, learner="fql") for arm, v in averages))


_GEOMETRY = {
    # |Δθ| and curvature, with their spreads.
    "pre-euc": ((3.147, 2.621), (0.697, 0.325)),
    "original": ((2.089, 1.455), (0.764, 0.153)),
    "astro": ((1.253, 0.451), (0.934, 0.079)),
}
_COMPLETION = {
    # MSE of τᵃ, τˢ and τˢ_m, dynamics violations in percent.
    "si": (0.226, 0.954, 0.695, 17.4),
    "mb": (0.141, 0.782, 0.452, 12.3),
    "reg-only": (0.138, 0.724, 0.391, 9.2),
    "sc-only": (0.129, 0.723, 0.402, 8.5),
    "astro": (0.103, 0.657, 0.351, 5.3),
}
COMPLETION_COLUMNS = ("action_mse", "state_mse", "known_mse", "violation")
_SWEEPS: Mapping[str, tuple[tuple[str, ...], dict[str, tuple[float, ...]]]] = {
    "threshold": (("score", "seconds"), {"5": (48.9, 2.1), "3": (57.3, 4.5), "2": (58.2, 12.4)}),
    "pieces": (("score", "seconds"), {"3": (52.1, 2.4), "5": (57.3, 6.5), "7": (59.6, 25.6)}),
    "horizon": (("state_mse",), {"120": (0.673,), "160": (0.657,), "200": (0.698,)}),
    "mask_ratio": (("state_mse",), {"1/3": (0.672,), "1/1": (0.657,), "3/1": (0.715,)}),
}
"""Table 6 (a) to (d): `seconds` is the time that selecting 10 chains took."""

GEOMETRY_COLUMNS = ("direction_change", "curvature")


def _others() -> tuple[Figure, ...]:
    geometry = [
        Figure("td_geom", method, column, value, spread)
        for method, pairs in _GEOMETRY.items()
        for column, (value, spread) in zip(GEOMETRY_COLUMNS, pairs, strict=True)
    ]
    completion = [
        Figure("dyna_mse", method, column, value)
        for method, values in _COMPLETION.items()
        for column, value in zip(COMPLETION_COLUMNS, values, strict=True)
    ]
    sweeps = [
        Figure("ablation-all", f"{name}={setting}", column, value)
        for name, (columns, rows) in _SWEEPS.items()
        for setting, values in rows.items()
        for column, value in zip(columns, values, strict=True)
    ]
    return (*geometry, *completion, *sweeps)


_SETTINGS = {
    # IQL's α, FQL's α, γ, horizon; None: not given. D4RL has one row in either table.
    "antmaze-large-stitch": (10.0, 10.0, 0.99, 180),
    "antmaze-giant-stitch": (10.0, 10.0, 0.995, 180),
    "humanoidmaze-medium-stitch": (10.0, 30.0, 0.995, 340),
    "humanoidmaze-large-stitch": (10.0, 30.0, 0.995, 340),
    "antsoccer-arena-stitch": (1.0, 10.0, 0.995, 180),
    "scene-play": (10.0, 100.0, 0.99, 180),
    "cube-single-play": (1.0, 300.0, 0.99, 180),
    "cube-double-play": (0.3, 100.0, 0.99, 180),
    "antmaze-umaze-v2": (None, 10.0, 0.99, 180),
    "antmaze-medium-play-v2": (None, 10.0, 0.99, 180),
    "antmaze-large-play-v2": (None, 3.0, 0.99, 180),
}


def _settings() -> tuple[Figure, ...]:
    found = []
    for name, (iql, fql, discount, horizon) in _SETTINGS.items():
        row: list[tuple[TableName, str, float | None]] = [
            ("iql-fql-hparams", "iql_alpha", iql),
            ("iql-fql-hparams", "fql_alpha", fql),
            ("iql-fql-hparams", "discount", discount),
            ("horizon-settings", "horizon", horizon),
        ]
        found += [
            Figure(table, name, column, float(value)) for table, column, value in row if value is not None
        ]
    return tuple(found)


FIGURES: tuple[Figure, ...] = (*_table_1(), *_table_2(), *_others(), *_settings())


def figure(table: TableName, row: str, column: str, learner: str | None = None) -> Figure | None:
    """The paper's number for one cell of one table; None where it has none."""
    return _INDEX.get((table, row, column, learner))


def value(table: TableName, row: str, column: str, learner: str | None = None) -> float | None:
    found = figure(table, row, column, learner)
    return None if found is None else found.value


_INDEX: Mapping[tuple[str, str, str, str | None], Figure] = MappingProxyType(
    {(one.table, one.row, one.column, one.learner): one for one in FIGURES}
)


@dataclass(frozen=True)
class Regime:
    """What section 5, Q1 says of one regime under one learner."""

    learner: Literal["iql", "fql"]
    name: Literal["low", "moderate", "high"]
    before: float | None
    after: Mapping[str, float]
    """By method: the mean score where `before` is given, else the mean gain."""
    rows: tuple[str, ...]
    """Rows of table 1 whose means these are: found by us, the paper does not say."""


def _regime(
    learner: Literal["iql", "fql"],
    name: Literal["low", "moderate", "high"],
    before: float | None,
    values: tuple[float, float, float],
    rows: tuple[str, ...],
) -> Regime:
    named = {task.name.split("-singletask")[0]: task.name for task in paper_tasks()}
    full = tuple(named.get(row, row) for row in rows)
    return Regime(learner, name, before, MappingProxyType(dict(zip(ARMS[1:], values, strict=True))), full)


_ANT, _SOCCER, _SCENE = "antmaze-large-stitch", "antsoccer-arena-stitch", "scene-play"
_GIANT, _MEDIUM, _LARGE = "antmaze-giant-stitch", "humanoidmaze-medium-stitch", "humanoidmaze-large-stitch"
_ONE, _TWO = "cube-single-play", "cube-double-play"

REGIMES: tuple[Regime, ...] = (
    _regime("iql", "low", 3.05, (13.60, 3.05, 2.60), (_LARGE, _SOCCER)),
    _regime("fql", "low", 11.40, (20.20, 12.95, 10.05), (_GIANT, _MEDIUM)),
    _regime("iql", "moderate", None, (15.83, 5.73, 2.30), (_ANT, _SCENE, "d4rl")),
    _regime("fql", "moderate", None, (18.57, 5.10, 2.07), (_ANT, _SOCCER, _TWO, "d4rl")),
    _regime("iql", "high", None, (7.70, -2.50, 0.90), (_ONE,)),
    _regime("fql", "high", None, (3.80, -0.65, -1.50), (_SCENE, _ONE)),
)

MEAN_Q = {"iql": (-111.17, -94.58), "fql": (-87.55, -80.49)}
"""Q_mean on antmaze-large before and after (figure of the value maps)."""

DISAGREEMENTS: tuple[str, ...] = (
    (
        "The regime figures leave tasks out: IQL below 20 is humanoidmaze-large and antsoccer alone (not "
        "antmaze-giant, 0 → 0, nor cube-double, 2.4 → 2.5); IQL from 20 to 80 has no humanoidmaze-medium "
        "(29.7 → 31.4); FQL below 20 "
        "has no humanoidmaze-large (2.7 → 3.5). Each of these has a small gain. D4RL counts as one task."
    ),
    (
        "“+32.7 %” is the mean of the eight OGBench tasks × two learners, “+26.2 %” IQL's mean of three group means, "
        "in which the six D4RL tasks weigh as much as five mazes: two averages of one table."
    ),
    "The horizon is 180 in its own table and 160 in the ablation, with the same error of 0.657.",
    "Selecting 10 chains at the default takes 4.5 s in one half of the ablation and 6.5 s in the other.",
    "A mean |Δθ| of 3.147 is above π, the largest angle there is.",
    "Curvature is “higher is better” in the table, and grows with the sharpness of turns by its formula.",
    "A mean Q of −111.17 lies below −100, the least that γ = 0.99 and rewards of −1 allow.",
    "“+9.71 Q_mean compared to baselines” is 9.70 by the figures beside it: the mean of 16.59 − 3.82 and 7.06 − 0.43.",
    "SynthER’s FQL gain from 20 to 80 is +2.05 by table 1 and +2.07 in the text.",
)
"""Found by computing what the paper says from what it prints; `tests/bench/test_paper.py` does it again."""
