"""A learned reward for datasets whose reward function nobody knows: (s, a, s') to r and to "terminated".

    L = (r̃(s, a, s') − (r − μ)/σ)² + BCE(p̃(s, a, s'), terminated)

Real transitions keep their own rewards; only generated ones are asked for. What it is worth is measured on a
held-out twentieth and travels in the lineage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Key

from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.nets.mlp import MLP
from astro_rl.training.fit import fit_chunk
from astro_rl.training.optimise import adamw, descend, init_optimiser

MOST_TRANSITIONS = 1_000_000
"""Evenly spread over larger datasets."""
HELD_OUT = 20
"""Every so many-th transition is not trained on."""
CHUNK_STEPS = 500
EVALUATED_AT_ONCE = 1 << 14

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RewardSettings:
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 3_000
    batch_size: int = 512
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size, *self.hidden) < 1 or self.learning_rate <= 0:
            raise ConfigError("Sizes of the reward model must be positive.", found=self)


class RewardData(NamedTuple):
    inputs: Float[Array, "transitions features"]
    rewards: Float[Array, "transitions"]
    """Standardised."""
    terminated: Float[Array, "transitions"]


class RewardState(NamedTuple):
    network: MLP
    optimiser: optax.OptState


@dataclass(frozen=True)
class RewardLearner:
    settings: RewardSettings

    def init(self, key: Key[Array, ""], features: int) -> RewardState:
        network = MLP.init(key, features, self.settings.hidden, 2, layer_norm=True)
        return RewardState(network, init_optimiser(self._optimiser(), network))

    def update(
        self, state: RewardState, data: RewardData, key: Key[Array, ""]
    ) -> tuple[RewardState, dict[str, Float[Array, ""]]]:
        drawn = jax.random.randint(key, (self.settings.batch_size,), 0, len(data.inputs))
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.network, data.inputs[drawn], data.rewards[drawn], data.terminated[drawn]
        )
        return RewardState(*descend(self._optimiser(), state.network, state.optimiser, gradients)), info

    def loss(
        self,
        network: MLP,
        inputs: Float[Array, "batch features"],
        rewards: Float[Array, "batch"],
        terminated: Float[Array, "batch"],
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """L, see above: squared error in standardised units plus binary cross entropy."""
        answer = network(inputs)
        square = jnp.square(answer[:, 0] - rewards).mean()
        entropy = optax.sigmoid_binary_cross_entropy(answer[:, 1], terminated).mean()
        return square + entropy, {"reward_mse": square, "terminated_entropy": entropy}

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.settings.learning_rate, clip=1.0)


@dataclass(frozen=True, eq=False)
class RewardModel:
    """r and terminated of transitions. A reward that never varies, or an end that never comes, needs no network."""

    normaliser: Normaliser
    network: MLP
    mean: float
    spread: float
    low: float
    high: float
    """Rewards stay within those seen."""
    ever_terminates: bool
    quality: dict[str, float]
    """Held-out: `reward_rmse`, `reward_std` beside it, `terminated_recall` and `terminated_precision` where they mean
    something."""

    def __call__(
        self,
        observations: Float[np.ndarray, "batch obs"],
        actions: Float[np.ndarray, "batch act"],
        following: Float[np.ndarray, "batch obs"],
    ) -> tuple[Float[np.ndarray, "batch"], Bool[np.ndarray, "batch"]]:
        inputs = features(self.normaliser, observations, actions, following)
        answers = np.zeros((len(inputs), 2), np.float32)
        for start in range(0, len(inputs), EVALUATED_AT_ONCE):
            part = inputs[start : start + EVALUATED_AT_ONCE]
            padded = np.zeros((EVALUATED_AT_ONCE, inputs.shape[1]), np.float32)
            padded[: len(part)] = part
            answers[start : start + len(part)] = np.asarray(_answers(self.network, padded))[: len(part)]
        rewards = np.clip(self.mean + self.spread * answers[:, 0], self.low, self.high)
        return rewards.astype(np.float32), (answers[:, 1] > 0) & self.ever_terminates


_answers = jax.jit(lambda network, inputs: network(inputs))


def features(
    normaliser: Normaliser,
    observations: Float[np.ndarray, "batch obs"],
    actions: Float[np.ndarray, "batch act"],
    following: Float[np.ndarray, "batch obs"],
) -> Float[np.ndarray, "batch features"]:
    """s and s' normalised, a as it is."""
    parts = (normaliser.normalise(observations), actions, normaliser.normalise(following))
    return np.concatenate([np.asarray(part, np.float32) for part in parts], axis=1)


def fit_reward_model(
    dataset: Dataset,
    normaliser: Normaliser,
    settings: RewardSettings | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> RewardModel:
    """From the dataset's own rewards and ends."""
    settings = settings or RewardSettings()
    if dataset.rewards is None:
        raise DataError("A dataset without rewards cannot teach any.", field="rewards")
    rows = dataset.transition_rows()
    rows = rows[:: max(1, -(-len(rows) // MOST_TRANSITIONS))]
    here = np.asarray(dataset.observations[rows])
    after = np.asarray(dataset.observations[rows + 1])
    inputs = features(normaliser, here, np.asarray(dataset.actions[rows]), after)
    rewards = np.asarray(dataset.rewards[rows], np.float64)
    terminated = np.asarray(dataset.terminated[rows])
    mean, spread = float(rewards.mean()), float(rewards.std())
    unit = spread if spread > 0 else 1.0
    held = np.arange(len(rows)) % HELD_OUT == HELD_OUT - 1
    data = RewardData(
        jnp.asarray(inputs[~held]),
        jnp.asarray((rewards[~held] - mean) / unit, jnp.float32),
        jnp.asarray(terminated[~held], jnp.float32),
    )
    learner = RewardLearner(settings)
    init_key, fit_key = jax.random.split(jax.random.key(seed))
    state: Any = learner.init(init_key, inputs.shape[1])
    for start in range(0, settings.steps, CHUNK_STEPS):
        count = min(CHUNK_STEPS, settings.steps - start)
        state, _ = fit_chunk(learner, state, data, fit_key, start, count)
        if progress is not None:
            progress(start + count, settings.steps)
    make = partial(
        RewardModel, normaliser, state.network, mean, spread, float(rewards.min()), float(rewards.max())
    )
    model = make(bool(terminated.any()), {})
    told, ended = model(here[held], np.asarray(dataset.actions[rows[held]]), after[held])
    return make(model.ever_terminates, _quality(told, rewards[held], ended, terminated[held]))


def _quality(
    told: np.ndarray, rewards: np.ndarray, ended: np.ndarray, terminated: np.ndarray
) -> dict[str, float]:
    quality: dict[str, float] = {}
    if len(rewards):
        quality["reward_rmse"] = float(np.sqrt(np.square(told - rewards).mean()))
        quality["reward_std"] = float(rewards.std())
    if terminated.any():
        quality["terminated_recall"] = float(ended[terminated].mean())
    if ended.any():
        quality["terminated_precision"] = float(terminated[ended].mean())
    return quality
