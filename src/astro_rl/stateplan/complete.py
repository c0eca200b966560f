"""State planner and inverse dynamics as one completer: "SI" of the paper's tables 2 and 4.

States come from the planner, which knows no actions; actions from neighbouring states, by a model that knows no
sequence. Nothing makes them agree: driven by these actions, the world need not pass through these states. δ says by how
much, where a dynamics model is there to ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from astro_rl.diffusion.sampling import Sampler
from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT
from astro_rl.nets.mlp import MLP
from astro_rl.planner.complete import Completed, known_error
from astro_rl.stateplan.inverse import InverseDynamics
from astro_rl.stateplan.model import StatePlanner


@dataclass(frozen=True)
class StateSampling:
    """How sequences are drawn from the trained planner. All of it can be changed without training again."""

    steps: int = 10
    """T."""
    sampler: Sampler = "ddim"
    judge_steps: int = 5
    """T of the dynamics model's rollout behind δ."""

    def __post_init__(self) -> None:
        for name in ("steps", "judge_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    "Sampling needs at least one.", field=name, found=getattr(self, name), expected=">= 1"
                )


@dataclass(frozen=True, eq=False)
class StateCompleter:
    """`augment.jobs.Completes` by states first. Compiles once for each batch size.

    Known states are handed back as given, to the bit, so their distance from the given ones says nothing. δ is
    therefore measured where SI's two models can disagree: the mean squared error, over known states but the first, of
    the states that a dynamics model says the *actions* lead to from s₀. It is the same quantity as ASTRO's δ, eq. (11).
    Without a dynamics model there is none to ask, and δ is 0.
    """

    planner: StatePlanner
    planner_network: DiT
    inverse: InverseDynamics
    inverse_network: MLP
    sampling: StateSampling = StateSampling()
    dynamics: Dynamics | None = None
    dynamics_network: DiT | None = None

    def __post_init__(self) -> None:
        if (self.dynamics is None) != (self.dynamics_network is None):
            raise ConfigError(
                "A dynamics model is its record and its weights.", field="dynamics, dynamics_network"
            )
        if self.dynamics is not None and self.dynamics.horizon != self.planner.horizon:
            raise ConfigError(
                "State planner and dynamics model work on sequences of one length.",
                field="horizon",
                found=f"{self.planner.horizon} and {self.dynamics.horizon}",
            )

    @property
    def horizon(self) -> int:
        return self.planner.horizon

    def complete(
        self,
        key: Key[Array, ""],
        states: Float[np.ndarray, "batch horizon obs"],
        known: Bool[np.ndarray, "batch horizon"],
    ) -> Completed:
        """States are normalised; what they hold where `known` is false is not looked at."""
        if not np.asarray(known)[:, 0].all():
            raise ConfigError("The first state of every sequence must be known.", field="known")
        done = _complete(
            (self.planner, self.inverse, self.dynamics, self.sampling),
            (self.planner_network, self.inverse_network, self.dynamics_network),
            key,
            jnp.asarray(states, jnp.float32),
            jnp.asarray(known),
        )
        return Completed(*(np.asarray(part) for part in done))


Models = tuple[StatePlanner, InverseDynamics, Dynamics | None, StateSampling]
Networks = tuple[DiT, MLP, DiT | None]


@partial(jax.jit, static_argnums=0)
def _complete(
    models: Models,
    networks: Networks,
    key: Key[Array, ""],
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
) -> tuple[Array, Array, Array]:
    planner, inverse, dynamics, sampling = models
    fill_key, roll_key = jax.random.split(key)
    states = jnp.where(known[..., None], states, 0.0)
    filled = planner.fill(
        networks[0], states, known, fill_key, steps=sampling.steps, sampler=sampling.sampler
    )
    actions = inverse.along(networks[1], filled)
    if dynamics is None or networks[2] is None:
        return filled, actions, jnp.zeros(len(states))
    rolled = dynamics.rollout(
        networks[2], states[:, 0], actions, roll_key, steps=sampling.judge_steps, sampler=sampling.sampler
    )
    return filled, actions, known_error(rolled, states, known)
