"""Which parts of the data are compared: what is generated, and which recordings it is held against.

Real data's own figure needs recordings that its reference does not hold. They are the ones handed in as `held_out`;
else those that the given models were not fitted to; else a tenth of the recordings, drawn by the seed. Generated data
is held against all recordings, held-out ones against all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

HELD_OUT = 0.1
CHUNK_ROWS = 1 << 18
"""Rows compared at once: a memory-mapped dataset is never read whole."""


@dataclass(frozen=True, eq=False)
class RealParts:
    """Recordings, by what they are for."""

    everything: Dataset
    """What generated data is held against."""
    rest: Dataset
    """What held-out recordings are held against, and what is learned from."""
    held_out: Dataset
    why: str
    """Where the held-out ones come from."""


def real_parts(
    real: Dataset,
    *,
    held_out: Dataset | None = None,
    trajectories: Int[np.ndarray, "held_out"] | None = None,
    seed: int = 0,
) -> RealParts:
    """`trajectories`: those of `real` that models did not learn from."""
    if held_out is not None:
        require_same_widths(held_out, real, "The held-out data")
        return RealParts(real, real, held_out, f"{_counted(len(held_out))} that were handed in")
    if len(real) < 2:
        raise DataError(
            "One recording alone leaves nothing to hold out.",
            field="real",
            found=f"{len(real)} trajectory",
            expected="2 or more",
            fix="hand in other recordings of the same kind (held_out=…, --held-out), or cut this one in several",
        )
    if trajectories is not None and 0 < len(trajectories) < len(real):
        chosen, why = trajectories, "that the models were not fitted to"
    else:
        count = min(max(1, round(HELD_OUT * len(real))), len(real) - 1)
        chosen = np.sort(np.random.default_rng(seed).choice(len(real), count, replace=False))
        why = "drawn at random"
    others = np.setdiff1d(np.arange(len(real)), chosen)
    return RealParts(real, real.select(others), real.select(chosen), f"{_counted(len(chosen))} {why}")


def marked(augmented: Dataset, real: Dataset | None = None) -> Dataset:
    """The same data with a `source_step` that is −1 on every generated row.

    Without lineage all rows count as generated. `rollout` names a source for rows whose state is the model's: where the
    source is at hand, only rows that equal theirs are recorded ones.
    """
    generated = generated_rows(augmented, real)
    step = np.asarray(augmented.extras.get("source_step", np.full(augmented.n_rows, -1, np.int32)))
    extras = {**augmented.extras, "source_step": np.where(generated, -1, step).astype(np.int32)}
    return replace(augmented, extras=extras, stamp=None)


def generated_rows(augmented: Dataset, real: Dataset | None = None) -> Bool[np.ndarray, "rows"]:
    """Rows that stand in no recording."""
    if "source_step" not in augmented.extras:
        return np.ones(augmented.n_rows, bool)
    step = np.asarray(augmented.extras["source_step"])
    if real is None or "source_trajectory" not in augmented.extras:
        return step < 0
    owner = np.asarray(augmented.extras["source_trajectory"])
    known = np.flatnonzero((step >= 0) & (owner >= 0))
    if not len(known) or owner[known].max() >= len(real):
        return step < 0
    rows = np.asarray(real.offsets)[owner[known]] + step[known]
    if (rows >= np.asarray(real.offsets)[owner[known] + 1]).any():
        return step < 0
    same = np.zeros(len(known), bool)
    for start in range(0, len(known), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        ours, theirs = augmented.observations[known[part]], real.observations[rows[part]]
        same[part] = np.isclose(ours, theirs, rtol=1e-5, atol=1e-6).all(axis=1)
    if not same.any():  # `real` is not the source
        return step < 0
    generated = np.ones(augmented.n_rows, bool)
    generated[known[same]] = False
    return generated


def generated_transitions(dataset: Dataset) -> Int[np.ndarray, "transitions"]:
    """Rows that a transition leaves of which either end is generated; `dataset` as `marked` gives it."""
    made = np.asarray(dataset.extras["source_step"]) < 0
    leaving = dataset.transition_rows()
    return leaving[made[leaving] | made[leaving + 1]]


def drawn(
    rows: Int[np.ndarray, "population"], count: int, generator: np.random.Generator
) -> Int[np.ndarray, "chosen"]:
    """Up to `count` of them, in order."""
    return np.sort(generator.choice(rows, min(count, len(rows)), replace=False))


def require_same_widths(data: Dataset, other: Dataset, what: str) -> None:
    if (data.observation_dim, data.action_dim) != (other.observation_dim, other.action_dim):
        raise DataError(
            f"{what} is not of the environment that the real data is of.",
            field="observations, actions",
            found=f"observations of {data.observation_dim}, actions of {data.action_dim} numbers",
            expected=f"{other.observation_dim} and {other.action_dim}",
        )


def _counted(recordings: int) -> str:
    return f"{recordings:,} recording{'s' if recordings != 1 else ''}"
