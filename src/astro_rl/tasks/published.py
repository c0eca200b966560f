"""The scores the paper prints, in percent, so that a table can stand beside ours.

Table 1 has eight OGBench tasks (their default goals), and for D4RL nothing but an average. Table 2 is FQL's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from astro_rl.tasks.task import AblationScore, PublishedScore

_COLUMNS: tuple[tuple[Literal["iql", "fql"], Literal["original", "astro", "diffstitch", "synther"]], ...] = (
    ("iql", "original"),
    ("iql", "astro"),
    ("iql", "diffstitch"),
    ("iql", "synther"),
    ("fql", "original"),
    ("fql", "astro"),
    ("fql", "diffstitch"),
    ("fql", "synther"),
)

_TABLE_1 = {
    "antmaze-large-stitch": (26.2, 51.7, 35.0, 31.1, 29.2, 57.3, 33.1, 28.7),
    "antmaze-giant-stitch": (0.0, 0.0, 0.0, 0.0, 5.3, 10.4, 3.3, 4.2),
    "humanoidmaze-medium-stitch": (29.7, 31.4, 28.3, 31.2, 17.5, 30.0, 22.6, 15.9),
    "humanoidmaze-large-stitch": (2.4, 12.6, 2.2, 1.4, 2.7, 3.5, 2.9, 3.1),
    "antsoccer-arena-stitch": (3.7, 14.6, 3.9, 3.8, 22.4, 49.3, 28.5, 25.7),
    "scene-play": (31.7, 40.6, 32.1, 27.5, 94.3, 97.0, 91.4, 92.0),
    "cube-single-play": (81.5, 89.2, 79.0, 82.4, 88.0, 92.9, 89.6, 87.3),
    "cube-double-play": (2.4, 2.5, 2.6, 0.5, 36.5, 45.4, 40.1, 41.1),
}

_AVERAGES = {
    "maze": (12.40, 22.06, 13.88, 13.50, 15.42, 30.10, 18.08, 15.52),
    "manipulation": (38.53, 44.10, 37.9, 36.8, 72.93, 78.43, 73.7, 73.5),
    "d4rl": (57.3, 70.4, 65.3, 63.5, 78.2, 88.6, 85.0, 79.0),
    "total": (36.08, 45.52, 39.03, 37.93, 55.52, 65.71, 58.93, 56.01),
}

_VARIANTS: tuple[
    Literal["original", "astro", "random", "pregenerated_euclidean", "model_based", "state_inverse"], ...
] = ("original", "astro", "random", "pregenerated_euclidean", "model_based", "state_inverse")

_TABLE_2 = {
    "antmaze-large-stitch": (29.2, 57.3, 36.2, 41.3, 46.5, 35.9),
    "antmaze-giant-stitch": (5.3, 10.4, 7.2, 4.4, 6.3, 8.1),
    "humanoidmaze-medium-stitch": (17.5, 30.0, 23.9, 21.7, 28.3, 11.5),
    "antsoccer-arena-stitch": (22.4, 49.3, 30.9, 36.0, 46.1, 33.3),
}


def _scores(values: tuple[float, ...]) -> tuple[PublishedScore, ...]:
    return tuple(
        PublishedScore(learner, method, score)
        for (learner, method), score in zip(_COLUMNS, values, strict=True)
    )


def table_1(short_name: str) -> tuple[PublishedScore, ...]:
    """The paper's eight scores for a task's default goal, nothing for tasks it lacks."""
    return _scores(_TABLE_1[short_name]) if short_name in _TABLE_1 else ()


def table_2(short_name: str) -> tuple[AblationScore, ...]:
    """The paper's ablation for a task's default goal, nothing for tasks it lacks."""
    values = _TABLE_2.get(short_name)
    if values is None:
        return ()
    return tuple(AblationScore(variant, score) for variant, score in zip(_VARIANTS, values, strict=True))


SUITE_AVERAGES: Mapping[str, tuple[PublishedScore, ...]] = MappingProxyType(
    {group: _scores(values) for group, values in _AVERAGES.items()}
)
"""Table 1's averages as printed, by group. "total" is the mean of the three groups, not of the fourteen
tasks."""
