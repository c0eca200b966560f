"""What an evaluation found: every episode's raw return, length and success, and the summary that tables
print.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.errors import DataError
from astro_rl.evaluate.statistics import Summary, summarise
from astro_rl.run.files import read_json, write_json

FORMAT, FORMAT_VERSION = "astro-rl evaluation", 1
KEYS = ("format", "format_version", "environment", "seeds", "returns", "lengths", "successes")


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """A row a training seed, a column an episode. Nothing is averaged away."""

    environment: str
    seeds: tuple[int, ...]
    returns: Float[np.ndarray, "seeds episodes"]
    """Sums of rewards as the environment gave them: neither discounted nor normalised."""
    lengths: Int[np.ndarray, "seeds episodes"]
    successes: Bool[np.ndarray, "seeds episodes"] | None
    """Whether any step of the episode reported `info["success"]`; None where the environment never reports
    it.
    """

    @property
    def episodes(self) -> int:
        return self.returns.shape[1]

    @property
    def success_rates(self) -> Float[np.ndarray, "seeds"] | None:
        """Each seed's share of successful episodes, in percent, as the field's tables have it."""
        return None if self.successes is None else 100.0 * self.successes.mean(axis=1)

    @property
    def scores(self) -> Float[np.ndarray, "seeds"]:
        """One figure a seed: success rate in percent, or the mean return where success is not reported."""
        rates = self.success_rates
        return self.returns.mean(axis=1) if rates is None else rates

    def summary(self) -> Summary:
        """Mean, spread and interval over seeds. A seed without one success has never learned."""
        return summarise(self.scores, floor=None if self.successes is None else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain lists; Python writes floats so that reading gives the same bits."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "environment": self.environment,
            "seeds": list(self.seeds),
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
            "successes": None if self.successes is None else self.successes.tolist(),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any], *, source: str | Path | None = None) -> EvaluationResult:
        """The result again; anything missing, unknown or of another type is an error that names it."""
        if not isinstance(record, Mapping) or set(record) != set(KEYS):
            found = sorted(record) if isinstance(record, Mapping) else type(record).__name__
            raise DataError("Not an evaluation's record.", file=source, found=found, expected=sorted(KEYS))
        for key, value in (("format", FORMAT), ("format_version", FORMAT_VERSION)):
            if record[key] != value:
                raise DataError(
                    "Cannot read this record.", file=source, field=key, found=record[key], expected=value
                )
        environment, seeds = record["environment"], record["seeds"]
        if not isinstance(environment, str):
            raise DataError(
                "Not a name.", file=source, field="environment", found=environment, expected="text"
            )
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
            raise DataError(
                "Not a list of seeds.", file=source, field="seeds", found=seeds, expected="whole numbers"
            )
        returns = _table(record, "returns", (float, int), np.float64, len(seeds), None, source)
        episodes = returns.shape[1]
        lengths = _table(record, "lengths", (int,), np.int64, len(seeds), episodes, source)
        successes = None
        if record["successes"] is not None:
            successes = _table(record, "successes", (bool,), np.bool_, len(seeds), episodes, source)
        return cls(environment, tuple(seeds), returns, lengths, successes)

    def save(self, path: Path) -> None:
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> EvaluationResult:
        return cls.from_json(read_json(path), source=path)

    def dumps(self) -> str:
        return json.dumps(self.to_json(), allow_nan=False)

    def __repr__(self) -> str:
        return f"EvaluationResult({self.environment}, {len(self.seeds)} seeds, {self.episodes} episodes each)"


def _table(
    record: Mapping[str, Any],
    key: str,
    kinds: tuple[type, ...],
    dtype: type,
    rows: int,
    columns: int | None,
    source: str | Path | None,
) -> np.ndarray:
    """A list of equally long lists of one type. `type(x) is` on purpose: True would pass for the number 1."""
    table = record[key]
    if not isinstance(table, list) or not all(isinstance(row, list) and row for row in table):
        raise DataError(
            "Not a table.", file=source, field=key, found=type(table).__name__, expected="a list of lists"
        )
    widths = {len(row) for row in table}
    if len(table) != rows or widths != ({columns} if columns else {len(table[0])}):
        raise DataError(
            "A table of the wrong shape.",
            file=source,
            field=key,
            found=f"{len(table)} rows of {sorted(widths)}",
            expected=f"{rows} rows, one a seed, of {columns or 'equal'} episodes",
        )
    odd = [cell for row in table for cell in row if type(cell) not in kinds or not math.isfinite(cell)]
    if odd:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise DataError("A value of the wrong type.", file=source, field=key, found=odd[0], expected=expected)
    return np.array(table, dtype=dtype)
