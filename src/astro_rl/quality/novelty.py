"""Coverage and novelty: where generated data goes that recordings did not, and what it joins that they did not.

Every figure stands beside the same one for held-out recordings, which are new too: a share alone says nothing. Both
samples have the same number of rows, since whoever looks longer sees more cells.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.quality.cells import ACROSS, Cells, fewest_steps, joins, numbered, visits
from astro_rl.quality.neighbours import Units, nearest
from astro_rl.quality.parts import RealParts, drawn, generated_transitions

WITHIN = (20, 200)
"""k: about a gap's steps, and about a chain's."""
REFERENCE = 100_000
"""Real rows that neighbours are sought among."""
MOST_ROWS = 200_000
"""Rows whose cells are looked at, in whole trajectories."""


@dataclass(frozen=True)
class Coverage:
    """One sample against one reference. Shares of what was looked at."""

    rows: int
    trajectories: int
    new_states: float | None
    """States in cells that the reference never visits."""
    new_cells: float | None
    """The same with each cell counted once."""
    cells: int
    new_pairs: dict[str, float | None]
    """By k: ordered pairs of stays within k steps whose cells no recording joins within k steps."""
    new_distinct_pairs: dict[str, float | None]
    """The same with each pair of cells counted once."""
    pairs: dict[str, int]


@dataclass(frozen=True)
class Nearest:
    """Distances to the nearest of the reference's rows, see `neighbours`."""

    rows: int
    reference: int
    median: float
    p95: float
    above_real: float
    """Share farther away than 99 in 100 of the held-out ones are."""


@dataclass(frozen=True)
class Novelty:
    """None where no plane is known, or there is nothing to look at."""

    side: float | None
    coverage: Coverage | None
    coverage_real: Coverage | None
    states: Nearest | None
    states_real: Nearest
    transitions: Nearest | None
    transitions_real: Nearest

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def novelty(
    augmented: Dataset,
    real: RealParts,
    *,
    xy: tuple[int, int] | None = None,
    within: tuple[int, ...] = WITHIN,
    across: int = ACROSS,
    rows: int = 2000,
    reference: int = REFERENCE,
    seed: int = 0,
) -> Novelty:
    """`augmented` as `parts.marked` gives it. `rows` are asked for their nearest neighbour, of each kind."""
    if rows < 1 or reference < 1 or not within or min(within) < 1:
        raise ConfigError(
            "Novelty needs rows to look at.",
            field="rows, reference, within",
            found=f"{rows}, {reference}, {within}",
            expected="1 or more of each",
        )
    generator = np.random.default_rng(seed)
    side = ours = theirs = None
    if xy is not None:
        cells = Cells.over(real.everything, xy, across)
        side = cells.side
        size = min(augmented.n_rows, real.held_out.n_rows, MOST_ROWS)
        one, other = (whole_trajectories(data, size, generator) for data in (augmented, real.held_out))
        ours = coverage(one, real.everything, cells, within)
        theirs = coverage(other, real.rest, cells, within)
    units = Units.of(real.everything)
    # Equally many rows to be near to: whoever has more neighbours has nearer ones.
    size = min(reference, real.rest.n_transitions)
    made = np.flatnonzero(np.asarray(augmented.extras["source_step"]) < 0)
    asked = {
        "states": (made, real.held_out.transition_rows()),
        "transitions": (generated_transitions(augmented), real.held_out.transition_rows()),
    }
    references = [drawn(data.transition_rows(), size, generator) for data in (real.everything, real.rest)]
    found: dict[str, Any] = {}
    for kind, (generated, recorded) in asked.items():
        of = getattr(units, kind)
        all_of, rest_of = (
            of(data, chosen) for data, chosen in zip((real.everything, real.rest), references, strict=True)
        )
        own = nearest(of(real.held_out, drawn(recorded, rows, generator)), rest_of)
        limit = float(np.quantile(own, 0.99))
        found[f"{kind}_real"] = _told(own, size, limit)
        chosen = drawn(generated, rows, generator)
        found[kind] = _told(nearest(of(augmented, chosen), all_of), size, limit) if len(chosen) else None
    return Novelty(side, ours, theirs, **found)


def coverage(sample: Dataset, reference: Dataset, cells: Cells, within: tuple[int, ...] = WITHIN) -> Coverage:
    """All rows of `sample`; where it says which ones are generated, only those count as states."""
    (ours, theirs), count = numbered(cells.of(sample), cells.of(reference))
    seen = np.zeros(count, bool)
    seen[theirs] = True
    made = np.asarray(sample.extras.get("source_step", np.full(sample.n_rows, -1))) < 0
    places = ours[made]
    distinct = np.unique(places)
    longest = max(within)
    known = fewest_steps(joins(visits(theirs, np.asarray(reference.offsets)), longest), count)
    found = joins(visits(ours, np.asarray(sample.offsets)), longest)
    shares: dict[str, float | None] = {}
    distinct_shares: dict[str, float | None] = {}
    pairs: dict[str, int] = {}
    for k in within:
        near = found.steps <= k
        new = known[found.first[near], found.second[near]] > k
        shares[str(k)], pairs[str(k)] = _share(new), len(new)
        code = np.unique(found.first[near] * count + found.second[near])
        distinct_shares[str(k)] = _share(known[code // count, code % count] > k)
    return Coverage(
        rows=sample.n_rows,
        trajectories=len(sample),
        new_states=_share(~seen[places]),
        new_cells=_share(~seen[distinct]),
        cells=len(distinct),
        new_pairs=shares,
        new_distinct_pairs=distinct_shares,
        pairs=pairs,
    )


def whole_trajectories(dataset: Dataset, rows: int, generator: np.random.Generator) -> Dataset:
    """Trajectories drawn at random until they hold `rows` rows; the last one may hold a few more."""
    if rows >= dataset.n_rows:
        return dataset
    order = generator.permutation(len(dataset))
    held = np.cumsum(np.diff(dataset.offsets)[order])
    return dataset.select(np.sort(order[: int(np.searchsorted(held, rows)) + 1]))


def _told(distances: np.ndarray, reference: int, limit: float) -> Nearest:
    middle, high = (float(value) for value in np.quantile(distances, [0.5, 0.95]))
    return Nearest(len(distances), reference, middle, high, float((distances > limit).mean()))


def _share(flags: np.ndarray) -> float | None:
    return float(flags.mean()) if len(flags) else None
