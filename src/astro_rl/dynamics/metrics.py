"""How far rolled-out sequences are from real ones that the model never saw, under the real actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.diffusion.sampling import Sampler
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import SequenceData, sequence_data, sequences_at
from astro_rl.nets.dit import DiT


@dataclass(frozen=True)
class RolloutError:
    """Errors of sequences rolled out from their first state alone."""

    sequences: int
    normalised_mse: float
    """Over all steps but the first and all dimensions, each in units of its own spread."""
    steps: tuple[int, ...]
    xy: tuple[float, ...] | None
    """Median distance in the plane at each of `steps`, in the environment's units."""
    mse_at: tuple[float, ...]
    """Normalised MSE at each of `steps`."""
    step_mse: float
    """Of one step's change, each dimension in units of its own typical change."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rollout_error(
    dynamics: Dynamics,
    network: DiT,
    held_out: Dataset,
    normaliser: Normaliser,
    *,
    xy: tuple[int, int] | None,
    at: tuple[int, ...],
    sequences: int = 256,
    batch: int = 64,
    sampling_steps: int = 5,
    sampler: Sampler = "ddim",
    seed: int = 0,
) -> RolloutError:
    """Draws `sequences` held-out windows (the same for every model under one seed) and rolls them out."""
    data = sequence_data(held_out, normaliser, dynamics.horizon)
    predicted, real, _ = rolled_windows(
        dynamics,
        network,
        data,
        sequences=sequences,
        batch=batch,
        sampling_steps=sampling_steps,
        sampler=sampler,
        seed=seed,
    )
    return compare(predicted, real, normaliser, np.asarray(data.step_scale), xy, at)


def rolled_windows(
    dynamics: Dynamics,
    network: DiT,
    data: SequenceData,
    *,
    sequences: int,
    batch: int,
    sampling_steps: int,
    sampler: Sampler,
    seed: int,
) -> tuple[
    Float[np.ndarray, "sequences horizon obs"],
    Float[np.ndarray, "sequences horizon obs"],
    Int[np.ndarray, "sequences"],
]:
    """Where the model says that recorded actions lead, what is recorded, and the first rows of the windows."""
    predicted, real, first = [], [], []
    for number, starts in enumerate(window_batches(data, sequences, batch, seed)):
        states, actions = sequences_at(data, starts, dynamics.horizon)
        key = jax.random.fold_in(jax.random.key(seed), number)
        rolled = _rolled(dynamics, network, states[:, 0], actions, key, steps=sampling_steps, sampler=sampler)
        predicted.append(np.asarray(rolled))
        real.append(np.asarray(states))
        first.append(np.asarray(starts))
    return np.concatenate(predicted), np.concatenate(real), np.concatenate(first)


@partial(jax.jit, static_argnums=0, static_argnames=("steps", "sampler"))
def _rolled(
    dynamics: Dynamics, network: DiT, first: Any, actions: Any, key: Any, *, steps: int, sampler: Sampler
) -> Any:
    # A program of its own, not the method's: compiled once for all who roll the same model out.
    return dynamics.rollout(network, first, actions, key, steps=steps, sampler=sampler)


def compare(
    predicted: Float[np.ndarray, "sequences horizon obs"],
    real: Float[np.ndarray, "sequences horizon obs"],
    normaliser: Normaliser,
    step_scale: Float[np.ndarray, "obs"],
    xy: tuple[int, int] | None,
    at: tuple[int, ...],
) -> RolloutError:
    """The figures, from normalised sequences."""
    error = predicted.astype(np.float64) - real
    change = np.diff(error, axis=1) / np.maximum(step_scale, 1e-3)
    places = None
    if xy is not None:
        apart = (error * normaliser.spread)[..., list(xy)]
        distance = np.linalg.norm(apart, axis=-1)
        places = tuple(float(np.median(distance[:, step])) for step in at)
    return RolloutError(
        sequences=len(error),
        normalised_mse=float(np.square(error[:, 1:]).mean()),
        steps=at,
        xy=places,
        mse_at=tuple(float(np.square(error[:, step]).mean()) for step in at),
        step_mse=float(np.square(change).mean()),
    )


def window_batches(
    data: SequenceData, sequences: int, batch: int, seed: int
) -> Iterator[Int[jax.Array, "batch"]]:
    """First rows of windows, drawn without regard to the model, in batches of one size."""
    drawn = np.random.default_rng(seed).choice(np.asarray(data.starts), size=-(-sequences // batch) * batch)
    for start in range(0, len(drawn), batch):
        yield jnp.asarray(drawn[start : start + batch], jnp.int32)
