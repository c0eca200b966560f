"""`auto`: a chain's shape from the dataset itself: how long its trajectories are and how far apart its states.

The paper gives L = 180 (humanoids 340) for datasets whose trajectories hold 201 states (humanoids 401). What it does
not say is that a chain which passes the filter is nearly a shortest path from its first state to its last: no
dataset has chains that reach farther than its own states lie apart. Both limits are read off the data here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.gauge import SAMPLED, Gauge, fit_gauge
from astro_rl.stitch.geometry import ChainShape

PIECES = 5
"""The paper's chain length."""
LONGEST = 180
"""The paper's horizon for everything but humanoids."""
SHORT = 12
"""States below which a piece says little of how a body moves: fewer pieces are preferred to shorter ones."""
FAR = 0.95
"""Quantile of the distance between random states that counts as the dataset's reach: its very ends are too few."""
SPAN = 0.85
"""Share of the reach that a chain may span. One as long as the place is wide can only lead from one end of it to the
other: on pointmaze-medium IQL arrived with chains of 108 known states, and not with 162 (docs/results/astro.md)."""
USABLE = 0.5
"""Share of the dataset's states that have to lie in trajectories long enough for what is asked."""

Completion = Literal["rollout", "anchored"]


@dataclass(frozen=True)
class AutoShape:
    """The choice and the reason for it, in words."""

    shape: ChainShape
    why: str


def choose_shape(
    latents: Float[np.ndarray, "rows latent"],
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    discount: float,
    *,
    patch: int = 6,
    completion: Completion = "anchored",
    distinct: bool = True,
    pieces: int = PIECES,
    longest: int = LONGEST,
    seed: int = 0,
) -> AutoShape:
    """l = M and n for a dataset, given its latents (`TemporalModel.encode`).

    Shapes with 2 ≤ n ≤ `pieces` and l a multiple of `patch` qualify if
    - L is at most `longest`,
    - their known states span no more than `SPAN` of the dataset's own reach: L − M ≤ SPAN · reach, in data steps,
    - they fit the trajectories: a window of l states and what the models are trained on (`model_states`) have to lie
      within trajectories that hold at least half of all states.
    Of these, the most pieces of at least `SHORT` states, and then the longest l; where only shorter pieces fit, the
    longest horizon.
    """
    typical, generator = typical_states(offsets), np.random.default_rng(seed)
    room = shapes_with_room(
        offsets, patch=patch, completion=completion, distinct=distinct, pieces=pieces, longest=longest
    )
    reach, gauge, saturated = measured_reach(
        latents, offsets, max(segment for _, segment in room), discount, generator
    )
    fitting = [(count, segment) for count, segment in room if (2 * count - 1) * segment <= SPAN * reach]
    if not fitting:
        least = min((2 * count - 1) * segment for count, segment in room)
        raise DataError(
            "The dataset's states lie too close together for any chain.",
            found=f"{FAR:.0%} of random pairs of states are at most {reach:.0f} data steps apart",
            expected=f"at least {least / SPAN:.0f}, for two pieces of {min(s for _, s in room)} states",
            fix=_shorter_patch(int(reach // 3), patch)
            + ", or train the temporal distances longer: untrained, everything looks near",
        )
    count, segment = max(
        fitting, key=lambda pair: (pair[1] >= SHORT, *(pair if pair[1] >= SHORT else (pair[0] * pair[1], 0)))
    )
    shape = ChainShape(count, segment, segment)
    at_least = "at least " if saturated > 1 - FAR else ""
    why = (
        f"n = {count}, l = M = {segment}, L = {shape.horizon}: half of the states lie in trajectories of {typical} "
        f"states or more ({completion} completion needs {model_states(shape, patch, completion)}); {FAR:.0%} of "
        f"random pairs of states are at most {at_least}{reach:.0f} data steps apart ({gauge.slowness:.2f} data steps "
        f"a learned step), a chain's known states {shape.horizon - segment}; patch {patch} divides l and M; L is at "
        f"most {longest}."
    )
    return AutoShape(shape, why)


def shapes_with_room(
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    *,
    patch: int = 6,
    completion: Completion = "anchored",
    distinct: bool = True,
    pieces: int = PIECES,
    longest: int = LONGEST,
) -> list[tuple[int, int]]:
    """(n, l) of all shapes that number and lengths of the trajectories allow: known before anything is learned."""
    if patch < 1:
        raise ConfigError("A patch holds at least one step.", field="patch", found=patch)
    if pieces < 2:
        raise ConfigError(
            "A chain needs two pieces to be one.", field="pieces", found=pieces, expected=">= 2"
        )
    typical = typical_states(offsets)
    room = [
        (count, segment)
        for count in range(2, pieces + 1)
        for segment in range(patch, longest // (2 * count) + 1, patch)
        if segment >= 2 and model_states(ChainShape(count, segment, segment), patch, completion) <= typical
    ]
    if not room:
        raise _too_short(typical, patch, completion, longest)
    shortest = min(segment for _, segment in room)
    most = int((np.diff(offsets) >= shortest).sum()) if distinct else pieces
    if most < 2:
        raise single_trajectory(most, 2)
    return [(count, segment) for count, segment in room if count <= most]


def model_states(shape: ChainShape, patch: int, completion: Completion) -> int:
    """States in a row that the models are trained on: the whole horizon, or one gap with the piece behind it."""
    if completion == "rollout":
        return shape.horizon
    return -(-(1 + shape.mask + shape.segment) // patch) * patch


def typical_states(offsets: Int[np.ndarray, "trajectories_plus_1"]) -> int:
    """The length that at least half of all states' trajectories reach: one long recording among many scraps does
    not decide, and neither do the scraps."""
    rows = np.sort(np.diff(offsets))[::-1]
    return int(rows[np.searchsorted(np.cumsum(rows), USABLE * rows.sum())])


def measured_reach(
    latents: Float[np.ndarray, "rows latent"],
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    segment: int,
    discount: float,
    generator: np.random.Generator,
) -> tuple[float, Gauge, float]:
    """How far apart the dataset's states lie, in data steps; the gauge that says so; the share of pairs that are
    too far to tell."""
    # Long windows that turn back look slow, and slowness would make a small place look large: short ones count.
    far = min(segment, SHORT) - 1
    gauge = fit_gauge(latents, offsets, max(far // 2, 1), far, discount, generator)
    one, other = (np.sort(generator.integers(len(latents), size=SAMPLED)) for _ in range(2))
    raw = np.linalg.norm(latents[one] - latents[generator.permutation(other)], axis=-1)
    steps = np.asarray(gauge.from_distance(jnp.asarray(raw, jnp.float32)))
    ceiling = float(gauge.from_distance(jnp.asarray(np.inf, jnp.float32)))
    return float(np.quantile(steps, FAR)), gauge, float(np.mean(steps >= ceiling * (1 - 1e-6)))


def check_shape(
    shape: ChainShape,
    offsets: Int[np.ndarray, "trajectories_plus_1"],
    *,
    patch: int,
    completion: Completion,
    distinct: bool,
) -> None:
    """Refuse a shape, chosen by hand, that the dataset's trajectories or the models' patch cannot serve."""
    if shape.segment % patch or shape.mask % patch:
        raise ConfigError(
            "The patch must divide l and M.",
            field="patch",
            found=f"patch {patch}, l = {shape.segment}, M = {shape.mask}",
            fix=f"patch {int(np.gcd.reduce([patch, shape.segment, shape.mask]))}, or other l and M",
        )
    longest = int(np.diff(offsets).max(initial=0))
    if model_states(shape, patch, completion) > longest:
        raise _too_short(longest, patch, completion, shape.horizon, asked=shape)
    holders = int((np.diff(offsets) >= shape.segment).sum())
    if distinct and holders < shape.pieces:
        raise single_trajectory(holders, shape.pieces)


def single_trajectory(holders: int, pieces: int) -> DataError:
    return DataError(
        "Too few trajectories for chains whose pieces all come from different ones.",
        found=f"{holders} long enough for a piece",
        expected=f"at least {pieces}, one a piece",
        fix="allow pieces of one trajectory (generate.search.distinct=false), use fewer or shorter pieces, or hand "
        "the recording in as several trajectories",
    )


def _too_short(
    states: int, patch: int, completion: Completion, longest: int, asked: ChainShape | None = None
) -> DataError:
    """What does not fit, and what would: the longest L for these trajectories, at this patch or a smaller one."""
    wanted = asked or ChainShape(2, max(patch, 2), max(patch, 2))
    needed = model_states(wanted, patch, completion)
    fits = _longest_fit(states, patch, completion, longest)
    smaller = next((p for p in (3, 2, 1) if p < patch and _longest_fit(states, p, completion, longest)), None)
    if fits is not None:
        fix = f"n = {fits.pieces}, l = M = {fits.segment} would fit: L = {fits.horizon}"
    elif smaller is not None:
        fit = _longest_fit(states, smaller, completion, longest)
        assert fit is not None
        fix = f"patch {smaller}: n = {fit.pieces}, l = M = {fit.segment} would fit, L = {fit.horizon}"
    else:
        fix = "no L fits: trajectories of at least six states are needed"
    return DataError(
        "The dataset's trajectories are too short for chains."
        if asked is None
        else "The horizon does not fit the dataset's trajectories.",
        found=f"trajectories of {states} states",
        expected=f"at least {needed} ({completion} completion, n = {wanted.pieces}, l = {wanted.segment}, "
        f"M = {wanted.mask}, patch {patch})",
        fix=fix,
    )


def _longest_fit(states: int, patch: int, completion: Completion, longest: int) -> ChainShape | None:
    shapes = (
        ChainShape(count, segment, segment)
        for count in range(2, PIECES + 1)
        for segment in range(patch, longest // (2 * count) + 1, patch)
        if segment >= 2
    )
    fitting = [shape for shape in shapes if model_states(shape, patch, completion) <= states]
    return max(fitting, key=lambda shape: (shape.horizon, shape.pieces), default=None)


def _shorter_patch(segment: int, patch: int) -> str:
    fits = next((p for p in range(min(patch - 1, segment), 0, -1)), None)
    return f"use patch {fits}" if fits else "no patch is small enough"
