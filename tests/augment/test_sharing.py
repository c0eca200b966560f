"""What an ablation takes from another fit: all that would come out the same, and nothing else."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl.augment import fitting
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import changed
from astro_rl.errors import ConfigError
from astro_rl.run.fit import fit_models
from astro_rl.run.models import load_models
from astro_rl.stitch.geometry import ChainShape
from tests.augment.watching import Watching
from tests.fitted import SHAPE, Fitted, walks

WITHOUT_FEEDBACK = {
    "planner.feedback.kind": "none",
    "planner.correction": False,
    "planner.regularisation": 0.0,
    "generate.sampling.refine": 0,
}


def again(fitted: Fitted, changes: Mapping[str, Any], **options: Any) -> tuple[FittedModels, list[str]]:
    base, keeper = fitted.stitcher.models, Watching()
    options = {"shape": ChainShape(*SHAPE), "base": base, **options}
    dataset = options.pop("dataset", fitted.dataset)
    models = fitting.fit(dataset, changed(base.settings, changes), keeper=keeper, **options)
    return models, keeper.fitted


@pytest.fixture
def learns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which stages are fitted is told by the keeper; compiling other models would take a minute."""
    monkeypatch.setattr(fitting, "fit_chunk", lambda model, state, *_: (state, {"loss": np.zeros(())}))


def test_equal_settings_take_everything(fitted: Fitted) -> None:
    base = fitted.stitcher.models
    models, stages = again(fitted, {})
    assert stages == []
    assert models.digest() == base.digest()
    assert (models.gauge, models.limits) == (base.gauge, base.limits)


def test_a_planner_of_other_settings_is_the_one_that_a_whole_fit_gives(fitted: Fitted) -> None:
    """Only the planner is fitted, and to the very weights of a fit without a base."""
    changes = WITHOUT_FEEDBACK
    models, stages = again(fitted, changes)
    assert stages == ["planner"]
    assert models.temporal is fitted.stitcher.models.temporal
    assert models.dynamics_network is fitted.stitcher.models.dynamics_network
    alone, all_stages = again(fitted, changes, base=None)
    assert all_stages == ["temporal", "dynamics", "planner"]
    assert models.digest() == alone.digest() != fitted.stitcher.models.digest()
    assert (models.gauge, models.limits) == (alone.gauge, alone.limits)


@pytest.mark.parametrize(
    ("changes", "options", "stages"),
    [
        ({"planner.feedback.kind": "steps"}, {}, ["planner"]),
        ({"dynamics.steps": 20}, {}, ["dynamics", "planner"]),
        ({"temporal.expectile": 0.9}, {}, ["temporal"]),
        # The models' horizon and masks, and so both models, but no temporal distance.
        ({}, {"shape": ChainShape(2, 4, 8)}, ["planner"]),
        ({}, {"shape": ChainShape(2, 8, 8)}, ["dynamics", "planner"]),
        # Gap by gap, the number of pieces changes neither.
        ({}, {"shape": ChainShape(3, 6, 6)}, []),
        ({"generate.mode": "rollout"}, {}, ["dynamics", "planner"]),
        ({"calibration": "literal"}, {}, []),
        ({"generate.sampling.refine": 0, "generate.search.threshold": 40.0}, {}, []),
        ({"held_out": 0.3}, {}, ["dynamics", "planner"]),
        ({"training_rows": 1000}, {}, ["temporal", "dynamics", "planner"]),
        ({}, {"seed": 1}, ["temporal", "dynamics", "planner"]),
        ({}, {"seed": 1, "any_seed": ("temporal",)}, ["dynamics", "planner"]),
        ({"planner.steps": 20}, {"seed": 1, "any_seed": ("temporal", "dynamics")}, ["planner"]),
        ({}, {"dataset": walks(1)}, ["temporal", "dynamics", "planner"]),
    ],
)
def test_a_stage_is_fitted_when_something_it_depends_on_differs(
    fitted: Fitted,
    learns_nothing: None,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict,
    options: dict,
    stages: list[str],
) -> None:
    monkeypatch.setattr(fitting, "measure_limits", lambda *_, **__: fitted.stitcher.models.limits)
    monkeypatch.setattr(fitting, "gauge_of", lambda *_: fitted.stitcher.models.gauge)
    _, found = again(fitted, changes, **options)
    assert found == stages


def test_a_stage_of_another_seed_stays_one(
    fitted: Fitted, learns_nothing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit that took ψ of seed 0 gives it to no fit of its own seed 1, which would have learned another."""
    monkeypatch.setattr(fitting, "measure_limits", lambda *_, **__: fitted.stitcher.models.limits)
    mixed, _ = again(fitted, {}, seed=1, any_seed=("temporal", "dynamics"))
    assert dict(mixed.seeds) == {"temporal": 0, "dynamics": 0} and mixed.seed_of("planner") == 1
    _, stages = again(fitted, {}, seed=1, base=mixed)
    assert stages == ["temporal", "dynamics", "planner"]


def test_what_cannot_be_taken_though_it_is_asked_for_is_an_error(fitted: Fitted) -> None:
    with pytest.raises(ConfigError, match=r"(?s)dynamics model cannot be taken.*dynamics\.steps.*any_seed"):
        again(fitted, {"dynamics.steps": 20}, seed=1, any_seed=("temporal", "dynamics"))
    with pytest.raises(ConfigError, match="the dataset"):
        again(fitted, {}, dataset=walks(1), any_seed=("temporal",))
    with pytest.raises(ConfigError, match="not there"):
        again(fitted, {}, base=None, any_seed=("temporal",))
    with pytest.raises(ConfigError, match="dynamics as well"):
        again(fitted, {}, any_seed=("planner",))


def test_a_base_for_a_folder(fitted: Fitted, tmp_path: Path) -> None:
    """The folder holds a whole fit, which needs no base any more. The base's own latents are not written again."""
    base, folder = fitted.stitcher.models, tmp_path / "fit"
    asked: dict[str, Any] = {"shape": ChainShape(*SHAPE), "seed": 0, "out": folder}
    models = fit_models(fitted.dataset, base.settings, base=base, **asked)
    assert models.digest() == base.digest() == load_models(folder).digest()
    assert not (folder / "latents.npy").exists()
    assert fit_models(fitted.dataset, base.settings, **asked).digest() == base.digest()


def test_seeds_of_stages_are_saved(fitted: Fitted, tmp_path: Path) -> None:
    from astro_rl.run.models import save_models

    models = dataclasses.replace(fitted.stitcher.models, seeds={"temporal": 3})
    assert load_models(save_models(models, tmp_path / "m")).seeds == {"temporal": 3}
