"""One task: an environment with one goal and one reward, and everything the paper fixes for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from astro_rl.tasks.layout import Layout
from astro_rl.tasks.states import NoState, StateMap

Suite = Literal["ogbench", "d4rl"]
SuccessTiming = Literal["pre", "post"]


@runtime_checkable
class Rewards(Protocol):
    """Reward and success of *observations*, so that generated states, which have no simulator behind them,
    can be scored.

    Called with (…, obs) arrays. `success` is whether the goal is met in that state. `reward` is the reward
    that a transition leaving (success timing `pre`) or entering (`post`) that state receives.
    """

    def success(self, observations: Float[np.ndarray, "*batch obs"]) -> Bool[np.ndarray, "*batch"]: ...

    def reward(self, observations: Float[np.ndarray, "*batch obs"]) -> Float[np.ndarray, "*batch"]: ...


@dataclass(frozen=True)
class PublishedScore:
    """One cell of the paper's table 1: a method's score with a learner, in percent."""

    learner: Literal["iql", "fql"]
    method: Literal["original", "astro", "diffstitch", "synther"]
    score: float


@dataclass(frozen=True)
class AblationScore:
    """One cell of the paper's table 2: FQL with one choice of the stitching replaced, in percent."""

    variant: Literal["original", "astro", "random", "pregenerated_euclidean", "model_based", "state_inverse"]
    score: float


@dataclass(frozen=True)
class Task:
    """A row of the task table. Environment quirks are fields here, never `if "antmaze" in name` elsewhere."""

    name: str
    """OGBench's own name with the dataset type, `antmaze-large-stitch-singletask-task1-v0`; D4RL's
    `antmaze-umaze-v2`."""
    suite: Suite
    dataset: str
    """The dataset's file stem: `antmaze-large-stitch-v0`."""
    env_id: str
    """What `astro_rl.envs.make_env` builds: a gymnasium id for OGBench, our own adapter's name for D4RL."""
    goal: int
    """Which of the environment's goals, counted from 1."""
    is_default_goal: bool
    """Whether the paper's tables (and OGBench's name without a suffix) mean this goal."""
    observation_dim: int
    action_dim: int
    max_episode_steps: int
    rewards: Rewards
    horizon: int
    """L, the length of a stitched sequence."""
    segment: int
    """l, states in a sub-trajectory."""
    mask: int
    """M, states in a MASK."""
    discount: float
    iql_alpha: float
    fql_alpha: float
    fql_settings: Mapping[str, object] = field(default_factory=dict)
    """What FQL's authors change for this task besides α and the discount, e.g. {"q_aggregation": "min"}."""
    fql_authors_alpha: float | None = None
    """FQL's authors' own α (on this environment's navigate or play data), None where they have none."""
    fql_authors_steps: int | None = None
    """Gradient steps FQL's authors train for, None where they have none."""
    chosen_by_us: tuple[str, ...] = ()
    """Fields the paper gives no value for; what stands in them is our choice, by analogy."""
    xy_indices: tuple[int, int] | None = None
    """Where an agent's x and y stand in the observation; None where a plane does not describe the task."""
    layout: Layout | None = None
    """What a valid observation looks like: unit quaternions, one-hot buttons, limits. None: nothing is
    known."""
    state: StateMap | NoState = field(default_factory=lambda: NoState("it has not been mapped"))
    """How the simulator's state follows from an observation, or why it does not."""
    success_timing: SuccessTiming = "pre"
    """Whether a transition is rewarded for the state it leaves (OGBench since 1.2.0) or enters (D4RL)."""
    draws_globally_in_step: bool = False
    """The environment draws from NumPy's global generator inside `step` (teleports), so seeding has to wrap
    it."""
    published: tuple[PublishedScore, ...] = ()
    """The paper's table 1. D4RL has averages only: `astro_rl.tasks.SUITE_AVERAGES`."""
    ablation: tuple[AblationScore, ...] = ()
    """The paper's table 2, on four tasks."""
