"""The same training on data that stays on disk: rows are drawn on the device, gathered on the host, fed ahead of time.

The draw is the one of `batches.draw_indices` under the same keys, so a run gives the same batches, in the same
order, whether its data lies on the device or in a memory map. Gathering the next piece overlaps with training
on the present one.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from astro_rl.agents.base import Batch, Learner, LinkedBatch
from astro_rl.data.schema import Dataset
from astro_rl.training.batches import draw_indices, require_rewards
from astro_rl.training.loop import spread_over_devices, step_keys, train_on_batches

State = TypeVar("State")
PIECE_BYTES = 64 * 2**20


class StreamData:
    """A dataset that is gathered from where it lies. Keeps an index of transitions (8 bytes each) and nothing else."""

    def __init__(self, dataset: Dataset, *, uses_rewards: bool = True) -> None:
        require_rewards(dataset, uses_rewards)
        self._dataset = dataset
        self._rows = dataset.transition_rows()
        self._end_rows = dataset.end_rows

    @property
    def n_transitions(self) -> int:
        return len(self._rows)

    @property
    def bytes_per_transition(self) -> int:
        return 4 * (2 * self._dataset.observation_dim + 2 * self._dataset.action_dim + 3)

    def gather(self, index: Int[np.ndarray, "*shape"]) -> LinkedBatch:
        """Transitions by number, as float32 arrays shaped like the index. Rows are read in file order: disks
        like that."""
        unique, inverse = np.unique(self._rows[index.ravel()], return_inverse=True)

        def take(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
            values = np.asarray(column[rows], np.float32)[inverse]
            return values.reshape(index.shape + column.shape[1:])

        data = self._dataset
        rewards = np.zeros(index.shape, np.float32) if data.rewards is None else take(data.rewards, unique)
        # Arrays of the host, typed as the device's: they become that when the compiled chunk is called.
        columns: Any = (
            take(data.observations, unique),
            take(data.actions, unique),
            rewards,
            1.0 - take(data.terminated, unique),
            take(data.observations, unique + 1),
            take(data.actions, unique + 1),
            1.0 - np.isin(unique + 1, self._end_rows).astype(np.float32)[inverse].reshape(index.shape),
        )
        return LinkedBatch(*columns)


def train_chunk_streamed(
    learner: Learner[State],
    states: State,
    keys: Key[Array, "seeds"],
    first_step: int,
    sources: tuple[StreamData, ...],
    *,
    counts: tuple[int, ...],
    steps: int,
) -> tuple[State, dict[str, Float[Array, "seeds"]]]:
    """What `loop.train_chunk` does, with the same arguments and the same draws, from data on disk."""
    batch_bytes = sum(
        count * source.bytes_per_transition for count, source in zip(counts, sources, strict=True)
    )
    piece = max(1, min(steps, PIECE_BYTES // (batch_bytes * len(keys))))
    spans = [(start, min(piece, steps - start)) for start in range(0, steps, piece)]
    totals: dict[str, Array] = {}
    ahead = _ahead(keys, first_step, spans, sources, counts, linked=learner.needs_next_actions)
    for (_, length), (start, batches) in zip(spans, ahead, strict=True):
        states, info = train_on_batches(learner, states, keys, start, batches)
        for name, mean in info.items():
            totals[name] = totals.get(name, jnp.zeros_like(mean)) + mean * length
    return states, {name: total / steps for name, total in totals.items()}


def _ahead(
    keys: Key[Array, "seeds"],
    first_step: int,
    spans: list[tuple[int, int]],
    sources: tuple[StreamData, ...],
    counts: tuple[int, ...],
    *,
    linked: bool,
) -> Iterator[tuple[int, Batch | LinkedBatch]]:
    sizes = tuple(source.n_transitions for source in sources)

    def fetch(span: tuple[int, int]) -> tuple[int, Batch | LinkedBatch]:
        start, length = first_step + span[0], span[1]
        indices = _draw_piece(keys, jnp.int32(start), sizes, counts, length)
        parts = [source.gather(np.asarray(index)) for source, index in zip(sources, indices, strict=True)]
        columns: Any = [np.concatenate(column, axis=2) for column in zip(*parts, strict=True)]
        batches = LinkedBatch(*columns) if linked else Batch(*columns[:5])
        return start, spread_over_devices(batches, len(keys))

    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = pool.submit(fetch, spans[0])
        for following in spans[1:]:
            ready = waiting.result()
            waiting = pool.submit(fetch, following)
            yield ready
        yield waiting.result()


def _draw_piece(
    keys: Key[Array, "seeds"], start: Array, sizes: tuple[int, ...], counts: tuple[int, ...], length: int
) -> tuple[Int[Array, "seeds steps count"], ...]:
    return _compiled_draw(sizes, counts, length)(keys, start)


@lru_cache(maxsize=64)
def _compiled_draw(sizes: tuple[int, ...], counts: tuple[int, ...], length: int) -> Any:
    def one(key: Array, step: Array) -> tuple[Array, ...]:
        return draw_indices(step_keys(key, step)[0], sizes, counts)

    def piece(keys: Array, start: Array) -> tuple[Array, ...]:
        over_steps = jax.vmap(one, in_axes=(None, 0))
        steps = start + jnp.arange(length, dtype=jnp.int32)
        return jax.vmap(over_steps, in_axes=(0, None))(keys, steps)

    return jax.jit(piece)
