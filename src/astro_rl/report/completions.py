"""The same pairs given to several methods, and kept as JSON for a page that is made later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from astro_rl.augment.jobs import Completes, complete_jobs
from astro_rl.augment.models import FittedModels
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, ConfigError, DataError
from astro_rl.report.evidence import Attempt, Pair
from astro_rl.run.files import read_json, write_json
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch
from astro_rl.stitch.windows import find_windows
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import Task

FORMAT = "astro-rl pairs"
PAIRS = 8
DIGITS = 4


def drawn_pairs(
    models: FittedModels,
    dataset: Dataset,
    *,
    count: int = PAIRS,
    seed: int = 0,
    latents: Float[np.ndarray, "rows latent"] | None = None,
) -> Int[np.ndarray, "pairs 2"]:
    """First rows of source and target, as the models' own search puts them together: the first gap of its first chains.
    Nobody looks at them before."""
    settings = models.settings.generate.search
    latents = models.temporal.encode(dataset.observations) if latents is None else latents
    offsets = np.asarray(dataset.offsets)
    windows = find_windows(latents, offsets, models.shape.segment, models.gauge, settings.threshold)
    search = ChainSearch(latents, windows, models.gauge, models.shape, settings)
    return search.batch(seed, 0).starts[:count, :2]


def completed_pairs(
    completers: Mapping[str, Completes],
    dataset: Dataset,
    normaliser: Normaliser,
    shape: ChainShape,
    starts: Int[np.ndarray, "pairs 2"],
    xy: tuple[int, int],
    *,
    task: Task | None = None,
    seed: int = 0,
) -> tuple[Pair, ...]:
    """Each pair by each method, all with the same noise. With a task whose simulator can be put into any state, the
    actions are driven in it as well.

    Methods are given all of the source piece where their horizons hold it, else its last state alone.
    """
    if not len(starts):
        raise DataError("There is no pair to complete.", field="starts", expected="at least one")
    rows = pair_rows(shape, starts, min(completer.horizon for completer in completers.values()))
    wide, plane = rows.shape[1], list(xy)
    first = np.asarray(dataset.observations[rows[:, 0]])
    attempts: list[dict[str, Attempt]] = [{} for _ in starts]
    for name, completer in completers.items():
        padded = np.pad(rows, ((0, 0), (0, completer.horizon - wide)), constant_values=-1)
        done = complete_jobs(completer, dataset, normaliser, padded, jax.random.key(seed), batch=len(padded))
        states = normaliser.undo(done.states[:, :wide])
        driven = _driven(task, first, done.actions[:, : wide - 1])
        for number, found in enumerate(attempts):
            reached = None if driven is None else np.asarray(driven[number][:, plane], np.float64)
            found[name] = Attempt(np.asarray(states[number][:, plane], np.float64), reached)
    known = rows >= 0
    given = np.where(known[..., None], dataset.observations[np.maximum(rows, 0)][..., plane], 0.0)
    owners = np.searchsorted(np.asarray(dataset.offsets), starts, side="right") - 1
    leads = starts[:, :1] + np.arange(shape.segment) if rows[0, 0] > starts[0, 0] else None
    return tuple(
        Pair(
            given=np.asarray(given[number], np.float64),
            known=known[number],
            attempts=attempts[number],
            lead=None
            if leads is None
            else np.asarray(dataset.observations[leads[number]][:, plane], np.float64),
            recordings=(int(owners[number, 0]), int(owners[number, 1])),
        )
        for number in range(len(starts))
    )


def pair_rows(
    shape: ChainShape, starts: Int[np.ndarray, "pairs 2"], horizon: int
) -> Int[np.ndarray, "pairs states"]:
    """Source piece, MASK, target piece; with a short horizon the source's last state, MASK, target piece."""
    least, whole = 1 + shape.period, shape.segment + shape.period
    if horizon < least:
        raise ConfigError(
            "The models' horizon is too short for a gap.",
            field="horizon",
            found=horizon,
            expected=f">= {least}",
        )
    source = shape.segment if horizon >= whole else 1
    rows = np.full((len(starts), source + shape.period), -1, np.int64)
    rows[:, :source] = starts[:, :1] + np.arange(shape.segment - source, shape.segment)
    rows[:, source + shape.mask :] = starts[:, 1:] + np.arange(shape.segment)
    return rows


def _driven(task: Task | None, first: np.ndarray, actions: np.ndarray) -> list[np.ndarray] | None:
    """Where the actions lead; None where no simulator can say, and where one is not installed."""
    if task is None or not isinstance(task.state, StateMap) or task.draws_globally_in_step:
        return None
    from astro_rl.quality.replay import open_loops

    try:
        return open_loops(task, first, list(np.clip(actions, -1.0, 1.0)))
    except (AstroError, ImportError):
        return None


def save_pairs(pairs: tuple[Pair, ...], path: str | Path) -> None:
    """As JSON, places to four decimals."""

    def places(xy: np.ndarray | None) -> list[list[float]] | None:
        return None if xy is None else np.round(np.asarray(xy, np.float64), DIGITS).tolist()

    saved = [
        {
            "given": places(pair.given),
            "known": pair.known.tolist(),
            "lead": places(pair.lead),
            "recordings": pair.recordings,
            "attempts": {
                name: {"xy": places(attempt.xy), "driven": places(attempt.driven)}
                for name, attempt in pair.attempts.items()
            },
        }
        for pair in pairs
    ]
    write_json(Path(path), {"format": FORMAT, "pairs": saved})


def load_pairs(path: str | Path) -> tuple[Pair, ...]:
    saved = read_json(Path(path))
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise DataError("This file holds no completed pairs.", file=path, expected=f'"format": "{FORMAT}"')
    try:
        return tuple(_pair(each) for each in saved["pairs"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError("The completed pairs are damaged.", file=path, found=repr(error)) from None


def _pair(saved: Mapping[str, Any]) -> Pair:
    def places(xy: Any) -> np.ndarray | None:
        return None if xy is None else np.array(xy, np.float64).reshape(-1, 2)

    return Pair(
        given=np.array(saved["given"], np.float64).reshape(-1, 2),
        known=np.array(saved["known"], bool),
        attempts={
            name: Attempt(np.array(each["xy"], np.float64).reshape(-1, 2), places(each["driven"]))
            for name, each in saved["attempts"].items()
        },
        lead=places(saved["lead"]),
        recordings=None if saved["recordings"] is None else tuple(saved["recordings"]),
    )
