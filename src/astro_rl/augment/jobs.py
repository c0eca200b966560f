"""Chains as sequences to complete: which source row stands at which place, and where nothing is known.

    rollout    one job a chain, the paper's      piece MASK piece MASK … piece MASK
    anchored   one job a gap                     · MASK piece        (· is the last state of the piece before)

`rollout` takes every state from the dynamics model. `anchored` keeps what is real and generates what is not, so
that the model's error starts from zero at each gap; its jobs are short.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from astro_rl.augment.limits import Mode
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Completed
from astro_rl.stitch.geometry import ChainShape

Rows = Int[np.ndarray, "jobs horizon"]
"""Source rows; −1 where the state is to be generated."""


@runtime_checkable
class Completes(Protocol):
    """What `planner.complete.Completer` is. Every state comes from the dynamics model, known ones too."""

    @property
    def horizon(self) -> int: ...

    def complete(
        self, key: Key[Array, ""], states: Float[np.ndarray, "b h o"], known: Bool[np.ndarray, "b h"]
    ) -> Completed: ...


class Completions(NamedTuple):
    """All jobs of a batch, completed, in normalised units."""

    given: Float[np.ndarray, "jobs horizon obs"]
    """What was known; 0 elsewhere."""
    known: Bool[np.ndarray, "jobs horizon"]
    states: Float[np.ndarray, "jobs horizon obs"]
    actions: Float[np.ndarray, "jobs horizon act"]
    deviation: Float[np.ndarray, "jobs"]
    miss: Float[np.ndarray, "jobs"] | None = None
    """Where gaps were polished: what the one-step model cannot explain of them, in typical steps."""


def needed_horizon(mode: Mode, shape: ChainShape) -> int:
    """H: L for a whole chain; a last known state, a MASK and the piece behind it for a gap."""
    return shape.horizon if mode == "rollout" else 1 + shape.period


def known_span(shape: ChainShape) -> int:
    """States from the first to the last known one of a chain: L − M."""
    return shape.horizon - shape.mask


def job_rows(
    mode: Mode, shape: ChainShape, starts: Int[np.ndarray, "chains pieces"], horizon: int, *, tail: bool
) -> Int[np.ndarray, "chains jobs horizon"]:
    """Source rows of each chain's jobs. With `tail`, `anchored` has one more job a chain: its free continuation."""
    least = needed_horizon(mode, shape)
    if horizon < least:
        raise ConfigError(
            f"The models' horizon is too short for mode {mode!r}.",
            field="horizon",
            found=horizon,
            expected=f">= {least}",
            fix='fit with a longer horizon, or complete gap by gap with mode="anchored"'
            if mode == "rollout"
            else "fit with a horizon of at least 1 + mask + segment",
        )
    chains, pieces = starts.shape
    if mode == "rollout":
        rows = np.full((chains, 1, horizon), -1, np.int64)
        rows[:, 0, shape.positions()] = (starts[:, :, None] + np.arange(shape.segment)).reshape(chains, -1)
        return rows
    rows = np.full((chains, pieces - 1 + tail, horizon), -1, np.int64)
    ends = starts + shape.segment - 1
    rows[:, :, 0] = ends if tail else ends[:, :-1]
    target = slice(1 + shape.mask, 1 + shape.period)
    rows[:, : pieces - 1, target] = starts[:, 1:, None] + np.arange(shape.segment)
    return rows


def complete_jobs(
    completer: Completes,
    dataset: Dataset,
    normaliser: Normaliser,
    rows: Rows,
    key: Key[Array, ""],
    *,
    batch: int,
) -> Completions:
    """All jobs in batches of one size (the last one padded), so that the models are compiled once."""
    known = rows >= 0
    given = np.zeros((*rows.shape, dataset.observation_dim), np.float32)
    given[known] = normaliser.normalise(np.asarray(dataset.observations[rows[known]]))
    parts = []
    for number, start in enumerate(range(0, len(rows), batch)):
        chosen = np.arange(start, start + batch)
        padded = np.where(chosen < len(rows), chosen, start)
        done = completer.complete(jax.random.fold_in(key, number), given[padded], known[padded])
        count = min(batch, len(rows) - start)
        parts.append(tuple(np.asarray(part)[:count] for part in done if part is not None))
    return Completions(given, known, *(np.concatenate(column) for column in zip(*parts, strict=True)))
