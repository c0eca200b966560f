"""What ASTRO's fitted models say: the dynamics model's own error on generated data, completion errors on recordings.

    error of a transition = root mean square over numbers of ((ŝ_{t+1} − ŝ_t) − (s_{t+1} − s_t)) / σ

with ŝ rolled out from a window's first state under the window's actions, and σ each number's typical change. As with
the ensemble, the limit is the 0.99 quantile of one half of held-out windows and the other half is counted. The states
of ASTRO's own data came out of this very model, so that it approves of them by construction: the figure judges data of
others, and junctions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from astro_rl.augment.generate import completer_of
from astro_rl.augment.models import FittedModels
from astro_rl.data.schema import Dataset
from astro_rl.dynamics.metrics import rolled_windows
from astro_rl.dynamics.sequences import SequenceData, sequence_data
from astro_rl.planner.metrics import CompletionError, completion_error
from astro_rl.quality.ensemble import QUANTILE

BATCH = 32


@dataclass(frozen=True)
class TransitionErrors:
    """One sort of windows."""

    windows: int
    transitions: int
    median: float
    above: float
    """Share above the limit."""


@dataclass(frozen=True)
class ModelError:
    """The dynamics model's opinion. `generated` is None where no window holds a generated transition."""

    horizon: int
    limit: float
    generated: TransitionErrors | None
    real: TransitionErrors

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def model_error(
    models: FittedModels, augmented: Dataset, held_out: Dataset, *, sequences: int = 100, seed: int = 0
) -> ModelError:
    """Windows of the models' horizon; `augmented` as `parts.marked` gives it, its windows drawn at random."""
    horizon = models.dynamics.horizon
    recorded = sequence_data(held_out, models.normaliser, horizon)
    # In the units of recordings, whichever data is judged.
    sigma = np.asarray(recorded.step_scale, np.float64)
    errors, _ = _errors(models, recorded, np.ones(held_out.n_rows, bool), sigma, 2 * sequences, seed)
    setting, counting = errors[::2], errors[1::2]
    limit = float(np.quantile(setting, QUANTILE))
    made = np.asarray(augmented.extras["source_step"]) < 0
    touched = made.copy()
    touched[:-1] |= made[1:]
    generated = sequence_data(augmented, models.normaliser, horizon)
    found, counts = _errors(models, generated, touched, sigma, sequences, seed)
    return ModelError(
        horizon,
        limit,
        _told(found, counts, limit) if counts.any() else None,
        _told(counting, np.ones(counting.shape, bool), limit),
    )


def completion(
    models: FittedModels, held_out: Dataset, *, sequences: int = 100, seed: int = 0
) -> CompletionError:
    """τᵃ, τˢ and τˢ_m MSE of table 4, in the sampling that augmentation uses."""
    completer = completer_of(models, models.settings.generate)
    return completion_error(
        completer, held_out, models.normaliser, sequences=sequences, batch=min(BATCH, sequences), seed=seed
    )


def _errors(
    models: FittedModels,
    data: SequenceData,
    counts: Bool[np.ndarray, "rows"],
    sigma: Float[np.ndarray, "obs"],
    sequences: int,
    seed: int,
) -> tuple[Float[np.ndarray, "windows steps"], Bool[np.ndarray, "windows steps"]]:
    """Of every transition of the windows, and whether the row that it leaves counts."""
    sampling, horizon = models.settings.generate.sampling, models.dynamics.horizon
    predicted, real, first = rolled_windows(
        models.dynamics,
        models.dynamics_network,
        data,
        sequences=sequences,
        batch=BATCH,
        sampling_steps=sampling.state_steps,
        sampler=sampling.sampler,
        seed=seed,
    )
    moving = (models.normaliser.spread > 0) & (sigma > 0)
    missed = np.diff(predicted.astype(np.float64) - real, axis=1)[..., moving] / sigma[moving]
    return np.sqrt(np.square(missed).mean(axis=-1)), counts[first[:, None] + np.arange(horizon - 1)]


def _told(errors: np.ndarray, counts: np.ndarray, limit: float) -> TransitionErrors:
    counted = errors[counts]
    return TransitionErrors(
        len(errors), len(counted), float(np.median(counted)), float((counted > limit).mean())
    )
