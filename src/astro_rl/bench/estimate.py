"""What a matrix takes, before any of it is done: arithmetic counted, this machine's speed measured on a few updates.

A model's updates are counted (`flops`) at their full size and timed at a batch that takes seconds; what a full one
takes is the ratio. Data, simulators and searches are small beside them and taken from what was measured once
(docs/results/astro.md). A GPU's speed is an assumption that is printed with its figures.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.agents.base import Batch, LinkedBatch
from astro_rl.agents.presets import learner_for
from astro_rl.augment.settings import STAGES, AstroSettings, settings_for
from astro_rl.augment.sharing import patch_of
from astro_rl.bench.cells import (
    AugmentCell,
    Cell,
    CompletionCell,
    DataCell,
    FitCell,
    GeometryCell,
    RivalCell,
    SelectionCell,
    SimulatedCell,
    TrainCell,
    VariantCell,
    key_of,
)
from astro_rl.bench.flops import flops_of
from astro_rl.data.catalogue import KNOWN, RECIPES
from astro_rl.dynamics.sequences import SequenceData
from astro_rl.planner.model import PlannerData
from astro_rl.quality.simulated import ATTEMPTS
from astro_rl.stitch.auto import model_states
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import Task, get_task
from astro_rl.temporal.learning import TemporalData

GPU_FLOPS = 30e12
GPU_UPDATES = 1_500.0
GPU_ASSUMPTION = (
    "GPU, assumed and not measured: 30 TFLOP/s sustained in matrix products of ψ, diffusion models and sampling; 1,500 "
    "updates/s of a learner, all seeds of a cell at once; simulators and data as here."
)
CALIBRATED_FLOPS = 2e9
"""An update's arithmetic is cut down to about so much for timing, by its batch."""
MEASURED = {"pointmaze": 32.0, "antmaze": 210.0}
"""Seconds to make a million rows here with two cores (docs/results/astro.md); 300 where it was not measured."""
STEPS_A_SECOND = {"pointmaze": 20_000.0, "antmaze": 4_000.0}
"""Environment steps on one core; 1,500 where it was not measured."""
KEPT = 0.5
"""Share of generated transitions that is assumed to pass all checks."""
RIVAL_NOTE = "as ASTRO's dynamics model"


SAME_NETWORK = {"planner": "dynamics", "onestep": "temporal"}
"""Timed as the other: DiTs both, MLPs both. The planner's update takes long to compile."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one cell."""

    here: float
    gpu: float
    what: str = ""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.here + other.here, self.gpu + other.gpu, self.what)


@dataclass(frozen=True)
class Speed:
    """This machine's, measured: arithmetic a second by kind of model."""

    flops: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, kind: str, flops: float) -> float:
        return flops / self.flops[SAME_NETWORK.get(kind, kind)]


def estimate(cells: Sequence[Cell], say: Callable[[str], None] = lambda text: None) -> dict[str, Cost]:
    """Key to cost, of the cells given. Takes under a minute: each kind of model is compiled once."""
    speed = calibrate(cells, say)
    return {key_of(cell): cost_of(cell, speed) for cell in cells}


def calibrate(cells: Sequence[Cell], say: Callable[[str], None] = lambda text: None) -> Speed:
    """Times a few updates of the first model of every kind that the cells have."""
    found: dict[str, float] = {}
    bases = [_fit_of(cell) for cell in cells if not isinstance(cell, DataCell | TrainCell | AugmentCell)]
    models = [_fit_of(cell.model) for cell in cells if isinstance(cell, AugmentCell)]
    for cell in dict.fromkeys((*bases, *models, *cells)):
        for kind, update, arguments, flops in timed_jobs(cell, found):
            found[kind] = flops / seconds_of(update, arguments)
            say(f"{kind}: {found[kind] / 1e9:.3g} GFLOP/s on this machine")
    return Speed(found)


def seconds_of(update: Callable[..., Any], arguments: tuple[Any, ...], least: float = 0.3) -> float:
    """One call's, without compiling."""
    compiled = jax.jit(update)
    jax.block_until_ready(compiled(*arguments))
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < least:
        jax.block_until_ready(compiled(*arguments))
        calls += 1
    return (time.perf_counter() - started) / calls


def timed_jobs(
    cell: Cell, known: Mapping[str, float]
) -> list[tuple[str, Callable[..., Any], tuple[Any, ...], float]]:
    """(kind, update, arguments, its arithmetic) of kinds not yet known: a cell's updates with batches cut down."""
    found = []
    if isinstance(cell, FitCell):
        for kind, (model, data, _) in stages(cell).items():
            if kind in known or kind in SAME_NETWORK:
                continue
            whole = update_flops(model, data)
            share = min(1.0, CALIBRATED_FLOPS / max(whole, 1.0))
            small = dataclasses.replace(model, batch_size=max(1, round(model.batch_size * share)))
            arrays = _filled(data)
            state = small.init(jax.random.key(0), *_widths(kind, data))
            arguments = (state, arrays, jax.random.key(1))
            found.append((kind, small.update, arguments, update_flops(small, data)))
    if isinstance(cell, TrainCell) and cell.learner not in known:
        learner, batch = _learner_and_batch(cell)
        task = get_task(cell.task)
        state = learner.init(jax.random.key(0), task.observation_dim, task.action_dim)
        arguments = (state, batch, jax.random.key(1))
        found.append((cell.learner, learner.update, arguments, flops_of(learner.update, *arguments)))
    return found


def cost_of(cell: Cell, speed: Speed) -> Cost:
    """One cell's, by its kind."""
    if isinstance(cell, DataCell):
        return _data_cost(cell)
    if isinstance(cell, FitCell):
        return _fit_cost(cell, speed, STAGES)
    if isinstance(cell, TrainCell):
        return _train_cost(cell, speed)
    if isinstance(cell, AugmentCell):
        return _augment_cost(cell, speed)
    if isinstance(cell, RivalCell):
        cost = _fit_cost(_fit_of(cell), speed, ("dynamics",))
        return dataclasses.replace(cost, what=RIVAL_NOTE)
    if isinstance(cell, SimulatedCell):
        return Cost(0.0, 0.0, "nothing to fit")
    if isinstance(cell, VariantCell):
        return _fit_cost(cell.base, speed, ("planner",))
    if isinstance(cell, CompletionCell):
        return _sampled(_fit_of(cell.model), cell.sequences, speed)
    if isinstance(cell, SelectionCell):
        return Cost(cell.seconds, cell.seconds / 10, "at most")
    if isinstance(cell, GeometryCell):
        return Cost(10.0, 5.0, "search and geometry")
    return _fit_cost(cell.base, speed, ("dynamics", "planner", "onestep"))


def _data_cost(cell: DataCell) -> Cost:
    if cell.given is not None:
        return Cost(1.0, 1.0, "given")
    recipe = RECIPES.get(cell.dataset)
    if recipe is None or not recipe.makeable:
        return Cost(0.0, 0.0, "fetched; its time is the network's")
    share = 1.0 if cell.episodes is None else cell.episodes / recipe.episodes
    seconds = next((s for name, s in MEASURED.items() if cell.dataset.startswith(name)), 300.0)
    return Cost(5 + seconds * share, 5 + seconds * share, "made")


def _fit_cost(cell: FitCell, speed: Speed, which: Sequence[str]) -> Cost:
    here = gpu = 0.0
    for kind, (model, data, updates) in stages(cell).items():
        if kind in which:
            flops = updates * update_flops(model, data)
            here, gpu = here + speed.seconds(kind, flops), gpu + flops / GPU_FLOPS
    return Cost(here, gpu, " + ".join(which))


def _train_cost(cell: TrainCell, speed: Speed) -> Cost:
    task = get_task(cell.task)
    learner, batch = _learner_and_batch(cell)
    state = jax.eval_shape(lambda: learner.init(jax.random.key(0), task.observation_dim, task.action_dim))
    flops = flops_of(learner.update, state, batch, jax.random.key(1)) * cell.updates
    here = len(cell.seeds) * speed.seconds(cell.learner, flops)
    steps = len(cell.seeds) * cell.episodes * task.max_episode_steps
    simulated = steps / steps_a_second(cell.task)
    return Cost(
        here + simulated, cell.updates / GPU_UPDATES + simulated, f"{cell.updates:,} updates and evaluation"
    )


def steps_a_second(name: str) -> float:
    return next((rate for prefix, rate in STEPS_A_SECOND.items() if name.startswith(prefix)), 1_500.0)


def _augment_cost(cell: AugmentCell, speed: Speed) -> Cost:
    rows = KNOWN[cell.data.dataset].rows[0] if cell.data.dataset in KNOWN else 1_000_000
    recipe = RECIPES.get(cell.data.dataset)
    if cell.data.episodes is not None and recipe is not None:
        rows = cell.data.episodes * recipe.episode_rows
    if isinstance(cell.model, SimulatedCell):
        driven = ATTEMPTS * (rows or 1_000_000) * cell.amount / steps_a_second(cell.data.dataset)
        return Cost(driven, driven, "driven in the simulator, at most")
    base = _fit_of(cell.model)
    settings, shape = _settings_and_shape(base)
    each = shape.horizon if settings.generate.mode == "rollout" else shape.period
    wanted = (rows or 1_000_000) * cell.amount / (each * KEPT)
    cost = _sampled(base, wanted, speed)
    return dataclasses.replace(cost, what=f"{(rows or 1_000_000) * cell.amount:,.0f} transitions")


def _sampled(cell: FitCell, sequences: float, speed: Speed) -> Cost:
    flops = sequences * sequence_flops(cell)
    return Cost(speed.seconds("dynamics", flops), flops / GPU_FLOPS, f"{sequences:,.0f} sequences")


@cache
def stages(cell: FitCell) -> dict[str, tuple[Any, Any, int]]:
    """Kind to (model, its data's shapes, updates), with the task table's chain shape where none is given."""
    settings, shape = _settings_and_shape(cell)
    task = get_task(cell.task)
    horizon = model_states(shape, patch_of(settings), settings.generate.mode)
    sequences = _sequence_shapes(task, horizon)
    temporal = settings.temporal.build(settings.temporal.discount or 0.99)
    dynamics = settings.dynamics.build(
        horizon, task.observation_dim, task.action_dim, (1.0,) * task.observation_dim
    )
    phase = shape.segment - 1 if settings.generate.mode == "anchored" else 0
    planner = settings.planner.build(dynamics, shape, phase)
    network = jax.eval_shape(lambda: dynamics.init(jax.random.key(0))).average
    rows = TemporalData(
        _shape(1000, task.observation_dim), _shape(999, dtype=jnp.int32), _shape(1000, dtype=jnp.int32)
    )
    onestep = settings.onestep.build(task.observation_dim, task.action_dim, (1.0,) * task.observation_dim)
    polishes = settings.generate.completion.polish > 0
    return {
        "temporal": (temporal, rows, settings.temporal.steps),
        "dynamics": (dynamics, sequences, settings.dynamics.steps),
        "planner": (planner, PlannerData(sequences, network), settings.planner.steps),
        **({"onestep": (onestep, sequences, settings.onestep.steps)} if polishes else {}),
    }


def update_flops(model: Any, data: Any) -> float:
    widths = (data.observations.shape[1],) if isinstance(data, TemporalData) else ()
    state = jax.eval_shape(lambda: model.init(jax.random.key(0), *widths))
    return flops_of(model.update, state, data, jax.random.key(1))


@cache
def sequence_flops(cell: FitCell) -> float:
    """Of completing one sequence: planning, refinement, rolling out. Polishing is small beside them."""
    settings, _ = _settings_and_shape(cell)
    planner = stages(cell)["planner"][0]
    batch = 4
    networks = [
        jax.eval_shape(lambda model=model: model.init(jax.random.key(0))).average
        for model in (planner, planner.dynamics)
    ]
    sampling = settings.generate.completion
    states = _shape(batch, planner.horizon, planner.observation_dim)
    known = jax.ShapeDtypeStruct((batch, planner.horizon), bool)
    from astro_rl.planner.complete import _complete

    def whole(planner_network: Any, dynamics_network: Any, key: Any, states: Any, known: Any) -> Any:
        return _complete(planner, sampling, planner_network, dynamics_network, key, states, known)

    return flops_of(whole, *networks, jax.random.key(0), states, known) / batch


def _settings_and_shape(cell: FitCell) -> tuple[AstroSettings, ChainShape]:
    settings = settings_for(cell.preset, dict(cell.settings))
    if cell.shape is not None:
        return settings, ChainShape(*cell.shape)
    task, patch = get_task(cell.task), patch_of(settings)
    span = max(patch, task.segment // patch * patch)
    return settings, ChainShape(task.horizon // (2 * task.segment), span, span)


def _fit_of(cell: Any) -> FitCell:
    """The base fit of any model, whose sizes stand in for a rival's."""
    if isinstance(cell, FitCell):
        return cell
    if isinstance(cell, RivalCell):
        return FitCell(cell.data, cell.task, cell.preset)
    return cell.base


def _learner_and_batch(cell: TrainCell) -> tuple[Any, Any]:
    task = get_task(cell.task)
    learner = learner_for(cell.learner, preset=cell.preset, task=task, **dict(cell.settings))
    size = learner.batch_size
    states, actions = jnp.zeros((size, task.observation_dim)), jnp.zeros((size, task.action_dim))
    batch = Batch(states, actions, jnp.zeros(size), jnp.ones(size), states)
    return learner, LinkedBatch(*batch, actions, jnp.ones(size)) if learner.needs_next_actions else batch


def _sequence_shapes(task: Task, horizon: int) -> SequenceData:
    rows = 4 * horizon
    return SequenceData(
        _shape(rows, task.observation_dim),
        _shape(rows, task.action_dim),
        _shape(rows - horizon, dtype=jnp.int32),
        _shape(task.observation_dim),
    )


def _shape(*sizes: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def _filled(shapes: Any) -> Any:
    """Arrays of these shapes; numbers do not matter for time, but must not be all the same."""
    generator = np.random.default_rng(0)

    def one(leaf: Any) -> Any:
        if jnp.issubdtype(leaf.dtype, jnp.integer):
            return jnp.arange(np.prod(leaf.shape, dtype=int), dtype=leaf.dtype).reshape(leaf.shape)
        return jnp.asarray(generator.normal(0, 0.1, leaf.shape), leaf.dtype)

    return jax.tree.map(one, shapes)


def _widths(kind: str, data: Any) -> tuple[int, ...]:
    return (data.observations.shape[1],) if kind == "temporal" else ()
