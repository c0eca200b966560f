"""Windows of real trajectories on the device, normalised: what the dynamics model and the planner learn from."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.windows import window_starts


class SequenceData(NamedTuple):
    """Rows as the dataset has them, and where a sequence of L states may start."""

    observations: Float[Array, "rows obs"]
    actions: Float[Array, "rows act"]
    starts: Int[Array, "windows"]
    step_scale: Float[Array, "obs"]
    """Root mean square of one step's change, in normalised units."""


def sequence_data(dataset: Dataset, normaliser: Normaliser, horizon: int) -> SequenceData:
    """Normalised rows. Refuses a horizon that no trajectory holds, and says which one would fit."""
    starts, _ = window_starts(dataset.offsets, horizon)
    if len(starts) == 0:
        longest = int(dataset.lengths.max()) + 1
        raise DataError(
            "No trajectory is long enough for the horizon.",
            field="horizon",
            found=f"L = {horizon}; the longest trajectory has {longest} states",
            expected=f"L <= {longest}",
            fix="choose fewer or shorter pieces: L = pieces * (segment + mask)",
        )
    observations = normaliser.normalise(np.asarray(dataset.observations)).astype(np.float32)
    rows = dataset.transition_rows()
    change = observations[rows + 1] - observations[rows]
    step_scale = np.sqrt(np.square(change, dtype=np.float64).mean(axis=0)).astype(np.float32)
    actions = np.array(dataset.actions, np.float32)
    actions[dataset.end_rows] = 0.0
    return SequenceData(
        jnp.asarray(observations),
        jnp.asarray(actions),
        jnp.asarray(starts, jnp.int32),
        jnp.asarray(step_scale),
    )


def draw_sequences(
    key: Key[Array, ""], data: SequenceData, batch: int, horizon: int
) -> tuple[Float[Array, "batch horizon obs"], Float[Array, "batch horizon act"]]:
    """(τˢ, τᵃ): L states and as many actions; the last action leads out of the sequence and is 0."""
    starts = data.starts[jax.random.randint(key, (batch,), 0, len(data.starts))]
    return sequences_at(data, starts, horizon)


def sequences_at(
    data: SequenceData, starts: Int[Array, "batch"], horizon: int
) -> tuple[Float[Array, "batch horizon obs"], Float[Array, "batch horizon act"]]:
    rows = starts[:, None] + jnp.arange(horizon)
    return data.observations[rows], data.actions[rows].at[:, -1].set(0.0)


SAMPLED = 4096
NARROWEST = 1e-3
"""A dimension that hardly moves is not blown up any further."""


def spread_of(data: SequenceData, horizon: int) -> tuple[float, ...]:
    """How far each dimension gets from its first value, root mean square over the horizon: `Dynamics.spread`."""
    starts = np.asarray(data.starts)
    starts = starts[np.linspace(0, len(starts) - 1, min(SAMPLED, len(starts))).round().astype(np.int64)]
    observations = np.asarray(data.observations)
    squared = np.zeros(observations.shape[1])
    for step in range(1, horizon):
        away = observations[starts + step] - observations[starts]
        squared += np.square(away, dtype=np.float64).mean(axis=0)
    spread = np.sqrt(squared / (horizon - 1))
    # Few digits: they travel through a JSON file and come back as they were.
    return tuple(float(f"{value:.4g}") for value in np.clip(spread, NARROWEST, 1.0))


def require_scale(scale: tuple[float, ...], observation_dim: int) -> None:
    if len(scale) != observation_dim or min(scale) <= 0:
        raise ConfigError(
            "A typical step belongs to each dimension, and is larger than 0.",
            field="scale",
            found=f"{len(scale)} numbers, the smallest {min(scale, default=0)}",
            expected=f"{observation_dim} positive numbers",
        )


def steps_of(data: SequenceData) -> tuple[float, ...]:
    """σ for a model's own record. Few digits: they travel through a JSON file and come back as they were."""
    return tuple(float(f"{max(float(value), 1e-3):.4g}") for value in data.step_scale)
