"""Checks of a learner's settings, made when it is constructed and before anything is compiled."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

from astro_rl.agents.losses import Coefficient
from astro_rl.errors import ConfigError


def check_common(learner: Any) -> None:
    """What every learner has: a batch, a learning rate, a network."""
    positive_integer(learner, "batch_size")
    above_zero(learner, "learning_rate")
    hidden = learner.hidden
    if (
        not isinstance(hidden, tuple)
        or not hidden
        or not all(_is_integer(size) and size > 0 for size in hidden)
    ):
        raise ConfigError(
            "A network needs at least one hidden layer, each of a positive size.",
            field=_named(learner, "hidden"),
            found=hidden,
            expected="a tuple of sizes such as (256, 256, 256)",
        )


def check_bootstrapped(learner: Any) -> None:
    """What learners with a critic have besides: a discount and a target network."""
    check_common(learner)
    within(learner, "discount", 0.0, 1.0, lowest_allowed=False)
    within(learner, "tau", 0.0, 1.0, lowest_allowed=False)


def check_smoothing(learner: Any) -> None:
    """Noise and its clip switch smoothing off together, never one alone."""
    if (learner.policy_noise == 0) != (learner.noise_clip == 0):
        raise ConfigError(
            "policy_noise and noise_clip have an effect only together.",
            field=f"{_named(learner, 'policy_noise')}, noise_clip",
            found=f"{learner.policy_noise:g} and {learner.noise_clip:g}",
            expected="both above 0, or both 0 for a target without noise",
        )


def positive_integer(learner: Any, field: str) -> None:
    value = getattr(learner, field)
    if not _is_integer(value) or value < 1:
        raise ConfigError(
            f"{field} must be a positive whole number.",
            field=_named(learner, field),
            found=value,
            expected="1 or more",
        )


def above_zero(learner: Any, field: str) -> None:
    _number(learner, field)
    if getattr(learner, field) <= 0:
        raise ConfigError(
            f"{field} must be positive.",
            field=_named(learner, field),
            found=getattr(learner, field),
            expected="> 0",
        )


def not_negative(learner: Any, field: str) -> None:
    _number(learner, field)
    if getattr(learner, field) < 0:
        raise ConfigError(
            f"{field} must not be negative.",
            field=_named(learner, field),
            found=getattr(learner, field),
            expected="0 or more",
        )


def within(
    learner: Any,
    field: str,
    low: float,
    high: float,
    *,
    lowest_allowed: bool = True,
    highest_allowed: bool = True,
) -> None:
    _number(learner, field)
    value = getattr(learner, field)
    above = value >= low if lowest_allowed else value > low
    below = value <= high if highest_allowed else value < high
    if not (above and below):
        raise ConfigError(
            f"{field} is out of range.",
            field=_named(learner, field),
            found=value,
            expected=f"{'[' if lowest_allowed else '('}{low:g}, {high:g}{']' if highest_allowed else ')'}",
        )


def one_of(learner: Any, field: str, choices: tuple[str, ...]) -> None:
    one_of_choices(_named(learner, field), getattr(learner, field), choices)


def one_of_choices(field: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ConfigError(
            f"{field} has no such choice.",
            field=field,
            found=value,
            expected=", ".join(choices),
            fix=near_match(str(value), choices),
        )
    return value


def near_match(name: str, known: Iterable[str]) -> str | None:
    """`did you mean …?`, or nothing where nothing comes close."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else None


def given(value: Coefficient | None) -> Coefficient:
    """A setting whose default depends on another one, which `__post_init__` has filled in."""
    if value is None:
        raise ConfigError("A setting was left without a value.", fix="construct the learner anew")
    return value


def _number(learner: Any, field: str) -> None:
    value = getattr(learner, field)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(
            f"{field} must be a finite number.",
            field=_named(learner, field),
            found=repr(value),
            expected="a number",
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _named(learner: Any, field: str) -> str:
    return f"{type(learner).__name__}.{field}"
