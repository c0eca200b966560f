"""Gaps filled and judged: states between two ends, actions by inverse dynamics, and how far they contradict each other.

The deviation of a gap is the largest of its transitions' (`dynamics.onestep`, (5)): the authors reject a gap for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from astro_rl.data.normaliser import Normaliser
from astro_rl.dynamics.onestep import OneStep
from astro_rl.nets.mlp import MLP
from astro_rl.stateplan.complete import StateSampling
from astro_rl.stateplan.fitting import StatePlan
from astro_rl.stateplan.inverse import InverseDynamics
from astro_rl.stateplan.masks import gap_known
from astro_rl.stateplan.model import StatePlanner


class Filled(NamedTuple):
    """Sequences in the dataset's units, actions within [−1, 1], and one deviation each. What is not finite has none."""

    observations: Float[np.ndarray, "gaps horizon obs"]
    actions: Float[np.ndarray, "gaps horizon act"]
    deviation: Float[np.ndarray, "gaps"]


@dataclass(frozen=True, eq=False)
class GapFiller:
    """All three models, ready for batches of one size (the last one padded), so that they are compiled once."""

    plan: StatePlan
    onestep: OneStep
    onestep_network: MLP
    normaliser: Normaliser
    observations: Callable[[np.ndarray], np.ndarray]
    """From normalised states to valid observations: `augment.finish.Finisher.observations`."""
    sampling: StateSampling
    size: int

    def states(
        self,
        given: Float[np.ndarray, "gaps horizon obs"],
        known: Bool[np.ndarray, "gaps horizon"],
        key: Key[Array, ""],
    ) -> Float[np.ndarray, "gaps horizon obs"]:
        """Normalised states, the known ones as given."""
        planner, network = self.plan.planner, self.plan.planner_network
        parts = []
        for number, start in enumerate(range(0, len(given), self.size)):
            chosen = np.arange(start, start + self.size)
            chosen = np.where(chosen < len(given), chosen, start)
            own = jax.random.fold_in(key, number)
            filled = _states(planner, self.sampling, network, own, given[chosen], known[chosen])
            parts.append(np.asarray(filled)[: len(given) - start])
        return np.concatenate(parts) if parts else given

    def continuations(
        self, first: Float[np.ndarray, "gaps obs"], key: Key[Array, ""]
    ) -> Float[np.ndarray, "gaps horizon obs"]:
        """Where the planner goes from each of these normalised states, given nothing else."""
        given = np.zeros((len(first), self.plan.planner.horizon, first.shape[1]), np.float32)
        given[:, 0] = first
        known = np.zeros(given.shape[:2], bool)
        known[:, 0] = True
        return self.states(given, known, key)

    def fill(
        self,
        given: Float[np.ndarray, "gaps horizon obs"],
        places: Int[np.ndarray, "gaps"],
        ends: Int[np.ndarray, "gaps"],
        key: Key[Array, ""],
    ) -> Filled:
        """Targets known from `places` to `ends`. Actions and deviations are those of the observations that are handed
        back, which have been made valid."""
        horizon = self.plan.planner.horizon
        known = np.asarray(gap_known(horizon, jnp.asarray(places), jnp.asarray(ends)))
        states = self.states(given, known, key)
        finite = np.isfinite(states).all(axis=(1, 2))
        observations = self.observations(states)
        valid = self.normaliser.normalise(observations).astype(np.float32)
        valid = np.where(known[..., None], given, valid)
        actions, deviation = self._judged(valid)
        within = np.arange(horizon - 1)[None, :] < places[:, None]
        worst = np.where(within, deviation, 0.0).max(axis=1, initial=0.0)
        return Filled(observations, actions, np.where(finite, worst, np.nan).astype(np.float32))

    def _judged(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        networks = self.plan.inverse_network, self.onestep_network
        actions, deviations = [], []
        for start in range(0, len(states), self.size):
            chosen = np.arange(start, start + self.size)
            chosen = np.where(chosen < len(states), chosen, start)
            taken, apart = _judge(self.plan.inverse, self.onestep, *networks, states[chosen])
            actions.append(np.asarray(taken)[: len(states) - start])
            deviations.append(np.asarray(apart)[: len(states) - start])
        return np.concatenate(actions), np.concatenate(deviations)


@partial(jax.jit, static_argnums=(0, 1))
def _states(
    planner: StatePlanner, sampling: StateSampling, network: object, key: Array, given: Array, known: Array
) -> Array:
    return planner.fill(
        network,  # type: ignore[arg-type]
        jnp.where(known[..., None], given, 0.0),
        known,
        key,
        steps=sampling.steps,
        sampler=sampling.sampler,
    )


@partial(jax.jit, static_argnums=(0, 1))
def _judge(
    inverse: InverseDynamics, onestep: OneStep, inverse_network: MLP, onestep_network: MLP, states: Array
) -> tuple[Array, Array]:
    actions = inverse.along(inverse_network, states)
    return actions, onestep.deviation(onestep_network, states, actions)
