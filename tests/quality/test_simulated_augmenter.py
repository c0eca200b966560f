"""The simulator as a method: batches that depend on seed and number alone, with accounts that add up."""

import dataclasses

import numpy as np
import pytest

from astro_rl.augment import fitting
from astro_rl.augment.settings import settings_for
from astro_rl.augmenters.base import FittedAugmenter, Proposer
from astro_rl.data import Dataset, check_dataset
from astro_rl.errors import ConfigError
from astro_rl.quality import simulated_augmenter
from astro_rl.quality.simulated_augmenter import FittedSimulator, SimulatedProposer
from astro_rl.quality.truth import truth_of
from astro_rl.run.methods import augment_method
from astro_rl.stitch.filtering import ChainFilter
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.selection import RealWindows
from astro_rl.tasks import Task
from tests.fitted import SIZES, Fitted

SHAPE = ChainShape(pieces=2, segment=8, mask=10)


def test_a_selections_chains_are_driven(made: dict[str, tuple[Dataset, Task]]) -> None:
    dataset, task = made["pointmaze-medium-stitch"]
    judge = ChainFilter(np.zeros((dataset.n_rows, 1), np.float32), Gauge(0.99, literal=True), SHAPE, 4, None)
    selection = RealWindows(np.asarray(dataset.offsets[:-1]), judge)
    proposer = SimulatedProposer(selection, dataset, task, SHAPE, 1.0, 1.0, seed=3, attempts=2, workers=0)
    assert isinstance(proposer, Proposer)
    batch, other = proposer.batch(1), proposer.batch(0)
    assert (batch.chains.proposed, batch.chains.kept) == (4, 4)
    assert batch.completions.proposed == batch.completions.kept == 4
    assert batch.dataset is not None and other.dataset is not None
    check_dataset(batch.dataset)
    assert truth_of(batch.dataset, task, rows=50, sequences=2).kinds["generated"].contradicted == 0
    again = dataclasses.replace(proposer).batch(1)
    assert again.dataset is not None and again.dataset.digest() == batch.dataset.digest()
    assert batch.dataset.digest() != other.dataset.digest()


def test_a_fits_chains_in_the_simulator(
    made: dict[str, tuple[Dataset, Task]], fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First weights will do: which chains are driven is the selection's affair, and it draws them at random here."""
    dataset, task = made["pointmaze-medium-stitch"]
    limits = fitted.stitcher.models.limits
    monkeypatch.setattr(fitting, "fit_chunk", lambda model, state, *_: (state, {"loss": np.zeros(())}))
    monkeypatch.setattr(fitting, "measure_limits", lambda *_, **__: limits)
    monkeypatch.setattr(
        simulated_augmenter, "limits_for", lambda *_: dataclasses.replace(limits, jump_xy=limits.jump)
    )
    settings = settings_for("tiny", {**SIZES, "generate.selection": "random", "generate.search.batch": 8})
    models = fitting.fit(dataset, settings, shape=ChainShape(2, 6, 6))
    simulator = FittedSimulator(models, attempts=1, workers=0)
    assert isinstance(simulator, FittedAugmenter)
    filled = augment_method(simulator, dataset, 40, task=task)
    lineage = filled.info["lineage"]
    assert lineage["method"] == "simulated" and filled.n_transitions >= 40
    assert lineage["chains"]["kept"] == lineage["completions"]["proposed"], "two pieces, one gap a chain"
    assert set(filled.extras["source_step"] >= 0) == {True, False}
    with pytest.raises(ConfigError, match="The simulator is a task's"):
        simulator.propose(dataset, task=None, seed=0)
