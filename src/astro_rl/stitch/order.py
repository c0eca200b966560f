"""In which order the pieces of a chain are found, and how far each has to lie from those that are there already.

A chain that passes the filter is nearly a shortest path from its first state to its last. Built forwards, most chains
run into the end of the place after a few pieces, and all the work is thrown away. So the *last* piece is found right
behind the first: a source from which nothing lies as far ahead as the chain is long is told by two matrix products.
The pieces between are then sought where both ends allow them.
"""

from __future__ import annotations

from typing import Literal

from astro_rl.stitch.extension import Shell
from astro_rl.stitch.geometry import ChainShape

Order = Literal["ends", "forward"]

LOOSE = 2.0
"""Shells around pieces that are not neighbours are so many thresholds wide: they only tell the search where to look.
The filter is a mean, so a single distance may miss by more than the threshold."""


def placing_order(pieces: int, order: Order) -> list[int]:
    """Pieces behind the source, as they are found: one after the other, or the last one, the one in the middle, those
    in the middles of what is left."""
    if order == "forward":
        return list(range(1, pieces))
    found, gaps = [pieces - 1], [(0, pieces - 1)]
    while gaps:
        first, last = gaps.pop(0)
        if last - first > 1:
            middle = (first + last) // 2
            found.append(middle)
            gaps += [(first, middle), (middle, last)]
    return found


def shells_for(
    piece: int,
    placed: list[int],
    shape: ChainShape,
    *,
    probes: int,
    gap: float,
    tolerance: float,
    threshold: float,
    order: Order,
) -> tuple[Shell, ...]:
    """Where `piece` is to be looked for. `placed` are the pieces that a chain holds, in the order of its states, each
    seen at `probes` of them. `gap`: steps from a piece's last state to the next piece's first."""
    before = max(number for number in placed if number < piece)

    def shell(state: int, probe: Literal[0, -1], pieces_apart: int) -> Shell:
        if pieces_apart == 1:
            return Shell(state, probe, gap, tolerance)
        apart = pieces_apart * shape.period - (shape.segment - 1)
        return Shell(state, probe, float(apart), max(tolerance, LOOSE * threshold))

    last_of_before = placed.index(before) * probes + probes - 1
    shells = [shell(last_of_before, 0, piece - before)]
    if order == "forward":
        return tuple(shells)
    behind = [number for number in placed if number > piece]
    if behind:
        after = min(behind)
        shells.append(shell(placed.index(after) * probes, -1, after - piece))
    else:
        whole = float(piece * shape.period + shape.segment - 1)
        shells.append(Shell(0, -1, whole, max(tolerance, LOOSE * threshold)))
    return tuple(shells)
