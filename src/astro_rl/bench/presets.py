"""How large a matrix is: `tiny` passes every cell in seconds, `cpu` fits two cores, `paper` is the paper's size."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from astro_rl.agents.settings import near_match
from astro_rl.errors import ConfigError
from astro_rl.tasks import paper_tasks

TABLES = ("table1", "ablation", "geometry", "completion", "selection", "horizon", "amount")
TableName = Literal["table1", "ablation", "geometry", "completion", "selection", "horizon", "amount"]


@dataclass(frozen=True)
class BenchPreset:
    """Everything about a matrix but its table."""

    name: str
    tasks: Mapping[str, tuple[str, ...]]
    """Table to tasks; what is not named has those of `""`."""
    methods: str
    """The preset of ASTRO and of its rivals."""
    learner: str
    """The preset of the learners."""
    updates: int
    seeds: int
    seeds_at_once: int
    """Seeds of one training cell. Asking for more seeds later adds cells and repeats none."""
    episodes: int
    """Of evaluation, a seed."""
    data_episodes: int | None = None
    """Of a dataset that is made here; None: the published number."""
    shape: Literal["auto", "task"] | tuple[int, int, int] = "auto"
    """auto: read off the data. task: the paper's horizons, n = 5."""
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Method to settings that differ from its preset."""
    learner_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Learner to settings that differ from its preset; those of `""` are everybody's."""
    amount: float = 1.0
    """Augmented transitions, in those of the dataset."""
    share: float = 0.5
    pairs: int = 2_000
    """Source-target pairs that geometry is measured on."""
    sequences: int = 256
    """Held-out sequences that completion is measured on."""
    violation_amount: float = 0.02
    """Augmented transitions that violations are counted on, in those of the dataset."""
    rows: int = 1_000
    """Transitions of these that the simulator is asked about."""
    selection_batches: int = 20
    selection_seconds: float = 30.0

    def tasks_of(self, table: str) -> tuple[str, ...]:
        return self.tasks.get(table, self.tasks[""])


_TINY_ASTRO: dict[str, Any] = {
    "temporal.steps": 200,
    "temporal.log_every": 100,
    "dynamics.steps": 20,
    "dynamics.log_every": 20,
    "planner.steps": 20,
    "planner.log_every": 20,
    "onestep.steps": 40,
    "onestep.log_every": 20,
    # Models that learned for so short a time let nothing pass at the usual limits.
    "generate.search.threshold": 30.0,
    "generate.search.tolerance": 8.0,
    "generate.jump_most": 1e6,
    "generate.limit_windows": 32,
    "generate.completion_batch": 32,
}
_SMALL_LEARNER = {"hidden": (64, 64), "batch_size": 256, "learning_rate": 1e-3}
_CASE = ("antmaze-large-stitch",)
"""The paper's own case study."""
_ABLATION = (
    "antmaze-large-stitch",
    "antmaze-giant-stitch",
    "humanoidmaze-medium-stitch",
    "antsoccer-arena-stitch",
)
_LOCAL = ("pointmaze-medium-stitch", "pointmaze-large-stitch", "antmaze-medium-stitch")
"""Datasets that are made here, and small enough for two cores."""

PRESETS: dict[str, BenchPreset] = {
    preset.name: preset
    for preset in (
        BenchPreset(
            name="tiny",
            tasks={"": ("pointmaze-medium-stitch",)},
            methods="tiny",
            learner="tiny",
            updates=20,
            seeds=2,
            seeds_at_once=2,
            episodes=1,
            data_episodes=12,
            shape=(2, 6, 6),
            method_settings={"astro": _TINY_ASTRO},
            amount=0.1,
            pairs=64,
            sequences=32,
            violation_amount=0.1,
            rows=32,
            selection_batches=2,
            selection_seconds=2.0,
        ),
        BenchPreset(
            name="cpu",
            tasks={
                "": _LOCAL[:1],
                "table1": _LOCAL,
                "geometry": _CASE,
                "completion": _CASE,
                "selection": ("antmaze-medium-stitch",),
                "horizon": ("antmaze-medium-stitch",),
            },
            methods="cpu",
            learner="tiny",
            updates=100_000,
            seeds=4,
            seeds_at_once=4,
            episodes=50,
            learner_settings={"": _SMALL_LEARNER},
            amount=0.3,
        ),
        BenchPreset(
            name="paper",
            tasks={
                "": _CASE,
                "table1": tuple(task.name for task in paper_tasks()),
                "ablation": _ABLATION,
            },
            methods="paper",
            learner="paper",
            updates=1_000_000,
            seeds=8,
            seeds_at_once=8,
            episodes=50,
            shape="task",
        ),
    )
}


@dataclass(frozen=True)
class Choice:
    """What a caller wants otherwise than the preset has it. None or empty: as the preset."""

    tasks: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    seeds: int | None = None
    updates: int | None = None
    episodes: int | None = None
    amount: float | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    """Dataset to a file that lies there."""
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learner_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def preset_for(name: str, choice: Choice) -> BenchPreset:
    """A preset by name with a caller's changes."""
    if name not in PRESETS:
        raise ConfigError(
            f"No preset is called {name!r}.",
            field="preset",
            found=name,
            expected=", ".join(PRESETS),
            fix=near_match(name, PRESETS),
        )
    preset = PRESETS[name]
    for key in ("seeds", "updates", "episodes", "amount"):
        value = getattr(choice, key)
        if value is None:
            continue
        if value <= 0:
            raise ConfigError("This has to be more than 0.", field=key, found=value)
        preset = dataclasses.replace(preset, **{key: value})
    return dataclasses.replace(
        preset,
        tasks={"": choice.tasks} if choice.tasks else preset.tasks,
        method_settings=_merged(preset.method_settings, choice.method_settings),
        learner_settings=_merged(preset.learner_settings, choice.learner_settings),
    )


def _merged(
    base: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    return {
        name: {**base.get(name, {}), **changes.get(name, {})} for name in dict.fromkeys((*base, *changes))
    }
