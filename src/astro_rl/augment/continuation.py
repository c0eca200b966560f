"""Where imitation leads: a behaviour-cloned policy, rolled in the dynamics model from a state on.

    L = E ‖ v(s, xₜ, t) − (a − z) ‖²,    xₜ = (1 − t) z + t a,    t ~ U[0, 1],    z ~ N(0, I)

A flow, because data goes several ways from one place: their mean leads nowhere. Each continuation keeps one z for all
its steps, so that it goes one of these ways and does not waver between them.

The dynamics model maps whole action sequences to whole state sequences, so the loop of acting and looking is closed by
iteration: states give actions, actions give states. Each round makes at least one more step exact, so M + 1 rounds
give the state M + 1 steps on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from astro_rl.agents.fql import flow_loss, interpolate
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.nets.policies import VectorField
from astro_rl.training.fit import fit_chunk
from astro_rl.training.optimise import adamw, descend, init_optimiser

MOST_TRANSITIONS = 1_000_000
"""Evenly spread over larger datasets."""
CHUNK_STEPS = 500


@dataclass(frozen=True)
class ContinuationSettings:
    hidden: tuple[int, ...] = (256, 256)
    steps: int = 5_000
    batch_size: int = 256
    learning_rate: float = 1e-3
    flow_steps: int = 10

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size, self.flow_steps, *self.hidden) < 1 or self.learning_rate <= 0:
            raise ConfigError("Sizes of the imitated continuation must be positive.", found=self)


class PolicyData(NamedTuple):
    observations: Float[Array, "transitions obs"]
    """Normalised."""
    actions: Float[Array, "transitions act"]


class PolicyState(NamedTuple):
    network: VectorField
    optimiser: optax.OptState


@dataclass(frozen=True)
class Cloning:
    """The loss above, by AdamW."""

    settings: ContinuationSettings

    def init(self, key: Key[Array, ""], observation_dim: int, action_dim: int) -> PolicyState:
        network = VectorField.init(key, observation_dim, action_dim, self.settings.hidden)
        return PolicyState(network, init_optimiser(self._optimiser(), network))

    def update(
        self, state: PolicyState, data: PolicyData, key: Key[Array, ""]
    ) -> tuple[PolicyState, dict[str, Float[Array, ""]]]:
        row_key, noise_key, time_key = jax.random.split(key, 3)
        rows = jax.random.randint(row_key, (self.settings.batch_size,), 0, len(data.actions))
        observations, actions = data.observations[rows], data.actions[rows]
        source = jax.random.normal(noise_key, actions.shape)
        t = jax.random.uniform(time_key, (len(actions),))

        def loss(network: VectorField) -> Any:
            return flow_loss(network(observations, interpolate(source, actions, t), t), source, actions)

        gradients, info = jax.grad(loss, has_aux=True)(state.network)
        return PolicyState(*descend(self._optimiser(), state.network, state.optimiser, gradients)), info

    def _optimiser(self) -> optax.GradientTransformation:
        return adamw(self.settings.learning_rate, clip=1.0)


def fit_policy(
    dataset: Dataset, normaliser: Normaliser, settings: ContinuationSettings, *, seed: int = 0
) -> VectorField:
    """From all transitions."""
    rows = dataset.transition_rows()
    rows = rows[:: max(1, -(-len(rows) // MOST_TRANSITIONS))]
    observations = normaliser.normalise(np.asarray(dataset.observations[rows])).astype(np.float32)
    data = PolicyData(jnp.asarray(observations), jnp.asarray(dataset.actions[rows], jnp.float32))
    learner = Cloning(settings)
    init_key, fit_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 3))
    state = learner.init(init_key, dataset.observation_dim, dataset.action_dim)
    for start in range(0, settings.steps, CHUNK_STEPS):
        state, _ = fit_chunk(learner, state, data, fit_key, start, min(CHUNK_STEPS, settings.steps - start))
    return state.network


@runtime_checkable
class Rolls(Protocol):
    """What `dynamics.model.Dynamics` is."""

    @property
    def horizon(self) -> int: ...

    @property
    def action_dim(self) -> int: ...

    def rollout(
        self, network: Any, first: Array, actions: Array, key: Key[Array, ""], *, steps: int
    ) -> Float[Array, "batch horizon obs"]: ...


@runtime_checkable
class Acts(Protocol):
    """What `nets.policies.VectorField` is: noise and a state to an action."""

    def flow(self, observations: Array, noise: Array, steps: int) -> Float[Array, "batch act"]: ...


@dataclass(frozen=True, eq=False)
class Continuation:
    """`stitch.euclidean.Continue`: normalised states to those `steps` imitated steps later."""

    dynamics: Rolls
    dynamics_network: Any
    policy: Acts
    settings: ContinuationSettings
    steps: int

    def __call__(
        self, key: Key[Array, ""], first: Float[np.ndarray, "chains obs"]
    ) -> Float[np.ndarray, "chains obs"]:
        path = _continued(
            self.dynamics,
            self.steps,
            self.settings.flow_steps,
            self.dynamics_network,
            self.policy,
            key,
            jnp.asarray(first),
        )
        return np.asarray(path[:, self.steps])


@partial(jax.jit, static_argnums=(0, 1, 2))
def _continued(
    dynamics: Rolls,
    rounds: int,
    flow_steps: int,
    network: Any,
    policy: Acts,
    key: Key[Array, ""],
    first: Float[Array, "chains obs"],
) -> Float[Array, "chains horizon obs"]:
    way_key, roll_key = jax.random.split(key)
    way = jax.random.normal(way_key, (len(first), 1, dynamics.action_dim))
    shape = (len(first), dynamics.horizon, dynamics.action_dim)
    ways = jnp.broadcast_to(way, shape).reshape(-1, dynamics.action_dim)

    def one(states: Float[Array, "chains horizon obs"], _: None) -> tuple[Array, None]:
        actions = policy.flow(states.reshape(-1, first.shape[-1]), ways, flow_steps)
        actions = actions.reshape(shape).at[:, -1].set(0.0)
        # One denoising from pure noise is as near, as a whole, as several; only where it ends counts here.
        return dynamics.rollout(network, first, actions, roll_key, steps=1), None

    start = jnp.broadcast_to(first[:, None, :], (*shape[:2], first.shape[-1]))
    path, _ = jax.lax.scan(one, start, None, length=rounds)
    return path
