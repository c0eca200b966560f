"""One tiny fit of DiffStitch, and what its folder held on the way."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from astro_rl.augmenters.diffstitch.method import DiffStitch, FittedDiffStitch
from astro_rl.augmenters.registry import augmenter_for
from astro_rl.data.schema import Dataset
from astro_rl.run import fit as fit_module
from astro_rl.run.methods import fit_method
from tests.fitted import walks

SIZES: dict[str, Any] = {
    "horizon": 12,
    "shortest": 3,
    "longest": 6,
    "states.steps": 20,
    "states.log_every": 10,
    "inverse.steps": 20,
    "inverse.log_every": 10,
    "onestep.steps": 20,
    "onestep.log_every": 10,
    "generate.piece": 4,
    "generate.batch": 24,
    "generate.completion_batch": 16,
    "generate.candidates": 16,
    "generate.limit_windows": 16,
    "generate.rewards.hidden": (16,),
    "generate.rewards.steps": 500,
    # Models that learned for so short a time come near nothing and deviate by far.
    "generate.threshold": -1.0,
    "generate.deviation_most": 1e6,
}
MOMENTS = {
    ("fitting states", 10),
    ("fitting inverse", 10),
    ("fitting onestep", 20),
    ("measuring real gaps", 16),
}


def augmenter(**changes: Any) -> DiffStitch:
    made = augmenter_for("diffstitch", "tiny", {**SIZES, **changes})
    assert isinstance(made, DiffStitch)
    return made


@dataclass(frozen=True)
class Stitched:
    fitted: FittedDiffStitch
    dataset: Dataset
    folder: Path
    moments: list[Path]
    """The folder as it was at each of `MOMENTS`: what a kill would have left."""


@pytest.fixture(scope="session")
def stitched(tmp_path_factory: pytest.TempPathFactory) -> Stitched:
    base = tmp_path_factory.mktemp("diffstitch")
    whole, dataset = base / "whole", walks()

    @contextmanager
    def bar(described: str, total: int, unit: str) -> Iterator[Callable[[int, int], None]]:
        def report(now: int, total: int) -> None:
            if (described, now) in MOMENTS:
                shutil.copytree(whole, base / f"{described} {now}")

        yield report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "SAVE_SECONDS", 0.0)
        fitted = fit_method(dataset, augmenter(), out=whole, bar=bar)
    assert isinstance(fitted, FittedDiffStitch)
    return Stitched(fitted, dataset, whole, [base / f"{name} {step}" for name, step in sorted(MOMENTS)])
