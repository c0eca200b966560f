"""How far completions are off where the truth is known, on generated chains and on real held-out windows alike.

    δ           mean over known states (but the given first) and dimensions of (ŝ − s)², normalised: eq. (11) at the end
    step error  root mean square over neighbouring known states of ((ŝ_{t+1} − ŝ_t) − (s_{t+1} − s_t)) / σ; where gaps
                were polished, which holds known states, that of the gap's own steps from what the one-step model says
    jump        root mean square over dimensions of (s_p − ŝ_p) / σ at p, the first known place behind a MASK
    jump x-y    ‖s_p − ŝ_p‖ / ‖σ‖ in the plane

σ is the typical (root mean square) one-step change of each dimension. Constant dimensions do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.augment.jobs import Completes, Completions, complete_jobs, job_rows, known_span
from astro_rl.augment.limits import Mode, RealLimits, quantiles
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.windows import window_starts

SCALE_SAMPLE = 200_000
"""Transitions that typical steps are measured on."""

Progress = Callable[[int, int], None]


class StepScale(NamedTuple):
    """σ in normalised units, 0 on dimensions that never change, and where x and y stand."""

    sigma: Float[np.ndarray, "obs"]
    plane: Float[np.ndarray, "obs"]
    """Turns a normalised difference into the environment's unit, and is 0 but on x and y."""

    @property
    def has_plane(self) -> bool:
        return bool(self.plane.any())


class Errors(NamedTuple):
    """One value a completion. NaN where a model gave what is not finite: it passes no limit."""

    deviation: Float[np.ndarray, "jobs"]
    step_error: Float[np.ndarray, "jobs"]
    jump: Float[np.ndarray, "jobs"]
    jump_xy: Float[np.ndarray, "jobs"]


def step_scale(dataset: Dataset, normaliser: Normaliser, xy: tuple[int, int] | None = None) -> StepScale:
    """From up to `SCALE_SAMPLE` transitions, evenly spread over the data."""
    rows = dataset.transition_rows()
    rows = rows[:: max(1, len(rows) // SCALE_SAMPLE)]
    change = np.asarray(dataset.observations[rows + 1], np.float64) - np.asarray(dataset.observations[rows])
    sigma = np.sqrt(np.square(change / normaliser.scale).mean(axis=0))
    sigma[normaliser.spread == 0] = 0.0
    plane = np.zeros(dataset.observation_dim)
    if xy is not None:
        plane[list(xy)] = normaliser.scale[list(xy)]
    return StepScale(sigma.astype(np.float32), plane.astype(np.float32))


def errors(done: Completions, scale: StepScale) -> Errors:
    """All four, by the formulas above."""
    moving = scale.sigma > 0
    sigma = np.where(moving, scale.sigma, 1.0)
    parts = (done.states, done.actions)
    finite = np.logical_and(*(np.asarray(np.isfinite(part).all(axis=(1, 2))) for part in parts))
    states = np.where(finite[:, None, None], done.states, 0.0)
    # Known states leave holes: only neighbours that are both known have a change to compare.
    pairs = done.known[:, 1:] & done.known[:, :-1]
    missed = (np.diff(states, axis=1) - np.diff(done.given, axis=1)) / sigma
    squares = (np.square(missed) * moving).sum(axis=-1) * pairs
    step = np.sqrt(squares.sum(axis=1) / np.maximum(pairs.sum(axis=1) * moving.sum(), 1))
    step = step if done.miss is None else done.miss
    jobs = np.arange(len(done.states))
    place = first_target(done.known)
    gap = np.where(done.known[jobs, place][:, None], done.given[jobs, place] - states[jobs, place], 0.0)
    jump = np.sqrt((np.square(gap / sigma) * moving).sum(axis=1) / max(moving.sum(), 1))
    step_length = np.sqrt(np.square(scale.sigma * scale.plane).sum())
    plane = np.linalg.norm(gap * scale.plane, axis=1) / (step_length if step_length > 0 else 1.0)
    return Errors(*(np.where(finite, value, np.nan) for value in (done.deviation, step, jump, plane)))


def first_target(known: Bool[np.ndarray, "jobs horizon"]) -> Int[np.ndarray, "jobs"]:
    """The first known place behind the first MASK; 0, where the state is given, if there is none."""
    behind = np.cumsum(~known, axis=1) > 0
    return np.argmax(known & behind, axis=1)


def real_windows(
    dataset: Dataset, span: int, trajectories: Int[np.ndarray, "held_out"] | None = None
) -> Int[np.ndarray, "windows"]:
    """First rows of all windows of `span` states, of the given trajectories alone where some are given."""
    starts, owners = window_starts(dataset.offsets, span)
    if trajectories is not None:
        starts = starts[np.isin(owners, trajectories)]
    if len(starts) == 0:
        longest = int(dataset.lengths.max()) + 1
        raise DataError(
            "No trajectory is long enough for a real window with the pattern of a chain.",
            found=f"the longest trajectory has {longest} states",
            expected=f"{span} states: pieces * (segment + mask) - mask",
            fix="choose fewer or shorter pieces",
        )
    return starts


def measure_limits(
    completer: Completes,
    dataset: Dataset,
    normaliser: Normaliser,
    shape: ChainShape,
    mode: Mode,
    *,
    windows: int = 256,
    batch: int = 64,
    seed: int = 0,
    xy: tuple[int, int] | None = None,
    trajectories: Int[np.ndarray, "held_out"] | None = None,
    progress: Progress | None = None,
) -> RealLimits:
    """The errors of real windows, masked as chains are. Give a dataset, or the `trajectories` of one, that no model
    was fitted to."""
    pieces = shape.pieces if mode == "rollout" else 2
    pattern = ChainShape(pieces, shape.segment, shape.mask)
    starts = real_windows(dataset, known_span(pattern), trajectories)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(starts, size=windows, replace=len(starts) < windows))
    firsts = chosen[:, None] + np.arange(pieces) * pattern.period
    rows = job_rows(mode, pattern, firsts, completer.horizon, tail=False).reshape(windows, -1)
    scale = step_scale(dataset, normaliser, xy)
    measured = []
    for number, start in enumerate(range(0, windows, batch)):
        key = jax.random.fold_in(jax.random.key(seed), number)
        part = rows[start : start + batch]
        measured.append(errors(complete_jobs(completer, dataset, normaliser, part, key, batch=batch), scale))
        if progress is not None:
            progress(start + len(part), windows)
    found = Errors(*(np.concatenate(column) for column in zip(*measured, strict=True)))
    if not np.isfinite(found.deviation).all():
        raise DataError(
            "The models give numbers that are not finite on real windows.",
            found=f"{int((~np.isfinite(found.deviation)).sum())} of {windows} windows",
            fix="fit again, with a lower learning rate",
        )
    return RealLimits(
        mode=mode,
        windows=windows,
        deviation=quantiles(found.deviation),
        step_error=quantiles(found.step_error),
        jump=quantiles(found.jump),
        jump_xy=quantiles(found.jump_xy) if scale.has_plane else None,
    )
