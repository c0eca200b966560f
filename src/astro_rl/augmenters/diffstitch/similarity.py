"""Which target a continuation comes near, and how many steps away it is: DiffStitch's step estimation.

ŝ_1 … ŝ_{H−1} is the continuation of a source's last state, c the first state of a candidate.

    sim(ŝ, c) = ⟨ŝ, c⟩ / (‖ŝ‖ ‖c‖)                          cosine, as the authors' code                   (8)
    sim(ŝ, c) = −√( mean over dimensions of (ŝ − c)² )       euclidean                                      (9)

A candidate fits if sim reaches the threshold at any step k with shortest <= k <= longest; one that fits is drawn, and
the step at which its sim is greatest becomes the place of the target.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

Measure = Literal["cosine", "euclidean"]
MEASURES: tuple[Measure, ...] = ("cosine", "euclidean")


class Choice(NamedTuple):
    """One target for each continuation, where there is one."""

    found: Bool[np.ndarray, "sources"]
    candidate: Int[np.ndarray, "sources"]
    place: Int[np.ndarray, "sources"]
    """The step at which the target's first state stands: `place` − 1 states lie between."""
    similarity: Float[np.ndarray, "sources"]


def similarities(
    continuation: Float[np.ndarray, "sources steps obs"],
    candidates: Float[np.ndarray, "sources candidates obs"],
    measure: Measure,
) -> Float[np.ndarray, "sources steps candidates"]:
    """(8) or (9), of normalised states."""
    inner = continuation @ candidates.transpose(0, 2, 1)
    squares = np.square(continuation).sum(-1)[:, :, None], np.square(candidates).sum(-1)[:, None, :]
    if measure == "cosine":
        return inner / np.maximum(np.sqrt(squares[0] * squares[1]), 1e-12)
    apart = np.maximum(squares[0] + squares[1] - 2 * inner, 0.0)
    return -np.sqrt(apart / continuation.shape[-1])


def choose(
    similar: Float[np.ndarray, "sources steps candidates"],
    allowed: Bool[np.ndarray, "sources candidates"],
    threshold: float,
    shortest: int,
    generator: np.random.Generator,
) -> Choice:
    """`similar[:, 0]` is the step `shortest`. One fitting candidate each, all alike likely."""
    best = similar.max(axis=1)
    # One draw a candidate, whether it fits or not, so that what one source finds does not move the draws of the next.
    ticket = generator.random(best.shape)
    fits = allowed & (best >= threshold)
    chosen = np.where(fits, ticket, -1.0).argmax(axis=1)
    sources = np.arange(len(similar))
    along = similar[sources, :, chosen]
    return Choice(fits.any(axis=1), chosen, shortest + along.argmax(axis=1), along.max(axis=1))
