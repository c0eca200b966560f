"""Actions brought into [-1, 1], which learners and the planner take for granted; what was done is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from astro_rl.data.columns import Column
from astro_rl.data.options import BuildOptions
from astro_rl.errors import DataError


def fit_actions(
    actions: Column, offsets: np.ndarray, options: BuildOptions, changes: list[str]
) -> tuple[Column, dict[str, Any]]:
    """The actions as they will be stored, and the facts that lead back to the environment's own."""
    if options.actions_outside == "refuse":
        return actions, {}
    is_transition = np.ones(len(actions), dtype=bool)
    is_transition[offsets[1:] - 1] = False
    low, high = _range(actions, is_transition)
    if options.actions_outside == "clip":
        if (low >= -1).all() and (high <= 1).all():
            return actions, {}
        outside = sum(
            int((np.abs(chunk[marks]) > 1).sum()) for chunk, marks in _with_rows(actions, is_transition)
        )
        changes.append(
            f"actions: clipped {outside} values, which reached from {low.min():g} to {high.max():g}"
        )
        return actions.map(lambda chunk, _: np.clip(chunk, -1, 1)), {"actions_clipped": outside}
    origin = "data"
    if options.action_range is not None:
        low, high, origin = *_given_range(actions, options), "given"
    half = np.where(high > low, (high - low) / 2, 1.0)
    middle = (high + low) / 2

    def rescale(chunk: np.ndarray, _: int) -> np.ndarray:
        return ((chunk.astype(np.float64) - middle) / half).astype(chunk.dtype)

    changes.append(
        f"actions: rescaled to [-1, 1] from the range {'given' if origin == 'given' else 'in the data'}"
    )
    facts = {"low": low.tolist(), "high": high.tolist(), "range": origin}
    return actions.map(rescale), {"action_rescaling": facts}


def _with_rows(actions: Column, is_transition: np.ndarray):
    row = 0
    for chunk in actions.chunks():
        yield chunk, is_transition[row : row + len(chunk)]
        row += len(chunk)


def _range(actions: Column, is_transition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest action of each dimension on transitions. NaN is passed over, and refused later."""
    low, high = np.full(actions.shape[1], np.inf), np.full(actions.shape[1], -np.inf)
    for chunk, marks in _with_rows(actions, is_transition):
        if marks.any():
            low = np.fmin(low, np.fmin.reduce(chunk[marks], axis=0))
            high = np.fmax(high, np.fmax.reduce(chunk[marks], axis=0))
    return low, high


def _given_range(actions: Column, options: BuildOptions) -> tuple[np.ndarray, np.ndarray]:
    assert options.action_range is not None
    try:
        low, high = (
            np.broadcast_to(np.asarray(bound, dtype=np.float64), actions.shape[1:])
            for bound in options.action_range
        )
    except ValueError as error:
        raise DataError(
            "The range of actions does not fit the actions.",
            file=options.source,
            field="action_range",
            found=str(error),
            expected=f"a lowest and a highest value, each a number or {actions.shape[1]} numbers",
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise DataError(
            "The range of actions is empty or not finite.",
            file=options.source,
            field="action_range",
            found=f"{low.tolist()} to {high.tolist()}",
            expected="lowest < highest in every dimension",
        )
    return low, high
