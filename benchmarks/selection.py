"""How long chains take to find: `python -m benchmarks.selection DATA.npz --model DIR/NAME --out F.jsonl`.

The model is one that `benchmarks.distances --models DIR` kept. Everything that happens once is timed apart (encoding,
dropping windows, compiling); the rest is milliseconds for 10 accepted chains, over n, over Δ_thresh, at the data's own
pace and literally. Beside it: what was rejected and why, and how often the same data is chosen.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from benchmarks.distances import held_out_split, load_model, rounded
from tyro.conf import Positional

from astro_rl.data import load
from astro_rl.stitch.filtering import Chains
from astro_rl.stitch.gauge import Gauge, fit_gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.windows import Windows, find_windows
from astro_rl.temporal.model import TemporalModel

LITERAL_HORIZON = 180
COUNTED = 1_000
"""Accepted chains that diversity is counted over, the same number for every setting."""


@dataclass(frozen=True)
class Arguments:
    """Time the search for chains."""

    data: Positional[Path]
    model: Path
    out: Path
    pieces: tuple[int, ...] = (3, 5, 7)
    thresholds: tuple[float, ...] = (5.0, 3.0, 2.0)
    calibration: tuple[Literal["auto", "literal"], ...] = ("auto", "literal")
    segment: int = 18
    batches: int = 40
    seconds: float = 20.0
    """A setting is given up after so long."""
    settings: str = "{}"
    """Search settings other than the default ones, as JSON."""


@dataclass(frozen=True)
class Case:
    calibration: str
    shape: ChainShape
    threshold: float
    rule: Literal["shell", "argmin"] = "shell"


def main(arguments: Arguments) -> None:
    dataset = load(arguments.data)
    model = load_model(arguments.model, held_out_split(dataset)[0])
    started = time.perf_counter()
    latents = model.encode(dataset.observations)
    once = {"rows": dataset.n_rows, "encode_s": time.perf_counter() - started}
    windows: dict[tuple[str, int, float], tuple[Windows, float]] = {}
    for case in cases(arguments):
        gauge = gauge_for(case, latents, dataset.offsets, model)
        key = (case.calibration, case.shape.segment, case.threshold)
        if key not in windows:
            started = time.perf_counter()
            found = find_windows(latents, dataset.offsets, case.shape.segment, gauge, case.threshold)
            windows[key] = found, time.perf_counter() - started
        found, seconds = windows[key]
        row: dict[str, Any] = {
            "data": arguments.data.stem,
            "calibration": case.calibration,
            "rule": case.rule,
            "n": case.shape.pieces,
            "l": case.shape.segment,
            "L": case.shape.horizon,
            "threshold": case.threshold,
            "slowness": gauge.slowness,
            "posture": gauge.posture,
            "windows": len(found.starts),
            "windows_dropped": found.dropped,
            "windows_s": seconds,
            **once,
        }
        if len(found.starts):
            settings = SearchSettings(
                threshold=case.threshold, rule=case.rule, **json.loads(arguments.settings)
            )
            search = ChainSearch(latents, found, gauge, case.shape, settings)
            row |= {"settings": dataclasses.asdict(settings)} | measured(search, found, arguments)
        with arguments.out.open("a") as file:
            file.write(json.dumps(rounded(row)) + "\n")
        shown = {k: v for k, v in row.items() if k not in ("data", "settings", "rows", "encode_s")}
        print(json.dumps(rounded(shown)), flush=True)


def cases(arguments: Arguments) -> list[Case]:
    """Over n at Δ 3 and over Δ at n = 5. At the data's pace l = M = 18, so L = 36 n; literally L = 180 for every n,
    as near as l = M allows, by either target rule at n = 5."""
    found = []
    for calibration in arguments.calibration:
        for pieces, threshold in [(n, 3.0) for n in arguments.pieces] + [
            (5, threshold) for threshold in arguments.thresholds if threshold != 3.0
        ]:
            segment = arguments.segment if calibration == "auto" else round(LITERAL_HORIZON / (2 * pieces))
            found.append(Case(calibration, ChainShape(pieces, segment, segment), threshold))
        if calibration == "literal":
            found.append(Case(calibration, ChainShape(5, 18, 18), 3.0, "argmin"))
    return found


def gauge_for(case: Case, latents: np.ndarray, offsets: np.ndarray, model: TemporalModel) -> Gauge:
    """As `augment` takes it: the pace of real windows of l states, from a sample of them."""
    if case.calibration == "literal":
        return Gauge(model.discount, literal=True)
    near, far = case.shape.segment - 1, case.shape.period
    return fit_gauge(latents, offsets, near, far, model.discount, np.random.default_rng(0))


def measured(search: ChainSearch, windows: Windows, arguments: Arguments) -> dict[str, Any]:
    """One batch compiles and is not counted. Wall seconds are each batch's own, so that their median tells what an
    undisturbed machine takes even where some were disturbed."""
    started = time.perf_counter()
    search.batch(seed=0, number=0)
    compiling = time.perf_counter() - started
    walls, processor, chains = [], [], list[Chains]()
    while len(walls) < arguments.batches and sum(walls) < arguments.seconds:
        before, cpu = time.perf_counter(), time.process_time()
        chains.append(search.batch(seed=1, number=len(walls)))
        walls.append(time.perf_counter() - before)
        processor.append(time.process_time() - cpu)
    proposed = sum(batch.proposed for batch in chains)
    accepted = sum(len(batch) for batch in chains)
    rejected: Counter[str] = Counter()
    for batch in chains:
        rejected.update(batch.rejected)
    each = accepted / len(chains)
    per_ten = 1e4 / each if each else None
    return {
        "compile_s": compiling,
        "batches": len(chains),
        "proposed": proposed,
        "accepted": accepted,
        "acceptance": accepted / proposed,
        "rejected": {reason: count / proposed for reason, count in rejected.most_common()},
        "batch_ms": {
            "fastest": 1e3 * min(walls),
            "median": 1e3 * float(np.median(walls)),
            "processor": 1e3 * float(np.median(processor)),
        },
        "ms_for_10": None
        if per_ten is None
        else {
            "fastest": per_ten * min(walls),
            "median": per_ten * float(np.median(walls)),
            "processor": per_ten * float(np.median(processor)),
        },
        "load": os.getloadavg()[0],
        "diversity": diversity(np.concatenate([batch.starts for batch in chains])[:COUNTED], windows),
    }


def diversity(starts: np.ndarray, windows: Windows) -> dict[str, float]:
    """Of so many accepted chains: distinct trajectories among those of all pieces, and how many of the targets were
    chosen before, as the same state or as one of its trajectory's."""
    if len(starts) == 0:
        return {}
    owners = windows.trajectories[np.searchsorted(windows.starts, starts)]
    targets, target_owners = starts[:, 1:].ravel(), owners[:, 1:].ravel()
    return {
        "chains": len(starts),
        "distinct_trajectories": len(np.unique(owners)),
        "possible_trajectories": min(owners.size, len(np.unique(windows.trajectories))),
        "repeated_targets": 1 - len(np.unique(targets)) / len(targets),
        "repeated_target_trajectories": 1 - len(np.unique(target_owners)) / len(target_owners),
    }


if __name__ == "__main__":
    main(tyro.cli(Arguments))
