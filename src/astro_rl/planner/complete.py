"""Algorithm 2: actions for masked sequences, corrected by δ at every step, then the states that they lead to.

δ(τ̃ᵃ_0^{(T+1)}) = 0;  for t = T … 1:  δ of the last plan by eq. (11), then τ̂ᵃ_{t−1} by eq. (9);  τˢ_aug by eq. (10)

Behind it two additions of ours: actions moved downhill on δ (`planner.refine`), and gaps polished with a one-step model
(`planner.polish`), where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from astro_rl.diffusion.sampling import Sampler, step_down
from astro_rl.diffusion.schedule import noised
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.onestep import OneStep
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT
from astro_rl.nets.mlp import MLP
from astro_rl.planner.feedback import Deviation
from astro_rl.planner.model import Planner
from astro_rl.planner.polish import bridged, polished
from astro_rl.planner.refine import refined


class Completed(NamedTuple):
    """Sequences in normalised units, as NumPy arrays."""

    states: Float[np.ndarray, "batch horizon obs"]
    actions: Float[np.ndarray, "batch horizon act"]
    """Within [−1, 1]. The last action leads out of the sequence and is 0."""
    deviation: Float[np.ndarray, "batch"]
    """δ of the final states: their mean squared distance from the known ones."""
    miss: Float[np.ndarray, "batch"] | None = None
    """Where gaps were polished, `polish.Polished.miss`."""


@dataclass(frozen=True)
class Sampling:
    """How sequences are drawn from the trained models. All of it can be changed without training again."""

    plan_steps: int = 2
    """T of the planner. More cost more and plan worse actions, with feedback and without (docs/results/astro.md)."""
    state_steps: int = 5
    """T of the dynamics model's rollout. 1 is as near as a whole and twice as far off from step to step."""
    sampler: Sampler = "ddim"
    candidates: int = 1
    """Plans tried a sequence; the one with the least δ is kept."""
    refine: int = 10
    """Steps downhill on δ behind the last denoising (`planner.refine`); 0 leaves the plan as algorithm 2 ends it."""
    refine_rate: float = 0.05
    """Root mean square length of the first of them, in units of the action; they shrink to nothing."""

    polish: int = 60
    """Moves of states and actions together until each step of a gap follows from the last (`planner.polish`); 0: none.
    Known states are held, so that `rollout` mode, which has none, knows no polish."""
    polish_rate: float = 0.1
    """Length of the first of them, in typical steps of a state and in units of an action; they shrink to nothing."""
    polish_hold: float = 0.01
    """κ: what an action costs that is one unit from the planned one, in squared typical steps."""

    def __post_init__(self) -> None:
        if self.polish < 0 or not 0 < self.polish_rate <= 1 or self.polish_hold < 0:
            raise ConfigError(
                "Polishing takes 0 moves or more, each of a length in (0, 1], and holds actions by 0 or more.",
                field="polish, polish_rate, polish_hold",
                found=f"{self.polish}, {self.polish_rate}, {self.polish_hold}",
            )
        if self.refine < 0 or not 0 < self.refine_rate <= 1:
            raise ConfigError(
                "Refinement takes 0 steps or more, each of a length in (0, 1].",
                field="refine, refine_rate",
                found=f"{self.refine}, {self.refine_rate}",
            )
        for name in ("plan_steps", "state_steps", "candidates"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    "Sampling needs at least one.", field=name, found=getattr(self, name), expected=">= 1"
                )


@dataclass(frozen=True, eq=False)
class Completer:
    """Trained models, ready to complete sequences. Compiles once for each batch size."""

    planner: Planner
    planner_network: DiT
    dynamics_network: DiT
    sampling: Sampling = Sampling(polish=0)
    onestep: OneStep | None = None
    onestep_network: MLP | None = None

    def __post_init__(self) -> None:
        if self.sampling.polish and self.onestep is None:
            raise ConfigError(
                "Gaps are polished with a one-step model, and this fit has none.",
                field="sampling.polish",
                found=self.sampling.polish,
                expected="0",
                fix="set it to 0, or fit again with generate.sampling.polish above 0 and generate.mode=anchored",
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
        given, shown = jnp.asarray(states, jnp.float32), jnp.asarray(known)
        networks = self.planner_network, self.dynamics_network
        done = _complete(self.planner, self.sampling, *networks, key, given, shown)
        if self.sampling.polish and self.onestep is not None and self.onestep_network is not None:
            # What lies behind the last MASK is known and stays: nothing has to be computed for it.
            masked = np.flatnonzero((~np.asarray(known)).any(axis=0))
            span = min(int(masked.max(initial=0)) + 2, self.horizon)
            done = _polish(
                self.onestep, self.sampling, span, self.onestep_network, given, shown, done[0], done[1]
            )
        return Completed(*(np.asarray(part) for part in done))


@partial(jax.jit, static_argnums=(0, 1))
def _complete(
    planner: Planner,
    sampling: Sampling,
    planner_network: DiT,
    dynamics_network: DiT,
    key: Key[Array, ""],
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
) -> tuple[Array, Array, Array]:
    states = jnp.where(known[..., None], states, 0.0)

    def attempt(own: Key[Array, ""]) -> tuple[Array, Array, Array]:
        plan_key, roll_key = jax.random.split(own)
        actions = plan(planner, sampling, planner_network, dynamics_network, plan_key, states, known)
        rolled = roll(planner.dynamics, sampling, dynamics_network, roll_key, states[:, 0], actions)
        return rolled, actions, known_error(rolled, states, known)

    if sampling.candidates == 1:
        return attempt(key)
    tries = jax.lax.map(attempt, jax.random.split(key, sampling.candidates))
    best = jnp.argmin(tries[2], axis=0)
    rows = jnp.arange(len(states))
    return tries[0][best, rows], tries[1][best, rows], tries[2][best, rows]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _polish(
    onestep: OneStep,
    sampling: Sampling,
    span: int,
    network: MLP,
    given: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
    rolled: Float[Array, "batch horizon obs"],
    actions: Float[Array, "batch horizon act"],
) -> tuple[Array, Array, Array, Array]:
    """The first `span` states polished, from where the dynamics model saw the actions lead; the others as they are."""
    start = bridged(given, known, rolled)
    done = polished(
        onestep,
        network,
        start[:, :span],
        known[:, :span],
        actions[:, :span],
        steps=sampling.polish,
        rate=sampling.polish_rate,
        hold=sampling.polish_hold,
    )
    states = start.at[:, :span].set(done.states)
    tried = actions.at[:, :span].set(done.actions)
    return states, tried, known_error(states, jnp.where(known[..., None], given, 0.0), known), done.miss


def plan(
    planner: Planner,
    sampling: Sampling,
    planner_network: DiT,
    dynamics_network: DiT,
    key: Key[Array, ""],
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
) -> Float[Array, "batch horizon act"]:
    """τᵃ_aug, within [−1, 1]."""
    batch, dynamics, feedback = len(states), planner.dynamics, planner.feedback
    levels = planner.schedule.levels(sampling.plan_steps)
    start_key, state_key, walk_key = jax.random.split(key, 3)
    noise = jax.random.normal(start_key, (batch, planner.horizon, planner.action_dim))
    state_noise = jax.random.normal(state_key, states.shape)
    nothing = Deviation(jnp.zeros(batch), jnp.zeros_like(states), jnp.zeros_like(states))
    watched = feedback.kind != "none"

    def one(
        carry: tuple[Array, Deviation, Array], step: Array
    ) -> tuple[tuple[Array, Deviation, Array], None]:
        noisy, deviation, present = carry
        level, below = jnp.full(batch, levels[step]), jnp.full(batch, levels[step - 1])
        clean = planner.clean(planner_network, noisy, states, known, level, deviation, present)
        clean = jnp.clip(clean, -1.0, 1.0)
        if watched:
            # The first time there is no estimate of the states to noise, only noise itself.
            state_level = jnp.where(present > 0, feedback.level_at(level), 1.0)
            tried = noised(dynamics.schedule, deviation.rolled, state_level, state_noise)
            deviation = feedback.measure(dynamics, dynamics_network, states, known, clean, tried, state_level)
        own = jax.random.fold_in(walk_key, step)
        noisy = step_down(planner.schedule, sampling.sampler, noisy, clean, level, below, own)
        return (noisy, deviation, jnp.ones_like(present)), None

    (actions, _, _), _ = jax.lax.scan(
        one, (noise, nothing, jnp.zeros(batch)), jnp.arange(sampling.plan_steps, 0, -1)
    )
    actions = jnp.clip(actions, -1.0, 1.0)
    if sampling.refine:
        actions = refined(
            dynamics,
            dynamics_network,
            actions,
            states,
            known,
            state_noise,
            steps=sampling.refine,
            rate=sampling.refine_rate,
        )
    return actions.at[:, -1].set(0.0)


def roll(
    dynamics: Dynamics,
    sampling: Sampling,
    network: DiT,
    key: Key[Array, ""],
    first: Float[Array, "batch obs"],
    actions: Float[Array, "batch horizon act"],
) -> Float[Array, "batch horizon obs"]:
    """τˢ_aug: where the dynamics model says that the actions lead."""
    return dynamics.rollout(
        network, first, actions, key, steps=sampling.state_steps, sampler=sampling.sampler
    )


def known_error(
    rolled: Float[Array, "batch horizon obs"],
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
) -> Float[Array, "batch"]:
    """Mean squared distance from the known states, the given first one left out."""
    counted = known.at[:, 0].set(False)
    missed = jnp.where(counted[..., None], jnp.square(rolled - states), 0.0).sum(axis=(1, 2))
    return missed / (jnp.maximum(counted.sum(axis=1), 1) * states.shape[-1])
