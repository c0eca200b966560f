"""Generated transitions without a simulator: what several small models, learned from recordings alone, make of them.

    L_i     = E ‖ f_i(s, a) − (s' − s)/σ ‖²        for member i, over its own draws of recorded transitions
    error   = root mean square over numbers of mean_i f_i(s, a) − (s' − s)/σ
    spread  = root mean square over numbers of std_i f_i(s, a)

σ is each number's typical change in a step. Neither figure means anything by itself. So both are calibrated: limits are
the 0.99 quantiles of one half of the held-out recordings, and the other half is counted beside generated data. So are
the same recordings with each other's actions: the share of those above the limit says how well the judge sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.nets.mlp import MLP
from astro_rl.quality.neighbours import Units
from astro_rl.quality.parts import RealParts, drawn, generated_transitions
from astro_rl.training.fit import fit_chunk
from astro_rl.training.optimise import adamw, descend, init_optimiser

QUANTILE = 0.99
CHUNK_STEPS = 500
AT_ONCE = 1 << 12
LEAST_HELD_OUT = 20

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EnsembleSettings:
    members: int = 5
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 4_000
    batch_size: int = 256
    learning_rate: float = 1e-3
    most_transitions: int = 200_000
    """Drawn from larger datasets."""

    def __post_init__(self) -> None:
        sizes = (self.steps, self.batch_size, self.most_transitions, *self.hidden)
        if min(sizes) < 1 or self.learning_rate <= 0:
            raise ConfigError("Sizes of the ensemble must be positive.", found=self)
        if self.members < 2:
            raise ConfigError(
                "One model alone cannot disagree.", field="members", found=self.members, expected=">= 2"
            )


class Transitions(NamedTuple):
    """(s, a), scaled, and (s' − s)/σ."""

    inputs: Float[Array, "transitions features"]
    changes: Float[Array, "transitions numbers"]


class EnsembleState(NamedTuple):
    members: MLP
    """Weights carry a leading member axis."""
    optimiser: optax.OptState


@dataclass(frozen=True)
class EnsembleLearner:
    """The hyperparameters, and the loss."""

    settings: EnsembleSettings

    def init(self, key: Key[Array, ""], features: int, numbers: int) -> EnsembleState:
        def one(own: Key[Array, ""]) -> MLP:
            return MLP.init(own, features, self.settings.hidden, numbers, layer_norm=True)

        members = jax.vmap(one)(jax.random.split(key, self.settings.members))
        return EnsembleState(members, init_optimiser(self._optimiser(), members))

    def update(
        self, state: EnsembleState, data: Transitions, key: Key[Array, ""]
    ) -> tuple[EnsembleState, dict[str, Float[Array, ""]]]:
        shape = (self.settings.members, self.settings.batch_size)
        rows = jax.random.randint(key, shape, 0, len(data.inputs))
        gradients, info = jax.grad(self.loss, has_aux=True)(
            state.members, data.inputs[rows], data.changes[rows]
        )
        return EnsembleState(*descend(self._optimiser(), state.members, state.optimiser, gradients)), info

    def loss(
        self,
        members: MLP,
        inputs: Float[Array, "members batch features"],
        changes: Float[Array, "members batch numbers"],
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The sum of all L_i, each over its own batch: members share nothing."""
        answers = jax.vmap(lambda member, own: member(own))(members, inputs)
        each = jnp.square(answers - changes).mean(axis=(1, 2))
        return each.sum(), {"mse": each.mean()}

    def _optimiser(self) -> optax.GradientTransformation:
        steps = self.settings.steps
        return adamw(self.settings.learning_rate, cooldown=(steps // 2, steps), clip=10.0)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Fitted members, and the units they were fitted in."""

    members: MLP
    units: Units

    def judge(
        self, dataset: Dataset, rows: Int[np.ndarray, "rows"], actions: Float[np.ndarray, "rows act"]
    ) -> tuple[Float[np.ndarray, "rows"], Float[np.ndarray, "rows"]]:
        """(error, spread) of the transitions that leave the rows, had these actions been taken."""
        inputs, changes = features(self.units, dataset, rows, actions), self.units.changes(dataset, rows)
        error, spread = np.empty((2, len(rows)))
        for start in range(0, len(rows), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            padded = np.zeros((AT_ONCE, inputs.shape[1]), np.float32)
            padded[: len(inputs[part])] = inputs[part]
            answers = np.asarray(_answers(self.members, padded), np.float64)[:, : len(inputs[part])]
            error[part] = np.sqrt(np.square(answers.mean(axis=0) - changes[part]).mean(axis=1))
            spread[part] = np.sqrt(answers.var(axis=0).mean(axis=1))
        return error, spread


_answers = jax.jit(lambda members, inputs: jax.vmap(lambda member: member(inputs))(members))


def features(
    units: Units, dataset: Dataset, rows: Int[np.ndarray, "rows"], actions: Float[np.ndarray, "rows act"]
) -> Float[np.ndarray, "rows features"]:
    """(s, a) in their units."""
    parts = units.states(dataset, rows), units.actions(actions)
    return np.concatenate(parts, axis=1).astype(np.float32)


def fit_ensemble(
    real: Dataset,
    units: Units,
    settings: EnsembleSettings | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ensemble:
    """On all transitions of `real`, or an even share of them."""
    settings = settings or EnsembleSettings()
    rows = real.transition_rows()
    rows = rows[:: max(1, -(-len(rows) // settings.most_transitions))]
    changes = units.changes(real, rows)
    if not changes.shape[1]:
        raise DataError("Nothing in the observations ever changes, so there are no dynamics to learn.")
    data = Transitions(
        jnp.asarray(features(units, real, rows, np.asarray(real.actions[rows]))),
        jnp.asarray(changes, jnp.float32),
    )
    learner = EnsembleLearner(settings)
    init_key, fit_key = jax.random.split(jax.random.key(seed))
    state: Any = learner.init(init_key, data.inputs.shape[1], data.changes.shape[1])
    for start in range(0, settings.steps, CHUNK_STEPS):
        count = min(CHUNK_STEPS, settings.steps - start)
        state, _ = fit_chunk(learner, state, data, fit_key, start, count)
        if progress is not None:
            progress(start + count, settings.steps)
    return Ensemble(state.members, units)


@dataclass(frozen=True)
class Judged:
    """One sort of transitions. Medians are in typical steps."""

    rows: int
    error: float
    """Median."""
    spread: float
    error_above: float
    """Share above the limit."""
    spread_above: float


@dataclass(frozen=True)
class EnsembleReport:
    """The ensemble's opinion of generated transitions, and of recorded ones that nothing was fitted or set on."""

    error_limit: float
    spread_limit: float
    generated: Judged | None
    real: Judged
    other_actions: Judged
    """The same recordings with each other's actions: what a useful judge refuses."""
    settings: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ensemble_report(
    augmented: Dataset,
    real: RealParts,
    settings: EnsembleSettings | None = None,
    *,
    rows: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> EnsembleReport:
    """`augmented` as `parts.marked` gives it. Up to `rows` transitions of each sort are judged."""
    settings = settings or EnsembleSettings()
    held_out = real.held_out
    recorded = held_out.transition_rows()
    if len(recorded) < LEAST_HELD_OUT:
        raise DataError(
            "Too few held-out transitions to say what is usual.",
            found=len(recorded),
            expected=f">= {LEAST_HELD_OUT}",
        )
    ensemble = fit_ensemble(real.rest, Units.of(real.rest), settings, seed=seed, progress=progress)
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(drawn(recorded, 2 * rows, generator))
    setting, counting = np.sort(chosen[::2]), np.sort(chosen[1::2])
    error, spread = ensemble.judge(held_out, setting, held_out.actions[setting])
    limits = float(np.quantile(error, QUANTILE)), float(np.quantile(spread, QUANTILE))

    def judged(dataset: Dataset, rows: np.ndarray, actions: np.ndarray) -> Judged:
        error, spread = ensemble.judge(dataset, rows, actions)
        return Judged(
            len(rows),
            float(np.median(error)),
            float(np.median(spread)),
            float((error > limits[0]).mean()),
            float((spread > limits[1]).mean()),
        )

    others = held_out.actions[np.roll(counting[generator.permutation(len(counting))], 1)]
    made = drawn(generated_transitions(augmented), rows, generator)
    return EnsembleReport(
        *limits,
        generated=judged(augmented, made, augmented.actions[made]) if len(made) else None,
        real=judged(held_out, counting, held_out.actions[counting]),
        other_actions=judged(held_out, counting, others),
        settings=asdict(settings),
    )
