"""Evaluation: seeded rollouts in persistent environments, their result, and the statistics over seeds.

Loaded on first use: the worker processes import this package too, and must not pay for JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astro_rl.evaluate.result import EvaluationResult
    from astro_rl.evaluate.rollouts import EvaluationPool

_HOME = {"EvaluationPool": "rollouts", "EvaluationResult": "result"}

__all__ = ["EvaluationPool", "EvaluationResult"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
