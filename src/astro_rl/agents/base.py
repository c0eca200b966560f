"""What every learner is: a frozen record of hyperparameters with four functions, all of them pure.

A learner owns no state. `init` makes one, `update` maps one to the next, so that the caller can scan updates,
map them over seeds and checkpoint them without knowing which algorithm runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from jaxtyping import Array, Float, Key

State = TypeVar("State")
Info = dict[str, Float[Array, ""]]


class Batch(NamedTuple):
    """Transitions (s, a, r, mask, s'). `masks` is 1 where the next state's value counts: 1 − terminated."""

    observations: Float[Array, "batch obs"]
    actions: Float[Array, "batch act"]
    rewards: Float[Array, "batch"]
    masks: Float[Array, "batch"]
    next_observations: Float[Array, "batch obs"]


class LinkedBatch(NamedTuple):
    """A `Batch` that also knows what was done next, for learners whose `needs_next_actions` is true."""

    observations: Float[Array, "batch obs"]
    actions: Float[Array, "batch act"]
    rewards: Float[Array, "batch"]
    masks: Float[Array, "batch"]
    next_observations: Float[Array, "batch obs"]
    next_actions: Float[Array, "batch act"]
    """a', the action of the row after: meaningless on a trajectory's end row, where `next_known` is 0."""
    next_known: Float[Array, "batch"]


@runtime_checkable
class Learner(Protocol[State]):
    """The contract. Implementations are frozen dataclasses: hashable, as jit's static arguments have to be.

    `State` is a pytree whose leaves are all arrays (functions and sizes live in static fields), so that
    `jax.vmap`, `jax.lax.scan`, Orbax and a plain tree comparison work on it as it is.
    """

    @property
    def batch_size(self) -> int: ...

    @property
    def discount(self) -> float: ...

    @property
    def uses_rewards(self) -> bool:
        """False where a dataset without rewards will do."""
        ...

    @property
    def needs_next_actions(self) -> bool:
        """Whether batches have to be `LinkedBatch`es."""
        ...

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> State:
        """Fresh networks and optimiser state."""
        ...

    def update(self, state: State, batch: Batch, key: Key[Array, ""]) -> tuple[State, Info]:
        """One gradient step. `Info` holds scalars with stable names, `<part>/<quantity>`."""
        ...

    def act(
        self, state: State, observations: Float[Array, "batch obs"], keys: Key[Array, "batch"]
    ) -> Float[Array, "batch act"]:
        """The evaluation policy, clipped to [−1, 1]. One key a row: actions do not depend on each other."""
        ...

    def value(self, state: State, observations: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """How good the learner thinks a state is: V(s), or Q(s, π(s)) where there is none. For value maps."""
        ...

    def action_value(
        self, state: State, observations: Float[Array, "batch obs"], actions: Float[Array, "batch act"]
    ) -> Float[Array, "batch"]:
        """Q(s, a), critics put together as in `value`. 0 where there are none."""
        ...


AnyLearner = Learner[Any]
