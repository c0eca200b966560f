"""Chain search: from sources drawn anywhere in the data, piece by piece, with every rejection counted by its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.extension import (
    CHOSEN,
    EMPTY_SHELL,
    NO_END,
    NOTHING_FITS,
    Known,
    Pool,
    extend,
    pool_of,
    stretch,
)
from astro_rl.stitch.filtering import ChainFilter, Chains, padded, room
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.order import Order, placing_order, shells_for
from astro_rl.stitch.targets import nearest_targets
from astro_rl.stitch.windows import Windows

REASONS = {
    EMPTY_SHELL: "no target at the right distance",
    NOTHING_FITS: "no target fits the other pieces",
    NO_END: "nothing lies as far ahead as the chain is long",
}
RENEWED = 64
"""Batches that share a pool. Reading one takes as long as a few batches do."""


@dataclass(frozen=True)
class SearchSettings:
    """How chains are sought."""

    threshold: float = 3.0
    """Δ_thresh."""
    rule: Literal["shell", "argmin"] = "shell"
    """shell: any window within `tolerance` of the right distance; argmin: the one nearest to it, eq. (6)."""
    tolerance: float = 2.0
    order: Order | None = None
    """ends: the last piece is found right behind the first. forward: one after the other. None: ends with shell, and
    forward with argmin, which knows no other."""
    pool: int = 131_072
    """Windows that are held at once; others are drawn every `RENEWED` batches."""
    looks: int = 4_096
    """Windows of these that each chain is compared with while all of a batch are left. The fewer are left, the more
    each of them sees: the work is the same."""
    shortlist: int = 64
    contest: int = 16
    """Of about so many that fit, drawn at random, the one with the least bias takes the place. 1: any of them, and most
    chains use up their allowance before they are long enough (docs/method/chains.md)."""
    probes: int = 3
    """States of a window that candidates are tested at. The filter at the end sees all states."""
    batch: int = 512
    """Chains that are built at once."""
    filter_pairs: int | None = None
    """k of algorithm 4. None: all pairs."""
    distinct: bool = True
    """No two pieces of a chain from one trajectory. The paper does not say; without it half of novelty is lost."""

    def __post_init__(self) -> None:
        for name in ("threshold", "tolerance", "pool", "looks", "shortlist", "contest", "batch"):
            if getattr(self, name) <= 0:
                raise ConfigError("A search setting must be positive.", field=name, found=getattr(self, name))
        if self.probes < 2:
            raise ConfigError(
                "The first and the last state are always probed.", field="probes", found=self.probes
            )
        if self.rule == "argmin" and self.order == "ends":
            raise ConfigError(
                "Eq. (6) names a target for the piece before it, so argmin goes forward.",
                field="order",
                found="ends",
                expected="forward",
                fix="leave order out, or use rule=shell",
            )
        if self.filter_pairs is not None and self.filter_pairs < 1:
            raise ConfigError("The filter needs a pair.", field="filter_pairs", found=self.filter_pairs)

    @property
    def placing(self) -> Order:
        return self.order or ("ends" if self.rule == "shell" else "forward")


class Held(NamedTuple):
    """A pool as the search keeps it, under the numbers that it was drawn with."""

    drawn: tuple[int, int]
    places: Int[np.ndarray, "pool"]
    """Numbers of the windows."""
    pool: Pool
    centre: Float[np.ndarray, "latent"]
    """What was taken off all latents."""


class ChainSearch:
    """Chains over one table of latents. Latents may be a memory map: only pools and sources are read."""

    def __init__(
        self,
        latents: Float[np.ndarray, "rows latent"],
        windows: Windows,
        gauge: Gauge,
        shape: ChainShape,
        settings: SearchSettings | None = None,
    ) -> None:
        self.latents, self.windows, self.gauge, self.shape = latents, windows, gauge, shape
        self.settings = settings or SearchSettings()
        if len(windows.starts) == 0:
            raise DataError(
                "No sub-trajectory of the dataset passes the filter by itself.",
                found=f"0 of {windows.total} windows of {shape.segment} states at Δ_thresh {self.settings.threshold}",
                fix="raise the threshold, shorten the segment, or train the temporal distances longer",
            )
        self._probes = np.unique(
            np.linspace(0, shape.segment - 1, self.settings.probes).round().astype(np.int64)
        )
        # The MASK holds M states, so the target is M + 1 steps after the source's last state; the paper's
        # literal rule says M.
        self.gap = float(shape.mask if gauge.literal else shape.mask + 1)
        self._filter = ChainFilter(
            latents, gauge, shape, self.settings.batch, self.settings.threshold, self.settings.filter_pairs
        )
        self._held: Held | None = None

    def batches(self, seed: int) -> Iterator[Chains]:
        """Endless batches; batch k depends on the seed and k alone."""
        number = 0
        while True:
            yield self.batch(seed, number)
            number += 1

    def batch(self, seed: int, number: int) -> Chains:
        """Propose `settings.batch` chains and keep those that pass."""
        generator = np.random.default_rng([seed, number])
        key = jax.random.fold_in(jax.random.key(seed), number)
        chosen = generator.integers(len(self.windows.starts), size=self.settings.batch)
        # In the order of placing; sorted into the chain's own at the end.
        starts = self.windows.starts[chosen][:, None]
        owners = self.windows.trajectories[chosen][:, None]
        placed, sums = [0], self._own_sums(self._seen(starts[:, 0]))
        reasons: Counter[str] = Counter()
        for piece in placing_order(self.shape.pieces, self.settings.placing):
            places, sums, outcome = self._extend(
                jax.random.fold_in(key, piece),
                starts,
                owners,
                sums,
                placed,
                piece,
                *self._looked_at(seed, number, len(starts), generator),
            )
            at_the_end = self.settings.placing == "ends" and piece == self.shape.pieces - 1 > 1
            for code, count in zip(*np.unique(outcome, return_counts=True), strict=True):
                if code != CHOSEN:
                    reasons[REASONS[NO_END if at_the_end else int(code)]] += int(count)
            kept = outcome == CHOSEN
            starts = np.column_stack([starts[kept], self.windows.starts[places[kept]]])
            owners = np.column_stack([owners[kept], self.windows.trajectories[places[kept]]])
            sums = sums[kept]
            placed.append(piece)
            if len(starts) == 0:
                break
        # The account is complete even where no chain is left: an empty batch still has a column a piece.
        whole = starts[:, np.argsort(placed)] if len(starts) else np.zeros((0, self.shape.pieces), np.int64)
        return self._filter.passed(whole, generator, reasons)

    def statistic(
        self, starts: Int[np.ndarray, "chains pieces"], generator: np.random.Generator
    ) -> Float[np.ndarray, "chains"]:
        """E[Δ_d] of finished chains, eq. (8)."""
        return self._filter.statistic(starts, generator)

    def _extend(
        self,
        key: jax.Array,
        starts: np.ndarray,
        owners: np.ndarray,
        sums: np.ndarray,
        placed: list[int],
        piece: int,
        numbers: np.ndarray,
        candidates: Pool,
        centre: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Windows for one more piece: their numbers, the new bias sums, and what became of each chain."""
        chains = len(starts)
        if self.settings.rule == "argmin":
            ends = self.latents[starts[:, -1] + self.shape.segment - 1]
            places = nearest_targets(
                self.latents, self.windows, ends, owners, self.gauge, self.gap, self.settings.distinct
            )
            return places, sums, np.where(places < 0, EMPTY_SHELL, CHOSEN)
        known_rows = (starts[:, :, None] + self._probes).reshape(chains, -1)
        # Chains that have died leave gaps: padding to one of few sizes keeps compilations few.
        pad = room(chains, self.settings.batch) - chains
        positions = (np.array(placed)[:, None] * self.shape.period + self._probes).ravel()
        chosen, new_sums, outcome = extend(
            key,
            Known(
                jnp.asarray(padded(self.latents[known_rows] - centre, pad)),
                jnp.asarray(positions),
                jnp.asarray(padded(owners, pad)),
                jnp.asarray(padded(sums, pad)),
            ),
            candidates,
            jnp.asarray(piece * self.shape.period + self._probes),
            shells_for(
                piece,
                placed,
                self.shape,
                probes=len(self._probes),
                gap=self.gap,
                tolerance=self.settings.tolerance,
                threshold=self.settings.threshold,
                order=self.settings.placing,
            ),
            gauge=self.gauge,
            threshold=self.settings.threshold,
            shortlist=self.settings.shortlist,
            contest=self.settings.contest,
            distinct=self.settings.distinct,
        )
        return (
            numbers[np.asarray(chosen)[:chains]],
            np.asarray(new_sums)[:chains],
            np.asarray(outcome)[:chains],
        )

    def _looked_at(
        self, seed: int, number: int, chains: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, Pool, np.ndarray]:
        """A stretch of the pool, as long as the number of chains allows; which one is chance."""
        held = self._pool(seed, number // RENEWED)
        size = self.settings.looks * self.settings.batch // room(chains, self.settings.batch)
        first = int(generator.integers(max(len(held.places) - size, 0) + 1))
        part = slice(first, first + size)
        whole = size >= len(held.places)
        pool = held.pool if whole else stretch(held.pool, first, first + size)
        return held.places[part], pool, held.centre

    def _pool(self, seed: int, era: int) -> Held:
        if self._held is None or self._held.drawn != (seed, era):
            generator = np.random.default_rng([seed, era, 1])
            size = min(self.settings.pool, len(self.windows.starts))
            places = generator.choice(len(self.windows.starts), size=size, replace=False)
            seen = self._seen(self.windows.starts[places])
            owners, sums = self.windows.trajectories[places], self._own_sums(seen)
            centre = seen.mean(axis=(0, 1))
            self._held = Held((seed, era), places, pool_of(seen - centre, owners, sums), centre)
        return self._held

    def _seen(self, starts: np.ndarray) -> np.ndarray:
        return self.latents[starts[:, None] + self._probes]

    def _own_sums(self, seen: np.ndarray) -> np.ndarray:
        return np.asarray(_probe_bias_sum(self.gauge, jnp.asarray(seen), tuple(self._probes.tolist())))


@partial(jax.jit, static_argnums=(0, 2))
def _probe_bias_sum(
    gauge: Gauge, seen: Float[Array, "windows probes latent"], positions: tuple[int, ...]
) -> Float[Array, "windows"]:
    """Summed over all pairs of the few probes, each once."""
    total = jnp.zeros(len(seen))
    for i, j in combinations(range(len(positions)), 2):
        total += jnp.abs(positions[j] - positions[i] - gauge(seen[:, i], seen[:, j]))
    return total
