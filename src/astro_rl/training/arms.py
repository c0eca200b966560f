"""Many arms of one experiment in one program: the same learner on different data, under different rewards.

An arm is a pair of row ranges in one table on the device (half of each batch from either; the same range twice
for an arm without augmentation) and a labelling (rewards and masks of one task). Arms × seeds are one mapped axis, so
that an accelerator, which one small network leaves idle, trains a whole table of scores at the speed of one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents.base import Batch, Learner, LinkedBatch
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.training.loop import for_each_seed, seed_keys, step_keys


class Table(NamedTuple):
    """Rows of several datasets laid end to end."""

    observations: Float[Array, "rows obs"]
    actions: Float[Array, "rows act"]
    has_action: Float[Array, "rows"]
    transition_rows: Int[Array, "transitions"]
    rewards: Float[Array, "labellings rows"]
    masks: Float[Array, "labellings rows"]


class Member(NamedTuple):
    """One arm with one seed."""

    first: Int[Array, "members 2"]
    """Where the two ranges of transitions begin."""
    size: Int[Array, "members 2"]
    labelling: Int[Array, "members"]


@dataclass(frozen=True)
class Arm:
    """`data` names one dataset, or two that are mixed half and half."""

    name: str
    data: tuple[str, ...]
    labelling: int = 0


def build_table(
    datasets: dict[str, Dataset], labels: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]]
) -> tuple[Table, dict[str, tuple[int, int]]]:
    """The table and each dataset's range of transitions. `labels`: a (rewards, terminated) pair a labelling."""
    counts = {len(pairs) for pairs in labels.values()}
    if labels.keys() != datasets.keys() or len(counts) != 1:
        raise ConfigError(
            "Each dataset needs one pair of rewards and ends a labelling.", found=sorted(labels)
        )
    labellings, rows, transitions = counts.pop(), 0, 0
    ranges, places, has_action = {}, [], []
    for name, dataset in datasets.items():
        own = dataset.transition_rows()
        ranges[name] = (transitions, len(own))
        places.append(own + rows)
        flags = np.ones(dataset.n_rows, np.float32)
        flags[dataset.end_rows] = 0.0
        has_action.append(flags)
        rows, transitions = rows + dataset.n_rows, transitions + len(own)
    chosen = list(datasets.values())

    def stacked(part: int) -> np.ndarray:
        return np.stack(
            [
                np.concatenate([np.asarray(labels[name][k][part], np.float32) for name in datasets])
                for k in range(labellings)
            ]
        )

    table = Table(
        observations=jnp.asarray(np.concatenate([d.observations for d in chosen]), jnp.float32),
        actions=jnp.asarray(np.concatenate([d.actions for d in chosen]), jnp.float32),
        has_action=jnp.asarray(np.concatenate(has_action)),
        transition_rows=jnp.asarray(np.concatenate(places), jnp.int32),
        rewards=jnp.asarray(stacked(0)),
        masks=1.0 - jnp.asarray(stacked(1)),
    )
    return table, ranges


def members_of(
    arms: Sequence[Arm], ranges: dict[str, tuple[int, int]], seeds: Sequence[int]
) -> tuple[Member, Key[Array, "members"]]:
    """All arms with all seeds, arm by arm. A seed has one key, whatever its arm: arms differ in their data alone."""
    first, size, labelling = [], [], []
    for arm in arms:
        pair = [ranges[name] for name in (arm.data * 2)[:2]]
        first += [[start for start, _ in pair]] * len(seeds)
        size += [[count for _, count in pair]] * len(seeds)
        labelling += [arm.labelling] * len(seeds)
    keys = jnp.concatenate([seed_keys(tuple(seeds))] * len(arms))
    return Member(jnp.asarray(first), jnp.asarray(size), jnp.asarray(labelling)), keys


def train_arms(
    learner: Learner[Any],
    states: Any,
    keys: Key[Array, "members"],
    first_step: int,
    table: Table,
    members: Member,
    steps: int,
) -> tuple[Any, dict[str, Float[Array, "members"]]]:
    """`steps` updates of all members. The old states' memory is reused."""
    return _compiled(learner, steps)(states, keys, jnp.int32(first_step), table, members)


def draw(
    key: Key[Array, ""], table: Table, member: Member, batch_size: int, *, linked: bool
) -> Batch | LinkedBatch:
    """One member's batch: the first half from its first range, the rest from its second."""
    halves = (batch_size - batch_size // 2, batch_size // 2)
    parts = [
        member.first[k] + jax.random.randint(own, (halves[k],), 0, member.size[k])
        for k, own in enumerate(jax.random.split(key, 2))
    ]
    rows = table.transition_rows[jnp.concatenate(parts)]
    batch = Batch(
        observations=table.observations[rows],
        actions=table.actions[rows],
        rewards=table.rewards[member.labelling, rows],
        masks=table.masks[member.labelling, rows],
        next_observations=table.observations[rows + 1],
    )
    return LinkedBatch(*batch, table.actions[rows + 1], table.has_action[rows + 1]) if linked else batch


@lru_cache(maxsize=16)
def _compiled(learner: Learner[Any], steps: int) -> Any:
    def chunk(states: Any, keys: Array, first_step: Array, table: Table, members: Member) -> Any:
        def one_member(state: Any, key: Array, member: Member) -> Any:
            def one(state: Any, number: Array) -> Any:
                batch_key, update_key = step_keys(key, first_step + number)
                drawn: Any = draw(
                    batch_key, table, member, learner.batch_size, linked=learner.needs_next_actions
                )
                return learner.update(state, drawn, update_key)

            state, info = jax.lax.scan(one, state, jnp.arange(steps, dtype=jnp.int32))
            return state, {name: values.mean() for name, values in info.items()}

        return for_each_seed(one_member, states, keys, members)

    return jax.jit(chunk, donate_argnums=0)
