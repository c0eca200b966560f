"""Where training's data lies: on the device if it fits, otherwise on disk. The results are the same."""

from __future__ import annotations

import os
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.agents.base import AnyLearner
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.training import (
    StreamData,
    device_bytes,
    device_data,
    mixture_counts,
    replicate,
    train_chunk,
    train_chunk_streamed,
)

PROBES = 256
SHARE_OF_FREE_MEMORY = 0.5
"""How much of the device's free memory data may take; networks, optimiser and the compiler's buffers need the rest."""


class Feed:
    """Trains a learner on a mixture of datasets, wherever they lie."""

    def __init__(
        self,
        sources: tuple[Dataset, ...],
        shares: tuple[float, ...],
        learner: AnyLearner,
        *,
        n_seeds: int,
        memory: Literal["auto", "device", "stream"] = "auto",
    ) -> None:
        self._learner = learner
        self._counts = mixture_counts(learner.batch_size, shares)
        self.observation_dim, self.action_dim = sources[0].observation_dim, sources[0].action_dim
        self.streams = memory == "stream" or (memory == "auto" and not fits(sources))
        if self.streams:
            self._sources: tuple[Any, ...] = tuple(
                StreamData(source, uses_rewards=learner.uses_rewards) for source in sources
            )
        else:
            self._sources = tuple(
                replicate(device_data(source, uses_rewards=learner.uses_rewards), n_seeds)
                for source in sources
            )
        self._probes = jnp.asarray(probe_observations(sources[0]), jnp.float32)

    def train(self, states: Any, keys: Any, first_step: int, steps: int) -> tuple[Any, dict[str, Any]]:
        run: Any = train_chunk_streamed if self.streams else train_chunk
        return run(self._learner, states, keys, first_step, self._sources, counts=self._counts, steps=steps)

    def probe_values(self, states: Any) -> np.ndarray:
        """Mean value at fixed states, a number a seed: where value has not travelled yet shows here first."""
        return np.asarray(_mean_value(self._learner, states, self._probes))


@jax.jit(static_argnums=0)
def _mean_value(learner: AnyLearner, states: Any, probes: Any) -> Any:
    return jax.vmap(lambda state: learner.value(state, probes).mean())(states)


def probe_observations(dataset: Dataset) -> np.ndarray:
    """First states of trajectories spread evenly over the dataset."""
    chosen = np.unique(np.linspace(0, dataset.n_trajectories - 1, PROBES).round().astype(np.int64))
    return np.asarray(dataset.observations[dataset.offsets[chosen]])


def fits(sources: tuple[Dataset, ...]) -> bool:
    needed = sum(device_bytes(source) for source in sources)
    return needed <= SHARE_OF_FREE_MEMORY * free_device_memory()


def free_device_memory() -> int:
    """Bytes that one device can still take. Devices of the host share the host's memory."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats()
        if stats is None:
            raise ConfigError(
                "This device does not say how much memory it has.", fix="choose --memory device or stream"
            )
        return stats["bytes_limit"] - stats["bytes_in_use"]
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return available // jax.device_count()
