"""Completions laid out as trajectories: what is real stays real, what was cut or rejected ends one and starts another.

`anchored`, chain of three pieces of l states, second junction cut, ŝ the state the model arrives at there:

    piece 0 | generated M | piece 1 | generated M  ŝ ]   [ piece 2
    ^ real actions        ^ real                   ^ the end row of the first trajectory

A part with nothing generated in it is real data as it was, and is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.augment.verdicts import CUT, KEPT
from astro_rl.data.schema import Dataset
from astro_rl.stitch.geometry import ChainShape

GENERATED = -1


class Laid(NamedTuple):
    """Trajectories end to end, in the dataset's units."""

    observations: Float[np.ndarray, "rows obs"]
    actions: Float[np.ndarray, "rows act"]
    """0 on end rows."""
    source_rows: Int[np.ndarray, "rows"]
    """Where in the source each observation stands; −1 for generated ones."""
    is_real: Bool[np.ndarray, "rows"]
    """Whether the transition that leaves the row is a real one, action and both states."""
    sizes: Int[np.ndarray, "trajectories"]
    """Rows of each trajectory."""
    chains: Int[np.ndarray, "trajectories"]
    """Which chain of the batch each came from."""
    deviation: Float[np.ndarray, "trajectories"]
    """δ; the largest of its gaps."""


def lay_rollout(
    shape: ChainShape,
    rows: Int[np.ndarray, "chains horizon"],
    states: Float[np.ndarray, "chains horizon obs"],
    actions: Float[np.ndarray, "chains horizon act"],
    deviation: Float[np.ndarray, "chains"],
    verdict: Int[np.ndarray, "chains"],
    *,
    tail: bool,
) -> Laid:
    """A chain is a trajectory, whole or not at all. States are the model's, also where a source is named."""
    length = shape.horizon - (0 if tail else shape.mask)
    kept = np.flatnonzero(verdict == KEPT)
    taken = np.array(actions[kept, :length])
    taken[:, -1] = 0.0
    count = len(kept) * length
    return Laid(
        states[kept, :length].reshape(count, -1),
        taken.reshape(count, -1),
        rows[kept, :length].reshape(count),
        np.zeros(count, bool),
        np.full(len(kept), length),
        kept,
        deviation[kept],
    )


def lay_anchored(
    shape: ChainShape,
    dataset: Dataset,
    starts: Int[np.ndarray, "chains pieces"],
    states: Float[np.ndarray, "chains jobs horizon obs"],
    actions: Float[np.ndarray, "chains jobs horizon act"],
    deviation: Float[np.ndarray, "chains jobs"],
    verdict: Int[np.ndarray, "chains jobs"],
    *,
    tail: bool,
) -> Laid:
    """`states` in the dataset's units. With `tail`, the last job of each chain is its free continuation."""
    (chains, pieces), segment, mask = starts.shape, shape.segment, shape.mask
    block = segment + mask + 1
    """A piece, a gap, and one place for the state at which a cut trajectory ends."""
    width = pieces * block
    source = np.full((chains, width), GENERATED, np.int64)
    observations = np.zeros((chains, width, dataset.observation_dim), dataset.observations.dtype)
    acts = np.zeros((chains, width, dataset.action_dim), dataset.actions.dtype)
    kept, ends, real = (np.zeros((chains, width), bool) for _ in range(3))
    badness = np.zeros((chains, width), np.float32)
    for piece in range(pieces):
        first = piece * block
        place = slice(first, first + segment)
        source[:, place] = starts[:, piece, None] + np.arange(segment)
        kept[:, place] = True
        real[:, first : first + segment - 1] = True
        gap, last, spare = (
            slice(first + segment, first + segment + mask),
            first + segment - 1,
            first + block - 1,
        )
        if piece == pieces - 1 and not tail:
            ends[:, last] = True
            continue
        given = verdict[:, piece]
        done = (given == KEPT) | (given == CUT)
        is_tail = piece == pieces - 1
        spared = np.zeros(chains, bool) if is_tail else given == CUT
        observations[:, gap] = states[:, piece, 1 : mask + 1]
        observations[:, spare] = states[:, piece, mask + 1]
        acts[:, last : last + mask + 1] = actions[:, piece, : mask + 1]
        badness[:, gap] = deviation[:, piece, None]
        kept[:, gap], kept[:, spare] = done[:, None], spared
        ends[:, last], ends[:, spare] = ~done, spared
        if is_tail:
            ends[:, spare - 1] = done
    rows = source >= 0
    observations[rows] = dataset.observations[source[rows]]
    acts[real] = dataset.actions[source[real]]
    acts[ends] = 0.0
    return _parts(Laid(observations, acts, source, real, *(np.zeros(0),) * 3), kept, ends, badness)


def _parts(laid: Laid, kept: np.ndarray, ends: np.ndarray, badness: np.ndarray) -> Laid:
    """Kept places in order, split behind every end row; parts without a generated row are dropped."""
    chains = np.repeat(np.arange(len(kept)), kept.sum(axis=1))
    flat_ends, source = ends[kept], laid.source_rows[kept]
    parts = np.cumsum(flat_ends) - flat_ends
    count = int(parts[-1]) + 1 if len(parts) else 0
    wanted = np.zeros(count, bool)
    wanted[parts[source == GENERATED]] = True
    deviation = np.zeros(count, np.float32)
    np.maximum.at(deviation, parts, badness[kept])
    chain_of = np.zeros(count, np.int64)
    chain_of[parts] = chains
    rows = wanted[parts]
    return Laid(
        laid.observations[kept][rows],
        laid.actions[kept][rows],
        source[rows],
        laid.is_real[kept][rows],
        np.bincount(parts, minlength=count)[wanted],
        chain_of[wanted],
        deviation[wanted],
    )
