"""Settings by path: presets, unknown names and wrong types before any work, and all of them reach their models."""

import dataclasses
import json

import pytest

from astro_rl.augment.options import GenerateSettings
from astro_rl.augment.settings import (
    PRESETS,
    AstroSettings,
    DynamicsSettings,
    PlannerSettings,
    TemporalSettings,
    changed,
    falling,
    settings_for,
)
from astro_rl.dynamics.model import Dynamics
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from astro_rl.planner.model import Planner
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.learning import TemporalLearner


def test_a_path_and_a_nested_mapping_mean_the_same() -> None:
    by_path = settings_for("tiny", {"dynamics.net.width": 64, "planner.feedback.kind": "residual"})
    nested = settings_for(
        "tiny", {"dynamics": {"net": {"width": 64}}, "planner": {"feedback": {"kind": "residual"}}}
    )
    assert by_path == nested
    assert by_path.dynamics.net == dataclasses.replace(settings_for("tiny").dynamics.net, width=64)
    assert by_path.temporal == settings_for("tiny").temporal


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_preset_says_what_it_changes_and_nothing_else(preset: str) -> None:
    found, defaults = settings_for(preset), AstroSettings()
    assert PRESETS[preset]["temporal"]["steps"] == found.temporal.steps
    assert found.dynamics.net.patch == PRESETS[preset]["dynamics"]["net"]["patch"]
    assert found.temporal.expectile == defaults.temporal.expectile == 0.95
    assert found.planner.feedback == defaults.planner.feedback
    assert found.generate.mode == ("rollout" if preset == "paper" else "anchored")


def test_auto_goes_by_the_machine() -> None:
    assert settings_for("auto") == settings_for("cpu")
    assert settings_for("auto", accelerator=True) == settings_for("paper")
    with pytest.raises(ConfigError, match="No preset") as refused:
        settings_for("tniy")
    assert "did you mean 'tiny'?" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "field", "fix"),
    [
        ({"dynamic.steps": 3}, "dynamic", "did you mean 'dynamics'?"),
        ({"dynamics.stesp": 3}, "dynamics.stesp", "did you mean 'dynamics.steps'?"),
        ({"dynamics": {"net": {"widht": 3}}}, "dynamics.net.widht", "did you mean 'dynamics.net.width'?"),
        ({"generate.search.treshold": 3.0}, "generate.search.treshold", "'generate.search.threshold'?"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_one(change: dict, field: str, fix: str) -> None:
    with pytest.raises(ConfigError, match="There is no setting") as refused:
        settings_for("tiny", change)
    assert refused.value.field == field
    assert fix in str(refused.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dynamics.steps": 3.5}, "dynamics.steps"),
        ({"dynamics.steps": "many"}, "dynamics.steps"),
        ({"planner.correction": 1}, "planner.correction"),
        ({"planner.feedback.kind": "loud"}, "planner.feedback.kind"),
        ({"dynamics.net": 3}, "dynamics.net"),
        ({"held_out.share": 0.1}, "held_out.share"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(change: dict, field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_for("tiny", change)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dynamics.steps": 0}, "dynamics.steps"),
        ({"planner.batch_size": -1}, "planner.batch_size"),
        ({"held_out": 0.5}, "held_out"),
        ({"held_out": 0.0}, "held_out"),
        ({"training_rows": 0}, "training_rows"),
        ({"temporal.expectile": 0.3}, "expectile"),
        ({"generate.deviation_quantile": 0.0}, "deviation_quantile"),
        ({"generate.completion_batch": 0}, "completion_batch"),
        ({"generate.search.threshold": -1.0}, "threshold"),
        ({"generate.filter_real": False}, "filter_real"),
        ({"dynamics.net.heads": 5}, "heads"),
    ],
)
def test_values_out_of_range_and_without_effect_are_refused_before_any_work(change: dict, field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_for("tiny", change)
    assert refused.value.field == field


def test_filter_real_has_an_effect_on_regenerated_windows() -> None:
    change = {"generate": {"chains": "regenerated", "filter_real": False}}
    assert settings_for("tiny", change).generate == dataclasses.replace(
        settings_for("tiny").generate, chains="regenerated", filter_real=False
    )


def test_whole_numbers_lists_and_none_are_taken_as_json_gives_them() -> None:
    found = settings_for("tiny", {"temporal.hidden": [8, 8], "held_out": 0.25, "planner.regularisation": 2})
    assert found.temporal.hidden == (8, 8)
    assert found.planner.regularisation == 2.0 and isinstance(found.planner.regularisation, float)
    assert settings_for("tiny", {"temporal.discount": None}).temporal.discount is None
    assert settings_for("tiny", {"generate.search.filter_pairs": 100}).generate.search.filter_pairs == 100


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_settings_survive_json(preset: str) -> None:
    settings = settings_for(preset, {"planner.feedback.levels": [0.5, 1.0]})
    assert AstroSettings.from_json(json.loads(json.dumps(settings.as_json()))) == settings


def test_all_settings_reach_their_models() -> None:
    """Each stage's record, with every setting changed, against the model's own fields."""
    learner = TemporalSettings(
        steps=5, log_every=1, hidden=(3,), latent=4, members=1, discount=None, expectile=0.7, target_rate=0.5,
        learning_rate=0.1, batch_size=7, future_share=0.25,
    ).build(0.5)  # fmt: skip
    assert learner == TemporalLearner(
        hidden=(3,), latent=4, members=1, discount=0.5, expectile=0.7, target_rate=0.5, learning_rate=0.1,
        batch_size=7, future_share=0.25, cooldown=(3, 5),
    )  # fmt: skip
    net = DiTConfig(width=8, depth=1, heads=2, patch=2, step_width=4)
    dynamics = DynamicsSettings(steps=5, net=net, predicts="noise", step_weight=0.5, batch_size=3).build(
        12, 4, 2
    )
    assert dynamics == Dynamics(
        12, 4, 2, net=net, predicts="noise", step_weight=0.5, batch_size=3, cooldown=(3, 5)
    )
    shape = ChainShape(2, 4, 4)
    planner = PlannerSettings(
        steps=999,
        net=net,
        regularisation=0.5,
        correction=False,
        moved_share=0.1,
        diffusion_steps=7,
        warmup=3,
        cooldown=0.0,
    ).build(dynamics, shape, phase=3)
    assert planner == Planner(
        12, 4, 2, dynamics=dynamics, shape=shape, net=net, regularisation=0.5, correction=False, phase=3,
        moved_share=0.1, steps=7, warmup=3,
    )  # fmt: skip


def test_defaults_are_the_models_own() -> None:
    assert TemporalSettings().build(0.99) == TemporalLearner(cooldown=(10_000, 20_000))
    dynamics = Dynamics(180, 29, 8, cooldown=(10_000, 20_000))
    assert DynamicsSettings().build(180, 29, 8) == dynamics
    expected = Planner(180, 29, 8, dynamics=dynamics, shape=ChainShape(), phase=0, cooldown=(10_000, 20_000))
    assert PlannerSettings().build(dynamics, ChainShape(), 0) == expected


def test_a_change_leaves_the_record_it_starts_from_alone() -> None:
    before = GenerateSettings()
    after = changed(before, {"search.threshold": 4, "search": {"pool": 10}, "mode": "rollout"})
    assert (after.search.threshold, after.search.pool, after.mode) == (4.0, 10, "rollout")
    assert before == GenerateSettings()


def test_a_spread_is_used_where_it_is_asked_for() -> None:
    assert DynamicsSettings().build(6, 1, 1, (0.5,)).spread == (0.5,)
    assert DynamicsSettings(relative=False).build(6, 1, 1, (0.5,)).spread == ()
    assert DynamicsSettings(predicts="noise").build(6, 1, 1, (0.5,)).spread == ()


def test_rates_fall_over_a_share_of_the_updates() -> None:
    assert falling(1000, 0.25) == (750, 1000)
    assert falling(1000, 0.0) is None
    with pytest.raises(ConfigError, match="cooldown"):
        settings_for("tiny", {"planner.cooldown": 1.5})
