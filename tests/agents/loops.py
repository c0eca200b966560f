"""The smallest loop that trains a learner, and networks that are constants, for tests."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from astro_rl.agents import AnyLearner, Batch, LinkedBatch
from astro_rl.nets import Critic

Network = TypeVar("Network", bound=eqx.Module)

COEFFICIENTS = {"alpha": 0.5, "alpha_actor": 0.5, "expectile": 0.5}
"""Settings that programs take as arguments here, so that learners which differ in nothing else compile once."""


def quick(function: Callable[..., Any], level: int = 0, **jit_options: Any) -> Callable[..., Any]:
    """`jax.jit` for programs that run briefly: a quarter of the time to compile. Level 1 suits long runs."""
    return jax.jit(function, compiler_options=_quick_options(level), **jit_options)


@lru_cache
def _quick_options(level: int) -> dict[str, Any]:
    options = {"xla_backend_optimization_level": level, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(0)
    except (
        jax.errors.JaxRuntimeError
    ):  # Another version of XLA, without these names: slower tests, same results.
        return {}
    return options


def rows_for(learner: AnyLearner, rows: LinkedBatch) -> Batch | LinkedBatch:
    """Next actions only for the learners that ask for them."""
    return rows if learner.needs_next_actions else Batch(*rows[:5])


def trainer(learner: AnyLearner, steps: int) -> Callable[..., Any]:
    """`(state, key, first_step, rows) -> (state, info of every step)`; not compiled, so that tests can map it."""

    def run(state: Any, key: Array, first_step: Array, rows: Batch | LinkedBatch) -> Any:
        def one(state: Any, step: Array) -> Any:
            draw_key, update_key = jax.random.split(jax.random.fold_in(key, step))
            index = jax.random.randint(draw_key, (learner.batch_size,), 0, len(rows.rewards))
            return learner.update(state, jax.tree.map(lambda column: column[index], rows), update_key)

        return jax.lax.scan(one, state, first_step + jnp.arange(steps, dtype=jnp.int32))

    return run


@lru_cache
def _fitting(learner: AnyLearner, steps: int) -> Callable[..., Any]:
    def fit(coefficients: dict[str, Array], key: Array, rows: Batch | LinkedBatch) -> Any:
        own = copy.copy(learner)
        for name, value in coefficients.items():
            object.__setattr__(own, name, value)
        init_key, loop_key = jax.random.split(key)
        state = own.init(init_key, rows.observations.shape[1], rows.actions.shape[1])
        return trainer(own, steps)(state, loop_key, jnp.int32(0), rows)[0]

    return quick(fit, level=1)


def train(learner: AnyLearner, rows: LinkedBatch, steps: int, seed: int = 0) -> Any:
    """A fresh state after `steps` updates on batches drawn from `rows`."""
    names = [field.name for field in dataclasses.fields(learner) if field.name in COEFFICIENTS]  # pyright: ignore[reportArgumentType]
    coefficients = {name: jnp.float32(getattr(learner, name)) for name in names}
    common = dataclasses.replace(learner, **{name: COEFFICIENTS[name] for name in names})  # pyright: ignore[reportArgumentType]
    return _fitting(common, steps)(coefficients, jax.random.key(seed), rows_for(learner, rows))


def actions_of(learner: AnyLearner, state: Any, observations: Any, draws: int = 1) -> np.ndarray:
    """The policy's actions, `(draws, observations, actions)`."""
    asked = jnp.repeat(jnp.asarray(observations, jnp.float32)[None], draws, axis=0).reshape(
        -1, np.shape(observations)[1]
    )
    actions = learner.act(state, asked, jax.random.split(jax.random.key(99), len(asked)))
    return np.asarray(actions).reshape(draws, len(observations), -1)


def values_of(learner: AnyLearner, state: Any, observations: Any) -> np.ndarray:
    return np.asarray(learner.value(state, jnp.asarray(observations, jnp.float32)))


def rows_of(
    observations: Any,
    actions: Any,
    rewards: Any,
    *,
    masks: Any = None,
    next_observations: Any = None,
    next_actions: Any = None,
) -> LinkedBatch:
    """Transitions that end at once unless something else is said."""

    def numbers(values: Any) -> Array:
        return jnp.asarray(np.asarray(values, np.float32))

    n = len(actions)
    return LinkedBatch(
        observations=numbers(observations),
        actions=numbers(actions),
        rewards=numbers(np.broadcast_to(rewards, (n,))),
        masks=jnp.zeros(n) if masks is None else numbers(masks),
        next_observations=numbers(observations if next_observations is None else next_observations),
        next_actions=jnp.zeros_like(numbers(actions)) if next_actions is None else numbers(next_actions),
        next_known=jnp.zeros(n) if next_actions is None else jnp.ones(n),
    )


def constant(network: Network, outputs: Any) -> Network:
    """The network with all weights 0 but the last bias: it says `outputs` (one row a member) whatever it is shown."""
    zeros = jax.tree.map(jnp.zeros_like, network)
    bias = last_bias(zeros)
    return eqx.tree_at(last_bias, zeros, jnp.asarray(outputs, jnp.float32).reshape(bias.shape))


def outputs_of(network: Any) -> np.ndarray:
    """What a `constant` network says now."""
    return np.asarray(last_bias(network))


def last_bias(network: Any) -> Array:
    mlp = network.members if isinstance(network, Critic) else network.mlp
    return mlp.layers[-1].bias
