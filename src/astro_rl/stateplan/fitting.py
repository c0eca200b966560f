"""State planner and inverse dynamics fitted to one dataset, as a pair: what SI and DiffStitch are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from astro_rl.augment.fitting import Bar, Keeper, no_bar, run_updates
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import SequenceData, sequence_data, spread_of, steps_of
from astro_rl.nets.dit import DiT
from astro_rl.nets.mlp import MLP
from astro_rl.stateplan.complete import StateCompleter, StateSampling
from astro_rl.stateplan.inverse import InverseDynamics
from astro_rl.stateplan.masks import Masks
from astro_rl.stateplan.model import StatePlanner
from astro_rl.stateplan.settings import StatePlanSettings
from astro_rl.stitch.geometry import window_starts

STAGES = ("states", "inverse")


@dataclass(frozen=True, eq=False)
class StatePlan:
    """Both models with their weights."""

    planner: StatePlanner
    planner_network: DiT
    """The moving average of the weights."""
    inverse: InverseDynamics
    inverse_network: MLP

    def completer(
        self,
        sampling: StateSampling,
        dynamics: Dynamics | None = None,
        dynamics_network: DiT | None = None,
    ) -> StateCompleter:
        """With a dynamics model, δ is measured by it."""
        models = (self.planner, self.planner_network, self.inverse, self.inverse_network)
        return StateCompleter(*models, sampling, dynamics, dynamics_network)

    def networks(self) -> dict[str, Any]:
        """All weights, by the names under which they are saved."""
        return {"states": self.planner_network, "inverse": self.inverse_network}

    def description(self) -> dict[str, Any]:
        """What `restore_state_plan` needs besides weights, settings and masks."""
        return {
            "horizon": self.planner.horizon,
            "observation_dim": self.planner.observation_dim,
            "action_dim": self.inverse.action_dim,
            "spread": list(self.planner.spread),
            "scale": list(self.inverse.scale),
        }


def fit_state_plan(
    dataset: Dataset,
    normaliser: Normaliser,
    horizon: int,
    masks: Masks,
    settings: StatePlanSettings,
    key: Key[Array, ""],
    *,
    keeper: Keeper,
    bar: Bar = no_bar,
) -> StatePlan:
    """Both models, on trajectories that hold `horizon` states (the planner) and on all transitions (inverse dynamics).
    Their stages are called `states` and `inverse`."""
    sequences = sequence_data(dataset, normaliser, horizon)
    spread = spread_of(sequences, horizon)
    planner = settings.states.build(horizon, dataset.observation_dim, masks, spread)
    inverse = settings.inverse.build(dataset.observation_dim, dataset.action_dim, steps_of(sequences))
    state_key, inverse_key = jax.random.split(key)
    planned = fit_stage("states", planner, sequences, settings.states, state_key, keeper, bar)
    inverted = fit_stage(
        "inverse", inverse, transitions_of(sequences, dataset), settings.inverse, inverse_key, keeper, bar
    )
    return StatePlan(planner, planned.average, inverse, inverted.network)


def fit_stage(
    stage: str, model: Any, data: SequenceData, settings: Any, key: Key[Array, ""], keeper: Keeper, bar: Bar
) -> Any:
    """A model from its first weights to its last update."""
    init_key, fit_key = jax.random.split(key)
    state = model.init(init_key)
    return run_updates(stage, model, state, data, fit_key, settings.steps, settings.log_every, keeper, bar)


def transitions_of(data: SequenceData, dataset: Dataset) -> SequenceData:
    """The same rows, with a start wherever a transition leaves."""
    starts, _ = window_starts(dataset.offsets, 2)
    return data._replace(starts=jnp.asarray(starts, jnp.int32))


def restore_state_plan(
    saved: Mapping[str, Any],
    settings: StatePlanSettings,
    masks: Masks,
    weights: Callable[[str, Any], Any],
) -> StatePlan:
    """From `StatePlan.description`. `weights` gives a network by its name, in a template's structure."""
    planner = settings.states.build(saved["horizon"], saved["observation_dim"], masks, tuple(saved["spread"]))
    inverse = settings.inverse.build(saved["observation_dim"], saved["action_dim"], tuple(saved["scale"]))
    key = jax.random.key(0)
    return StatePlan(
        planner,
        weights("states", jax.eval_shape(lambda: planner.init(key)).average),
        inverse,
        weights("inverse", jax.eval_shape(lambda: inverse.init(key)).network),
    )
