"""Ablations by name: what each changes, what each fits, and that each writes data as ASTRO itself does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl.augment import fitting
from astro_rl.augment.settings import settings_for
from astro_rl.augmenters import states
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.augmenters.states import FittedStates, plan_like
from astro_rl.augmenters.variants import APPENDIX_D, VARIANTS, settings_of, variant_named, variant_of
from astro_rl.data import check_dataset
from astro_rl.errors import ConfigError
from astro_rl.run.methods import augment_method
from astro_rl.run.models import load_fitted, save_fitted
from astro_rl.run.variants import fit_variant
from astro_rl.stateplan.settings import state_plan_settings
from astro_rl.stitch.geometry import ChainShape
from tests.augment.watching import Watching
from tests.fitted import Fitted

PAPER = ChainShape(5, 18, 18)
SMALL_PLAN = state_plan_settings(
    "tiny",
    {"states.steps": 20, "states.log_every": 20, "inverse.steps": 100, "inverse.log_every": 100},
)


def at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = getattr(record, name)
    return record


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - {"anchored"}))
def test_a_variant_changes_what_its_row_says_and_nothing_else(name: str) -> None:
    base = settings_for("cpu")
    settings, shape = settings_of(name, base, PAPER)
    for path, value in VARIANTS[name].changes.items():
        assert at(settings, path) == value != at(base, path), path
    changed_stages = {path.split(".")[0] for path in VARIANTS[name].changes}
    for part in ("temporal", "dynamics", "planner", "generate", "calibration", "held_out"):
        assert (getattr(settings, part) == getattr(base, part)) == (part not in changed_stages), part
    assert (shape != PAPER) == (name in ("mask-third", "mask-triple"))
    assert VARIANTS[name].what


def test_the_papers_ablations_are_there() -> None:
    """Tables 2 and 4, and appendix D, on the paper's own chain of 5 · (18 + 18)."""
    base = settings_for("paper")
    assert {"rand", "pre-euc", "mb", "si", "reg-only", "sc-only"} <= set(VARIANTS)
    for length, segment in ((120, 12), (160, 16), (200, 20)):
        assert settings_of(f"horizon-{length}", base, PAPER)[1] == ChainShape(5, segment, segment)
    for pieces, horizon in ((3, 108), (5, 180), (7, 252)):
        shape = settings_of(f"pieces-{pieces}", base, PAPER)[1]
        assert (shape.pieces, shape.segment, shape.horizon) == (pieces, 18, horizon)
    for threshold in (5, 3, 2):
        settings, shape = settings_of(f"threshold-{threshold}", base, PAPER)
        assert settings.generate.search.threshold == threshold and shape == PAPER
    assert settings_of("mask-third", base, PAPER)[1] == ChainShape(5, 27, 9)
    assert settings_of("mask-triple", base, PAPER)[1] == ChainShape(5, 9, 27)
    for names in APPENDIX_D.values():
        assert len({settings_of(name, base, PAPER) for name in names}) == 3
    assert settings_of("anchored", base, PAPER)[0].generate.mode == "anchored"


def test_without_guidance_nothing_of_the_deviation_is_left() -> None:
    planner = settings_of("mb", settings_for("cpu"), PAPER)[0].planner
    assert (planner.feedback.kind, planner.correction, planner.regularisation) == ("none", False, 0.0)
    only = settings_of("reg-only", settings_for("cpu"), PAPER)[0].planner
    assert (only.feedback.kind, only.correction, only.regularisation) == ("none", False, 1.0)


@pytest.mark.parametrize("name", ["pieces-2.5", "threshold--1", "horizon-x", "pieces", "nobody-3"])
def test_names_of_no_variant(name: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)No variant.*rand.*threshold-N"):
        variant_named(name)


def test_what_cannot_be_or_would_be_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"already what 'rollout'"):
        settings_of("rollout", settings_for("paper"), PAPER)
    with pytest.raises(ConfigError, match="whole numbers"):
        settings_of("horizon-125", settings_for("cpu"), PAPER)
    with pytest.raises(ConfigError, match="cannot be divided"):
        settings_of("mask-third", settings_for("cpu"), ChainShape(2, 9, 9))


@pytest.fixture
def learns_nothing(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "fit_chunk", lambda model, state, *_: (state, {"loss": np.zeros(())}))
    for module in (fitting, states):
        monkeypatch.setattr(module, "measure_limits", lambda *_, **__: fitted.stitcher.models.limits)


@pytest.mark.parametrize(
    ("names", "stages"),
    [
        ("astro rand pre-euc argmin literal no-refine regenerated threshold-10 pieces-3", []),
        ("mb reg-only sc-only steps-delta residual-delta full-delta", ["planner"]),
        ("rollout horizon-48", ["dynamics", "planner"]),
        ("si", ["states", "inverse"]),
    ],
)
def test_a_variant_fits_what_it_changes(
    fitted: Fitted, learns_nothing: None, names: str, stages: list[str]
) -> None:
    base = fitted.stitcher.models
    for name in names.split():
        keeper = Watching()
        variant = variant_of(base, name, fitted.dataset, keeper=keeper, plan=SMALL_PLAN)
        assert keeper.fitted == stages, name
        assert variant.source_digest == base.source_digest
        own = variant.models if isinstance(variant, FittedAstro | FittedStates) else None
        assert own is not None and own.temporal is base.temporal, "ψ is the base's"
        if not stages:
            assert variant.digest() == base.digest(), "the very same weights"


def test_a_variant_in_a_folder_is_read_and_not_repeated(
    fitted: Fitted, learns_nothing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, latents = fitted.stitcher.models, np.load(fitted.folder / "latents.npy")
    made = fit_variant(base, "sc-only", fitted.dataset, out=tmp_path / "sc", latents=latents)
    assert isinstance(made, FittedAstro) and made.latents is latents
    monkeypatch.setattr(fitting, "run_updates", None)
    again = fit_variant(base, "sc-only", fitted.dataset, out=tmp_path / "sc", latents=latents)
    assert again.digest() == made.digest() == load_fitted(tmp_path / "sc").digest()
    assert isinstance(again, FittedAstro) and again.latents is latents
    with pytest.raises(ConfigError, match="other settings"):
        fit_variant(base, "reg-only", fitted.dataset, out=tmp_path / "sc")


def test_sizes_of_si_are_those_of_the_dynamics_model() -> None:
    base = settings_for("cpu")
    plan = plan_like(base)
    assert (plan.states.net, plan.states.steps) == (base.dynamics.net, base.dynamics.steps)
    assert (plan.states.batch_size, plan.states.learning_rate) == (64, base.dynamics.learning_rate)


def test_states_first_writes_data_as_astro_does(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same chains, other states and actions; saved and loaded, the same bytes. First weights will do for that."""
    monkeypatch.setattr(fitting, "fit_chunk", lambda model, state, *_: (state, {"loss": np.zeros(())}))
    base, latents = fitted.stitcher.models, np.load(fitted.folder / "latents.npy")
    variant = variant_of(base, "si", fitted.dataset, plan=SMALL_PLAN, latents=latents)
    made = augment_method(variant, fitted.dataset, 60, seed=2)
    check_dataset(made)
    lineage = made.info["lineage"]
    assert lineage["method"] == "astro-si" and lineage["models_digest"] == variant.digest() != base.digest()
    one, other = (
        method.propose(fitted.dataset, task=None, seed=2).batch(0)
        for method in (variant, FittedAstro(base, latents))
    )
    np.testing.assert_array_equal(one.starts, other.starts)
    assert one.dataset is not None and other.dataset is not None
    assert set(one.dataset.extras) == set(other.dataset.extras)
    assert one.dataset.digest() != other.dataset.digest()
    assert lineage["limits"]["jump"][-1] == 0.0, "states that are known are kept to the bit"
    loaded = load_fitted(save_fitted(variant, tmp_path / "si"))
    assert augment_method(loaded, fitted.dataset, 60, seed=2).digest() == made.digest()
