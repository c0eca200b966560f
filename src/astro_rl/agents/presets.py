"""Learners with published settings: how large comes from a preset, α and γ from the task.

The paper gives network sizes, learning rate, batch size, α and γ, and follows FQL's authors for the rest; so presets
differ in size, and what FQL's authors set for a task (`fql_settings`) holds in all of them. The one exception is
FQL's α under the preset `fql`: its authors' own where they have one, which on some tasks is not the paper's.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

from astro_rl.agents import LEARNERS
from astro_rl.agents.base import AnyLearner
from astro_rl.agents.settings import near_match, one_of_choices
from astro_rl.errors import ConfigError
from astro_rl.tasks.task import Task

SIZES: dict[str, dict[str, Any]] = {
    "paper": {"hidden": (256,) * 3, "batch_size": 256},
    "fql": {"hidden": (512,) * 4, "batch_size": 256},
    "cpu": {"hidden": (128,) * 3, "batch_size": 256},
    "tiny": {"hidden": (32,) * 2, "batch_size": 64},
}


def learner_for(
    name: str, *, preset: str = "paper", task: Task | None = None, **overrides: Any
) -> AnyLearner:
    """A learner by name: a preset's sizes, then a task's α and γ, then `overrides` by their fields' names."""
    if name not in LEARNERS:
        raise ConfigError(
            f"No learner is called {name!r}.",
            found=name,
            expected=", ".join(LEARNERS),
            fix=near_match(name, LEARNERS),
        )
    if preset not in SIZES:
        raise ConfigError(
            f"No preset is called {preset!r}.",
            field="preset",
            found=preset,
            expected=", ".join(SIZES),
            fix=near_match(preset, SIZES),
        )
    kind = LEARNERS[name]
    chosen = {**SIZES[preset], **task_settings(name, preset, task, overrides), **overrides}
    return kind(**checked(kind, name, chosen))


def task_settings(name: str, preset: str, task: Task | None, overrides: dict[str, Any]) -> dict[str, Any]:
    """What a task's row fixes: the discount of every learner that has one, α of the two the paper tunes."""
    if task is None or name == "bc":
        return {}
    found: dict[str, Any] = {"discount": task.discount}
    if name == "fql":
        authors = task.fql_authors_alpha if preset == "fql" else None
        found |= {"alpha": task.fql_alpha if authors is None else authors, **task.fql_settings}
    # The table's IQL α is a temperature; another actor's α is a weight, which has to be given.
    if name == "iql" and overrides.get("actor", "awr") == "awr":
        found["alpha"] = task.iql_alpha
    return found


def checked(kind: type, name: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Settings as the fields' own types; an unknown name or a value of another type is an error."""
    hints = get_type_hints(kind)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    for key in chosen:
        if key not in fields:
            raise ConfigError(
                f"The learner {name} has no setting {key!r}.",
                field=key,
                found=key,
                expected=", ".join(fields),
                fix=near_match(key, fields),
            )
    return {key: as_type(f"{name}.{key}", value, fields[key]) for key, value in chosen.items()}


def as_type(field: str, value: Any, hint: Any) -> Any:
    """Whole numbers serve as numbers and lists as tuples, as they come from a command line or a JSON file."""
    allowed = get_args(hint) if get_origin(hint) not in (tuple, Literal) and get_args(hint) else (hint,)
    for kind in allowed:
        if get_origin(kind) is tuple and isinstance(value, list | tuple):
            return tuple(value)
        if get_origin(kind) is Literal and isinstance(value, str):
            return one_of_choices(field, value, get_args(kind))
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind in (int, bool, str, type(None)) and type(value) is kind:
            return value
    expected = " or ".join(getattr(kind, "__name__", str(kind)) for kind in allowed)
    raise ConfigError("A setting is of the wrong type.", field=field, found=repr(value), expected=expected)
