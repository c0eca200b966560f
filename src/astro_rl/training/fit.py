"""Fitting one model on data that lies on the device: updates scanned, each drawing its own batch from its own key.

The counterpart of `loop` for models that are no learners of policies (temporal distances, dynamics, planner):
one state, any data, the same rule that step number and key alone decide every draw.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

State = TypeVar("State")
Data_contra = TypeVar("Data_contra", contravariant=True)


@runtime_checkable
class Fittable(Protocol[State, Data_contra]):
    """A frozen, hashable record of hyperparameters with an update that draws its own batch."""

    def update(
        self, state: State, data: Data_contra, key: Key[Array, ""]
    ) -> tuple[State, dict[str, Float[Array, ""]]]: ...


def fit_chunk(
    model: Fittable[State, Any], state: State, data: Any, key: Key[Array, ""], first_step: int, steps: int
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`steps` updates from `first_step` on; returns the new state and each metric's mean. The old state's
    memory is reused."""
    return _compiled(model, steps)(state, data, key, jnp.int32(first_step))


@lru_cache(maxsize=32)
def _compiled(model: Fittable[Any, Any], steps: int) -> Any:
    def chunk(state: Any, data: Any, key: Array, first_step: Int[Array, ""]) -> Any:
        def one(state: Any, number: Int[Array, ""]) -> Any:
            return model.update(state, data, jax.random.fold_in(key, first_step + number))

        state, info = jax.lax.scan(one, state, jnp.arange(steps, dtype=jnp.int32))
        return state, {name: values.mean() for name, values in info.items()}

    return jax.jit(chunk, donate_argnums=0)
