"""Training compiled end to end: many updates, for several seeds, in one program.

`train_chunk` scans `steps` updates; each draws its own batch. Seeds are a mapped axis of everything but the
data, and are spread over devices where there are several. Step number and seed key alone decide every draw, so
a run that stops after any chunk and starts again from its states continues exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents.base import Batch, Learner, LinkedBatch
from astro_rl.training.batches import DeviceData, draw_batch

State = TypeVar("State")
SEED_AXIS = "seeds"


def seed_keys(seeds: tuple[int, ...]) -> Key[Array, "seeds"]:
    """One key a seed, the same whether the seed trains alone or with others."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


def init_states(
    learner: Learner[State], keys: Key[Array, "seeds"], observation_dim: int, action_dim: int
) -> State:
    """Fresh states for all seeds, stacked along a first axis."""

    def init_one(key: Key[Array, ""]) -> State:
        return learner.init(jax.random.fold_in(key, np.uint32(2**32 - 1)), observation_dim, action_dim)

    states = jax.jit(jax.vmap(init_one))(keys)
    return spread_over_devices(states, len(keys))


def train_chunk(
    learner: Learner[State],
    states: State,
    keys: Key[Array, "seeds"],
    first_step: int,
    sources: tuple[DeviceData, ...],
    *,
    counts: tuple[int, ...],
    steps: int,
) -> tuple[State, dict[str, Float[Array, "seeds"]]]:
    """`steps` updates from `first_step` on; returns the new states and each metric's mean over the chunk, a
    value a seed.

    The old states' memory is reused: do not touch them again.
    """
    return _compiled_chunk(learner, counts, steps, _mesh(len(keys)))(
        states, keys, jnp.int32(first_step), sources
    )


def train_on_batches(
    learner: Learner[State],
    states: State,
    keys: Key[Array, "seeds"],
    first_step: int,
    batches: Batch | LinkedBatch,
) -> tuple[State, dict[str, Float[Array, "seeds"]]]:
    """The same updates on batches gathered elsewhere, shaped (seeds, steps, batch, …)."""
    steps = batches.rewards.shape[1]
    return _compiled_stream_chunk(learner, steps, _mesh(len(keys)))(
        states, keys, jnp.int32(first_step), batches
    )


def step_keys(seed_key: Key[Array, ""], step: Int[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """The keys of one update: which rows are drawn, and what the learner draws."""
    batch_key, update_key = jax.random.split(jax.random.fold_in(seed_key, step))
    return batch_key, update_key


def spread_over_devices(tree: State, n_seeds: int) -> State:
    """Lay the seed axis over the devices that divide it evenly."""
    return jax.device_put(tree, NamedSharding(_mesh(n_seeds), PartitionSpec(SEED_AXIS)))


def replicate(tree: State, n_seeds: int) -> State:
    """Put data that all seeds share on every device that trains one."""
    return jax.device_put(tree, NamedSharding(_mesh(n_seeds), PartitionSpec()))


def _mesh(n_seeds: int) -> Mesh:
    return _mesh_over(max(d for d in range(1, jax.device_count() + 1) if n_seeds % d == 0))


@lru_cache
def _mesh_over(n_devices: int) -> Mesh:
    return Mesh(np.array(jax.devices()[:n_devices]), (SEED_AXIS,))


def _updates(learner: Learner[Any], steps: int, batch_of: Any) -> Any:
    """Scan `steps` updates of one seed. `batch_of(batch_key, number)` supplies each batch."""

    def run(state: Any, key: Key[Array, ""], first_step: Int[Array, ""]) -> tuple[Any, dict[str, Array]]:
        def one(state: Any, number: Int[Array, ""]) -> tuple[Any, dict[str, Array]]:
            batch_key, update_key = step_keys(key, first_step + number)
            return learner.update(state, batch_of(batch_key, number), update_key)

        state, info = jax.lax.scan(one, state, jnp.arange(steps, dtype=jnp.int32))
        return state, {name: values.mean() for name, values in info.items()}

    return run


def for_each_seed(one_seed: Any, *per_seed: Any) -> Any:
    """All seeds of a device: at once on an accelerator, one after the other on a CPU core.

    A core gains nothing from a mapped axis, and XLA's CPU backend picks slower kernels for it: one mapped seed
    of IQL at 3×256 runs at 47 updates/s where an unmapped one runs at 64 (docs/method/learners.md).
    """
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda own: one_seed(*own), per_seed)
    return jax.vmap(one_seed)(*per_seed)


@lru_cache(maxsize=64)
def _compiled_chunk(learner: Learner[Any], counts: tuple[int, ...], steps: int, mesh: Mesh) -> Any:
    linked = learner.needs_next_actions

    def chunk(states: Any, keys: Array, first_step: Array, sources: tuple[DeviceData, ...]) -> Any:
        def one_seed(state: Any, key: Array) -> Any:
            return _updates(
                learner, steps, lambda batch_key, _: draw_batch(batch_key, sources, counts, linked=linked)
            )(state, key, first_step)

        return for_each_seed(one_seed, states, keys)

    seeds, shared = PartitionSpec(SEED_AXIS), PartitionSpec()
    mapped = jax.shard_map(
        chunk, mesh=mesh, in_specs=(seeds, seeds, shared, shared), out_specs=seeds, check_vma=False
    )
    return jax.jit(mapped, donate_argnums=(0,))


@lru_cache(maxsize=64)
def _compiled_stream_chunk(learner: Learner[Any], steps: int, mesh: Mesh) -> Any:
    def chunk(states: Any, keys: Array, first_step: Array, batches: Batch | LinkedBatch) -> Any:
        def one_seed(state: Any, key: Array, own: Batch | LinkedBatch) -> Any:
            return _updates(
                learner, steps, lambda _, number: jax.tree.map(lambda column: column[number], own)
            )(state, key, first_step)

        return for_each_seed(one_seed, states, keys, batches)

    seeds, shared = PartitionSpec(SEED_AXIS), PartitionSpec()
    mapped = jax.shard_map(
        chunk, mesh=mesh, in_specs=(seeds, seeds, shared, seeds), out_specs=seeds, check_vma=False
    )
    return jax.jit(mapped, donate_argnums=(0,))
