"""What trained learners expect of every place: Q(s, π(s)) before and after augmentation, on the same recorded states.

    Q_mean = mean over states of Q(s, π(s))

A learner with more value has not learned more by that alone: a critic may overestimate. Q_mean tells how far reward has
spread over the states, and belongs beside a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from astro_rl.agents.base import AnyLearner
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.quality.cells import ACROSS, Cells
from astro_rl.run.policy import Policy

STATES = 20_000


@dataclass(frozen=True)
class ValueMap:
    """Q(s, π(s)) by cells of the plane, averaged over the states in each and over seeds."""

    side: float
    x: tuple[float, ...]
    """Centres of the cells that recorded states lie in."""
    y: tuple[float, ...]
    states: tuple[int, ...]
    q: tuple[float, ...]


@dataclass(frozen=True)
class RunValues:
    """One arm: all seeds of its runs."""

    name: str
    learner: str
    seeds: int
    states: int
    q_mean: float
    q_std: float
    """Over seeds."""
    map: ValueMap | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run_values(
    name: str,
    policies: Sequence[Policy],
    dataset: Dataset,
    *,
    xy: tuple[int, int] | None = None,
    across: int = ACROSS,
    states: int = STATES,
) -> RunValues:
    """On up to `states` recorded states, evenly spread: the same ones for every arm."""
    rows = np.unique(np.linspace(0, dataset.n_rows - 1, min(states, dataset.n_rows)).round().astype(np.int64))
    observations = np.asarray(dataset.observations[rows], np.float32)
    kinds = sorted({type(policy.learner).__name__ for policy in policies})
    if len(kinds) != 1:
        raise DataError("The runs of one arm are of different learners.", field=name, found=", ".join(kinds))
    q = np.concatenate([policy_values(policy, observations) for policy in policies])
    found = None if xy is None else value_map(q.mean(axis=0), dataset, rows, Cells.over(dataset, xy, across))
    each = q.mean(axis=1)
    return RunValues(name, kinds[0], len(q), len(rows), float(each.mean()), float(each.std()), found)


def policy_values(
    policy: Policy, observations: Float[np.ndarray, "states obs"]
) -> Float[np.ndarray, "seeds states"]:
    """Q(s, π(s)) of each of its seeds. Seed by seed: many at once would not fit where one does."""
    if observations.shape[1] != policy.observation_dim:
        raise DataError(
            "The policy was trained on observations of another size.",
            field="observations",
            found=f"{observations.shape[1]} numbers",
            expected=f"{policy.observation_dim} numbers",
            fix="name runs that were trained on this data",
        )
    return np.stack(
        [_policy_values(policy.learner, state, jnp.asarray(observations)) for state in _each_seed(policy)]
    ).astype(np.float64)


def mean_value(policy: Policy, observations: Float[np.ndarray, "states obs"]) -> Float[np.ndarray, "states"]:
    """The learner's own value, averaged over seeds."""
    value = jax.jit(policy.learner.value)
    total = np.zeros(len(observations))
    for state in _each_seed(policy):
        total += np.asarray(value(state, jnp.asarray(observations)), np.float64)
    return total / len(policy.seeds)


def value_map(q: Float[np.ndarray, "states"], dataset: Dataset, rows: np.ndarray, cells: Cells) -> ValueMap:
    """Means over the states of each cell; `q` belongs to the dataset's `rows`."""
    places = cells.of(dataset)[rows]
    visited, number = np.unique(places, axis=0, return_inverse=True)
    number = number.reshape(-1)
    counts = np.bincount(number)
    means = np.bincount(number, weights=q) / counts
    x, y = cells.centers(visited).T
    return ValueMap(cells.side, *(tuple(part.tolist()) for part in (x, y, counts, means)))


@partial(jax.jit, static_argnums=0)
def _policy_values(learner: AnyLearner, state: Any, observations: Any) -> Any:
    # The same keys for every policy: where it is drawn by chance, all are drawn alike.
    keys = jax.random.split(jax.random.key(0), len(observations))
    return learner.action_value(state, observations, learner.act(state, observations, keys))


def _each_seed(policy: Policy) -> Any:
    for position in range(len(policy.seeds)):
        yield jax.tree.map(lambda leaf, at=position: leaf[at], policy.states)
