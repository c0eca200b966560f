"""Raw records, one line of JSON each: what tables are rebuilt from, and nothing else.

A line of scores holds the task, the learner, the arm, its seeds and every episode's return; `benchmarks.helps` writes
the same, so that one reader serves both. Lines of measurements say what they are in `record`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.errors import DataError
from astro_rl.evaluate.result import EvaluationResult

RECORDS = "records.jsonl"
MEASUREMENTS = ("geometry", "completion", "selection")
SCORE_KEYS = ("data", "task", "learner", "arm", "seeds", "scores", "updates")


@dataclass(frozen=True)
class Setup:
    """What has to be equal for arms to be compared."""

    data: str
    preset: str
    set: tuple[str, ...]
    updates: int

    def __str__(self) -> str:
        changed = f", {' '.join(self.set)}" if self.set else ""
        return f"{self.updates:,} updates, {self.preset}{changed}"


@dataclass(frozen=True)
class Scores:
    """One arm's scores under one learner on one task: a figure a seed."""

    task: str
    learner: str
    arm: str
    setup: Setup
    by_seed: Mapping[int, float]
    episodes: int | None
    """A seed's; None where a record does not tell."""

    @property
    def values(self) -> np.ndarray:
        return np.array([self.by_seed[seed] for seed in sorted(self.by_seed)], np.float64)


@dataclass(frozen=True)
class Measurement:
    """One row of a table without a learner."""

    kind: str
    data: str
    arm: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Records:
    """All that was read, and what failed on the way."""

    scores: tuple[Scores, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Cell to its error."""

    def of_kind(self, kind: str) -> list[Measurement]:
        return [one for one in self.measurements if one.kind == kind]


def read(places: Iterable[str | Path]) -> Records:
    """Folders of `astro-rl bench` and files of JSON lines alike, put together."""
    lines, failures = [], {}
    for place in map(Path, places):
        file = place / RECORDS if place.is_dir() else place
        if place.is_dir():
            failures |= failures_in(place)
            if not file.exists() and failures:
                continue
        lines += _lines(file)
    scores = _scores([line for line in lines if line[2].get("record", "scores") == "scores"])
    return Records(scores, tuple(_measurements(lines)), failures)


def failures_in(folder: Path) -> dict[str, str]:
    """Cells of a bench folder whose last attempt failed."""
    found = {}
    for path in sorted((folder / "cells").glob("*/failed.json")):
        if not path.with_name("record.json").exists():
            found[path.parent.name] = str(json.loads(path.read_text()).get("error", "")).splitlines()[0]
    return found


def _lines(file: Path) -> list[tuple[Path, int, dict[str, Any]]]:
    try:
        text = file.read_text()
    except OSError as error:
        raise DataError(
            "There are no records here.",
            file=file,
            found=error.strerror,
            fix="name a folder that `astro-rl bench` has worked in, or a file of JSON lines",
        ) from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise DataError("A line is no record.", file=file, field=f"line {number}", found=line[:60])
        found.append((file, number, record))
    return found


def _scores(lines: list[tuple[Path, int, dict[str, Any]]]) -> tuple[Scores, ...]:
    """Lines of one arm that differ in their seeds are put together; the same seed twice has to say the same."""
    arms: dict[tuple[str, str, str, Setup], tuple[dict[int, float], list[int]]] = {}
    for file, number, record in lines:
        place = f"line {number}"
        missing = [key for key in SCORE_KEYS if key not in record]
        if missing:
            raise DataError("A record of scores lacks fields.", file=file, field=place, found=missing)
        setup = Setup(
            record["data"], record.get("preset", ""), tuple(record.get("set", ())), record["updates"]
        )
        key = (record["task"], record["learner"], record["arm"], setup)
        by_seed, episodes = arms.setdefault(key, ({}, []))
        if "episodes" in record:
            result = EvaluationResult.from_json(record["episodes"], source=file)
            episodes.append(result.episodes)
            if not np.allclose(result.scores, record["scores"]):
                raise DataError("A record's scores are not those of its episodes.", file=file, field=place)
        for seed, score in zip(record["seeds"], record["scores"], strict=True):
            if by_seed.setdefault(seed, score) != score:
                raise DataError(
                    "Two records disagree about one seed.",
                    file=file,
                    field=f"{place}: {record['task']}, {record['learner']}, {record['arm']}, seed {seed}",
                    found=score,
                    expected=by_seed[seed],
                )
    return tuple(
        Scores(task, learner, arm, setup, by_seed, min(episodes) if episodes else None)
        for (task, learner, arm, setup), (by_seed, episodes) in arms.items()
    )


def _measurements(lines: list[tuple[Path, int, dict[str, Any]]]) -> Iterable[Measurement]:
    """The last line of a row counts."""
    latest: dict[tuple[str, str, str], Measurement] = {}
    for file, number, record in lines:
        kind = record.get("record", "scores")
        if kind == "scores":
            continue
        if kind not in MEASUREMENTS or not isinstance(record.get("values"), dict):
            raise DataError("An unknown kind of record.", file=file, field=f"line {number}", found=kind)
        latest[kind, record["data"], record["arm"]] = Measurement(
            kind, record["data"], record["arm"], record["values"]
        )
    return latest.values()
