"""The paper's completion errors (table 4): real held-out sequences masked as chains are, completed, and compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.dynamics.metrics import window_batches
from astro_rl.dynamics.sequences import sequence_data, sequences_at
from astro_rl.planner.complete import Completed
from astro_rl.planner.masks import pattern
from astro_rl.planner.model import Planner


@dataclass(frozen=True)
class CompletionError:
    """Mean squared errors; actions in their own unit, states in units of each dimension's spread."""

    sequences: int
    action_mse: float
    """τᵃ: planned against real actions, all steps but the last."""
    state_mse: float
    """τˢ: all states but the first."""
    known_mse: float
    """τˢ_m: the states that the planner was shown and should have reached."""
    masked_mse: float
    """The states that it had to make up."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@runtime_checkable
class Completing(Protocol):
    """What completes sequences: ASTRO's `Completer`, or another under the pattern of ASTRO's planner."""

    @property
    def planner(self) -> Planner: ...

    @property
    def horizon(self) -> int: ...

    def complete(
        self,
        key: Key[Array, ""],
        states: Float[np.ndarray, "batch horizon obs"],
        known: Bool[np.ndarray, "batch horizon"],
    ) -> Completed: ...


def completion_error(
    completer: Completing,
    held_out: Dataset,
    normaliser: Normaliser,
    *,
    sequences: int = 256,
    batch: int = 64,
    seed: int = 0,
) -> CompletionError:
    """The same windows under one seed, whatever the models."""
    planner = completer.planner
    data = sequence_data(held_out, normaliser, completer.horizon)
    known = np.asarray(pattern(planner.shape, completer.horizon, jnp.full(batch, planner.phase, jnp.int32)))
    action_error, state_error = [], []
    for number, starts in enumerate(window_batches(data, sequences, batch, seed)):
        states, actions = sequences_at(data, starts, completer.horizon)
        done = completer.complete(jax.random.fold_in(jax.random.key(seed), number), np.asarray(states), known)
        action_error.append(np.square(done.actions - np.asarray(actions))[:, :-1])
        state_error.append(np.square(done.states - np.asarray(states)))
    squared = np.concatenate(state_error)
    shown = known[0].copy()
    shown[0] = False
    made_up = ~known[0]
    return CompletionError(
        sequences=len(squared),
        action_mse=float(np.concatenate(action_error).mean()),
        state_mse=float(squared[:, 1:].mean()),
        known_mse=float(squared[:, shown].mean()),
        masked_mse=float(squared[:, made_up].mean()),
    )
