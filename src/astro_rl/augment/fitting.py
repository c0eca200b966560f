"""From a dataset to everything that augmentation needs, stage by stage.

    temporal ψ  →  latents of all rows  →  n, l, M, the data's pace  →  θ_dyn  →  θ_π  →  f  →  limits of real windows

Each stage is scanned in chunks. A `Keeper` is told of every chunk and may bring a stage back that was interrupted;
every draw depends on the seed and the step alone, so that what it brings back ends in the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from astro_rl.augment.check import measure_limits
from astro_rl.augment.fittable import check_fittable, checked_normaliser
from astro_rl.augment.lineage import source_digest
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, Stage
from astro_rl.augment.shares import held_out_split, training_part
from astro_rl.augment.sharing import GIVEN, Lender
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.dynamics.onestep import OneStep
from astro_rl.dynamics.sequences import SequenceData, sequence_data, spread_of, steps_of
from astro_rl.errors import TrainingError
from astro_rl.nets.mlp import MLP
from astro_rl.planner.complete import Completer
from astro_rl.planner.model import PlannerData
from astro_rl.stitch.auto import AutoShape, choose_shape, model_states, typical_states
from astro_rl.stitch.gauge import Gauge, fit_gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.task import Task
from astro_rl.temporal.model import TemporalModel, temporal_data
from astro_rl.training.fit import Fittable, fit_chunk

Report = Callable[[int, int], None]
Bar = Callable[[str, int, str], AbstractContextManager[Report]]
"""Makes a progress bar: (description, total, unit)."""


@runtime_checkable
class Keeper(Protocol):
    """What remembers a fit on the way."""

    def restore(self, stage: str, template: Any) -> tuple[int, Any]:
        """Where the stage was left, and its state; (0, None) if it has not begun."""
        ...

    def keep(self, stage: str, step: int, state: Any, metrics: Mapping[str, float], *, last: bool) -> None:
        """A chunk is done."""
        ...

    def latents(self) -> Path | None:
        """Where the table of latents goes; None keeps it in memory."""
        ...


class Forgetful:
    """A fit in one go, in memory."""

    def restore(self, stage: str, template: Any) -> tuple[int, Any]:
        return 0, None

    def keep(self, stage: str, step: int, state: Any, metrics: Mapping[str, float], *, last: bool) -> None:
        return None

    def latents(self) -> Path | None:
        return None


def no_bar(description: str, total: int, unit: str) -> AbstractContextManager[Report]:
    return nullcontext(lambda done, total: None)


def fit(
    dataset: Dataset,
    settings: AstroSettings,
    *,
    shape: ChainShape | None = None,
    task: Task | None = None,
    seed: int = 0,
    base: FittedModels | None = None,
    any_seed: Collection[Stage] = (),
    keeper: Keeper | None = None,
    bar: Bar = no_bar,
) -> FittedModels:
    """All stages. `shape` None: chosen from the data (`stitch.auto`).

    What `base`, another fit, would give unchanged is taken from it (`augment.sharing`); the keeper does not hear of
    it. `any_seed`: stages that are taken though the base has another seed.
    """
    keeper = keeper or Forgetful()
    normaliser = checked_normaliser(dataset)
    patch = check_fittable(dataset, settings, shape, task)
    mode, distinct = settings.generate.mode, settings.generate.search.distinct
    source = source_digest(dataset)
    lender = Lender(base, source, settings, seed, any_seed)
    models_key = jax.random.key(seed)
    of_diffusion = zip(("temporal", "dynamics", "planner"), jax.random.split(models_key, 3), strict=True)
    keys: dict[str, jax.Array] = {**dict(of_diffusion), "onestep": jax.random.fold_in(models_key, 3)}
    discount = settings.temporal.discount or discount_for(dataset)
    taken = lender.temporal(discount)
    temporal = taken or fit_temporal(dataset, normaliser, settings, discount, keys["temporal"], keeper, bar)

    @cache
    def latents() -> np.ndarray:
        with bar("encoding", dataset.n_rows, "rows") as report:
            return temporal.encode(dataset.observations, out=keeper.latents(), progress=report)

    if keeper.latents() is not None and taken is None:
        latents()  # augmentation will read them; the base's serve whoever took its ψ
    chosen = (
        AutoShape(shape, GIVEN)
        if shape is not None
        else lender.shape(temporal)
        or choose_shape(
            latents(),
            dataset.offsets,
            temporal.discount,
            patch=patch,
            completion=mode,
            distinct=distinct,
            seed=seed,
        )
    )
    gauge = lender.gauge(temporal, chosen.shape) or gauge_of(
        latents, dataset, chosen.shape, temporal.discount, settings, seed
    )
    horizon = model_states(chosen.shape, patch, mode)
    training, held_out = held_out_split(dataset, settings.held_out, horizon)

    @cache
    def sequences() -> SequenceData:
        return sequence_data(training_part(dataset, training, settings.training_rows), normaliser, horizon)

    lent = lender.dynamics(horizon)
    if lent is not None:
        dynamics, dynamics_network = lent
    else:
        dynamics = settings.dynamics.build(
            horizon, dataset.observation_dim, dataset.action_dim, spread_of(sequences(), horizon)
        )
        fitted = run_stage("dynamics", dynamics, sequences(), settings, keys["dynamics"], keeper, bar)
        dynamics_network = fitted.average
    phase = chosen.shape.segment - 1 if mode == "anchored" else 0
    planner = settings.planner.build(dynamics, chosen.shape, phase)
    planner_network = lender.planner(dynamics_network, chosen.shape, phase)
    if planner_network is None:
        data = PlannerData(sequences(), dynamics_network)
        planner_network = run_stage("planner", planner, data, settings, keys["planner"], keeper, bar).average
    onestep, onestep_network = None, None
    if settings.generate.completion.polish:
        lent = lender.onestep(horizon)
        onestep, onestep_network = lent or fit_onestep(
            training_part(dataset, training, settings.training_rows),
            normaliser,
            settings,
            keys["onestep"],
            keeper,
            bar,
        )
    xy = None if task is None else task.xy_indices
    limits = lender.limits(planner_network, onestep_network, chosen.shape, xy is not None)
    if limits is None:
        with bar("measuring real windows", settings.generate.limit_windows, "windows") as report:
            limits = measure_limits(
                Completer(
                    planner,
                    planner_network,
                    dynamics_network,
                    settings.generate.completion,
                    onestep,
                    onestep_network,
                ),
                dataset,
                normaliser,
                chosen.shape,
                mode,
                windows=settings.generate.limit_windows,
                batch=settings.generate.completion_batch,
                seed=seed,
                xy=xy,
                trajectories=held_out,
                progress=report,
            )
    return FittedModels(
        source_digest=source,
        shape=chosen.shape,
        normaliser=normaliser,
        temporal=temporal,
        gauge=gauge,
        dynamics=dynamics,
        dynamics_network=dynamics_network,
        planner=planner,
        planner_network=planner_network,
        limits=limits,
        settings=settings,
        seed=seed,
        why=chosen.why,
        seeds=lender.seeds(),
        onestep=onestep,
        onestep_network=onestep_network,
    )


def fit_temporal(
    dataset: Dataset,
    normaliser: Normaliser,
    settings: AstroSettings,
    discount: float,
    key: jax.Array,
    keeper: Keeper,
    bar: Bar,
) -> TemporalModel:
    """ψ, on all trajectories: distances are read off the whole dataset, and no limit is measured with them."""
    learner = settings.temporal.build(discount)
    part = training_part(dataset, np.arange(len(dataset)), settings.training_rows)
    state = run_stage("temporal", learner, temporal_data(part, normaliser), settings, key, keeper, bar)
    return TemporalModel(learner, state.encoder, normaliser)


def fit_onestep(
    part: Dataset,
    normaliser: Normaliser,
    settings: AstroSettings,
    key: jax.Array,
    keeper: Keeper,
    bar: Bar,
) -> tuple[OneStep, MLP]:
    """f, on the transitions of the trajectories that the diffusion models learn from."""
    transitions = sequence_data(part, normaliser, 2)
    model = settings.onestep.build(part.observation_dim, part.action_dim, steps_of(transitions))
    return model, run_stage("onestep", model, transitions, settings, key, keeper, bar).network


def discount_for(dataset: Dataset) -> float:
    """γ with a horizon 1/(1 − γ) of half a typical trajectory: shorter, and far states look alike; longer, and near
    ones do. 0.99 for OGBench's 201 states, which is what HILP takes."""
    return float(np.clip(1 - 2 / typical_states(dataset.offsets), 0.99, 0.998))


def gauge_of(
    latents: Callable[[], np.ndarray],
    dataset: Dataset,
    shape: ChainShape,
    discount: float,
    settings: AstroSettings,
    seed: int,
) -> Gauge:
    """The paper's raw distance, or steps at the pace of the data's own pieces and gaps."""
    if settings.calibration == "literal":
        return Gauge(discount, literal=True)
    near, far = shape.segment - 1, shape.period
    return fit_gauge(latents(), dataset.offsets, near, far, discount, np.random.default_rng([seed, 1]))


def run_stage(
    stage: Stage, model: Any, data: Any, settings: AstroSettings, key: jax.Array, keeper: Keeper, bar: Bar
) -> Any:
    """One model's updates, from where the keeper has it."""
    own = getattr(settings, stage)
    init_key, fit_key = jax.random.split(key)
    state = model.init(init_key, data.observations.shape[1]) if stage == "temporal" else model.init(init_key)
    return run_updates(stage, model, state, data, fit_key, own.steps, own.log_every, keeper, bar)


def run_updates(
    stage: str,
    model: Fittable[Any, Any],
    state: Any,
    data: Any,
    key: jax.Array,
    steps: int,
    log_every: int,
    keeper: Keeper,
    bar: Bar,
) -> Any:
    """`steps` updates from a fresh `state`, or from where the keeper has it, in compiled chunks of `log_every`."""
    step, restored = keeper.restore(stage, state)
    state = state if restored is None else restored
    with bar(f"fitting {stage}", steps, "updates") as report:
        report(step, steps)
        while step < steps:
            count = min(log_every - step % log_every, steps - step)
            state, info = fit_chunk(model, state, data, key, step, count)
            step += count
            metrics = {name: float(value) for name, value in info.items()}
            require_finite(stage, metrics, step)
            keeper.keep(stage, step, state, metrics, last=step == steps)
            report(step, steps)
    return state


def require_finite(stage: str, metrics: Mapping[str, float], step: int) -> None:
    for name, value in metrics.items():
        if not np.isfinite(value):
            raise TrainingError(
                f"Fitting the {stage} model diverged: a quantity is no longer finite.",
                field=name,
                found=f"{value} in the updates up to step {step}",
                fix=f"lower {stage}.learning_rate, or look for observations of huge scale (astro-rl data inspect)",
            )
