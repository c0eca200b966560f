"""Batches drawn where the data lies: uniform over transitions, from one dataset or a mixture, without copying either.

A dataset goes to the device once, as its rows. A batch is a gather: rows r for (s, a, r, mask) and r + 1 for s'. Which
rows is decided by a key alone, so the draw can be repeated on the host (`stream`) when the data does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents.base import Batch, LinkedBatch
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError


class DeviceData(NamedTuple):
    """A dataset's rows on the device, in float32, and which of them a transition leaves."""

    observations: Float[Array, "rows obs"]
    actions: Float[Array, "rows act"]
    rewards: Float[Array, "rows"]
    masks: Float[Array, "rows"]
    has_action: Float[Array, "rows"]
    """0 on end rows, whose action means nothing."""
    transition_rows: Int[Array, "transitions"]


def device_data(dataset: Dataset, *, uses_rewards: bool = True) -> DeviceData:
    """Copy a dataset to the default device. A dataset without rewards serves learners that use none."""
    require_rewards(dataset, uses_rewards)
    rewards = np.zeros(dataset.n_rows, np.float32) if dataset.rewards is None else dataset.rewards
    return DeviceData(
        observations=jnp.asarray(dataset.observations, jnp.float32),
        actions=jnp.asarray(dataset.actions, jnp.float32),
        rewards=jnp.asarray(rewards, jnp.float32),
        masks=1.0 - jnp.asarray(dataset.terminated, jnp.float32),
        has_action=jnp.ones(dataset.n_rows).at[dataset.end_rows].set(0.0),
        transition_rows=jnp.asarray(dataset.transition_rows(), jnp.int32),
    )


def device_bytes(dataset: Dataset) -> int:
    """What `device_data` would take: float32 rows and an index."""
    per_row = 4 * (dataset.observation_dim + dataset.action_dim + 3)
    return dataset.n_rows * per_row + 4 * dataset.n_transitions


def require_rewards(dataset: Dataset, uses_rewards: bool) -> None:
    if uses_rewards and dataset.rewards is None:
        raise DataError(
            "The dataset has no rewards, and this learner needs them.",
            field="rewards",
            found="a reward-free dataset",
            expected="one reward a transition",
            fix="name a task (--task) whose reward function labels the dataset, or use a learner without rewards (bc)",
        )


def mixture_counts(batch_size: int, shares: Sequence[float]) -> tuple[int, ...]:
    """How many rows of each batch come from each source, by largest remainder; fixed, not drawn, for less variance.

    A positive share that rounds to no row at all would silently have no effect, so it is refused.
    """
    total = sum(shares)
    if total <= 0 or min(shares) < 0:
        raise ConfigError("Mixture shares must be non-negative and sum to more than 0.", found=list(shares))
    exact = [batch_size * share / total for share in shares]
    counts = [int(np.floor(value)) for value in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: batch_size - sum(counts)]:
        counts[i] += 1
    if any(count == 0 and share > 0 for count, share in zip(counts, shares, strict=True)):
        raise ConfigError(
            "A source of the mixture gets no row of any batch.",
            found=f"shares {list(shares)} of a batch of {batch_size} give {counts}",
            fix="raise its share, or leave the source out",
        )
    return tuple(counts)


def draw_indices(
    key: Key[Array, ""], sizes: Sequence[int | Int[Array, ""]], counts: tuple[int, ...]
) -> tuple[Array, ...]:
    """For each source, `counts` transition numbers, uniform over its `sizes` transitions, with replacement."""
    keys = jax.random.split(key, len(counts))
    return tuple(
        jax.random.randint(source_key, (count,), 0, size)
        for source_key, size, count in zip(keys, sizes, counts, strict=True)
    )


def draw_batch(
    key: Key[Array, ""], sources: tuple[DeviceData, ...], counts: tuple[int, ...], *, linked: bool = False
) -> Batch | LinkedBatch:
    """One batch of the mixture, the sources' shares one after the other; `linked` adds what was done next."""
    indices = draw_indices(key, [len(source.transition_rows) for source in sources], counts)
    parts = [
        gather(source, source.transition_rows[index]) for source, index in zip(sources, indices, strict=True)
    ]
    return joined(parts, linked)


def joined(parts: Sequence[LinkedBatch], linked: bool) -> Batch | LinkedBatch:
    whole = (
        parts[0] if len(parts) == 1 else LinkedBatch(*(jnp.concatenate(c) for c in zip(*parts, strict=True)))
    )
    return whole if linked else Batch(*whole[:5])


def gather(source: DeviceData, rows: Int[Array, "batch"]) -> LinkedBatch:
    """What is not used afterwards is not gathered either: the compiler drops it."""
    return LinkedBatch(
        observations=source.observations[rows],
        actions=source.actions[rows],
        rewards=source.rewards[rows],
        masks=source.masks[rows],
        next_observations=source.observations[rows + 1],
        next_actions=source.actions[rows + 1],
        next_known=source.has_action[rows + 1],
    )
