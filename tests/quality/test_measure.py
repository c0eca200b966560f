"""The whole measurement: on arrays of no benchmark, with a fit, with a simulator, and with next to nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

from astro_rl.augment.fitting import no_bar
from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError, DataError
from astro_rl.quality.ensemble import EnsembleSettings
from astro_rl.quality.figures import MeasureReport
from astro_rl.quality.measure import measure
from astro_rl.run.files import jsonable
from astro_rl.tasks import Task, get_task
from tests.fitted import Fitted, walks
from tests.quality.conftest import with_gaps

Made = dict[str, tuple[Dataset, Task]]
SMALL = EnsembleSettings(members=2, hidden=(16,), steps=500, batch_size=64)
NO_JUDGES = ("ensemble", "dynamics", "completion")


def number(value: float | None) -> float:
    assert value is not None
    return value


def sections(report: MeasureReport) -> set[str]:
    return {figure.section for figure in report.figures}


def test_arrays_of_no_benchmark_with_the_fit_they_come_from(fitted: Fitted) -> None:
    """No task, no simulator: a fit, its own augmented data, and the recordings."""
    augmented = fitted.stitcher.augment(100, bar=no_bar)
    report = measure(
        augmented,
        real=fitted.dataset,
        models=fitted.stitcher.models,
        xy=(0, 1),
        ensemble=SMALL,
        rows=200,
        sequences=32,
    )
    assert sections(report) == {"data", "ensemble", "dynamics", "completion", "geometry", "novelty"}
    assert {each.what for each in report.left_out} == {
        "replays in the simulator, walls",
        "dynamics violation rate",
        "values of trained learners",
    }
    assert "were not fitted to" in report.data["held_out"] and report.data["real_is_the_source"]
    assert report["data/transitions"].augmented == augmented.n_transitions
    assert report["data/transitions"].real == fitted.dataset.n_transitions
    assert 0 < number(report["data/generated"].augmented) < 1
    completion = report["completion/state_mse"]
    assert completion.augmented is None and number(completion.real) > 0
    limits = [number(report[f"{judge}/error_above"].real) for judge in ("ensemble", "dynamics")]
    assert max(limits) < 0.1, "what is set to pass 99 in 100 recordings passes others too"
    # A fit of forty updates misses: the ensemble, which knows more, sees it far more often than in recordings.
    seen = number(report["ensemble/error_above"].augmented)
    assert seen > 0.1 and seen > 5 * max(limits), (seen, limits, report["dynamics/error_above"].augmented)
    json.dumps(jsonable(report.as_json()), allow_nan=False)


def test_arrays_alone_are_told_what_can_be_told() -> None:
    report = measure(walks(2), rows=100)
    assert sections(report) == {"data"}
    assert report["data/generated"].augmented == 1.0
    reasons = {each.what: each.why for each in report.left_out}
    assert len(reasons) == 8
    assert "--real" in reasons["coverage and novelty"] and "--xy" in reasons["geometry of paths"]
    with_xy = measure(walks(2), xy=(0, 1), rows=100)
    assert number(with_xy["geometry/turning"].augmented) > 0 and with_xy["geometry/turning"].real is None
    with pytest.raises(ConfigError, match="not measured"):
        report["geometry/turning"]


def test_one_recording_is_enough_for_what_needs_no_held_out_one() -> None:
    one = walks(0).select([0])
    report = measure(walks(2), real=one, xy=(0, 1), rows=100)
    assert sections(report) == {"data", "geometry"}
    assert any("One recording alone" in each.why for each in report.left_out)
    more = measure(walks(2), real=one, held_out=walks(1), xy=(0, 1), rows=100, skip=("ensemble",))
    assert "novelty" in sections(more) and "handed in" in more.data["held_out"]


def test_the_same_seed_gives_the_same_report() -> None:
    def told(seed: int) -> str:
        found = measure(
            walks(2), real=walks(0), xy=(0, 1), rows=100, seed=seed, ensemble=SMALL, skip=("completion",)
        )
        return json.dumps(jsonable(found.as_json()))

    assert told(0) == told(0) != told(1)


def test_single_transitions_have_no_paths_but_all_else() -> None:
    """What SynthER writes: every trajectory is one transition."""
    source = walks(2)
    rows = source.transition_rows()[::4]
    pairs = np.stack([source.observations[rows], source.observations[rows + 1]], axis=1).reshape(-1, 2)
    actions = np.repeat(source.actions[rows], 2, axis=0)
    augmented = from_arrays(pairs, actions, offsets=np.arange(len(rows) + 1) * 2)
    report = measure(augmented, real=walks(0), xy=(0, 1), rows=100, ensemble=SMALL)
    assert {"ensemble", "novelty"} < sections(report)
    assert "three places" in {each.what: each.why for each in report.left_out}["geometry of paths"]


def test_the_simulator_judges_a_maze(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    honest = with_gaps(real, 8)
    options = {"task": task, "real": real, "rows": 60, "sequences": 2, "skip": NO_JUDGES}
    report = measure(honest, violation=True, **options)
    assert {"simulator", "walls", "violation", "geometry", "novelty"} < sections(report)
    assert report["simulator/contradicted"].augmented == report["simulator/contradicted"].real == 0.0
    assert "other's actions" in report["simulator/contradicted"].note
    rate = report["violation/rate"]
    assert rate.augmented is not None and rate.augmented < 0.1
    assert rate.real is not None and rate.real <= 0.06, "fifty rows: three"
    assert "n " in rate.note and "δ" in rate.note
    wrong = np.array(honest.actions)
    wrong[honest.extras["source_step"] < 0] *= -1
    broken = from_arrays(honest.observations, wrong, offsets=honest.offsets, extras=dict(honest.extras))
    found = measure(broken, **options)
    # Of eleven transitions with a generated end, the first is left by a recorded row, whose action is right.
    assert found["simulator/contradicted"].augmented == pytest.approx(10 / 11, abs=0.05)
    assert found["simulator/contradicted"].real == 0.0


def test_a_task_by_name_and_one_of_other_data() -> None:
    with pytest.raises(DataError, match="not those of antmaze"):
        measure(walks(2), task="antmaze-medium-stitch")
    with pytest.raises(DataError, match="not of the environment"):
        measure(walks(2), real=from_arrays(np.zeros((3, 5)), np.zeros((3, 2)), offsets=[0, 3]))


def test_no_state_map_is_a_reason_and_no_error() -> None:
    task = get_task("cube-single-play")
    generator = np.random.default_rng(0)
    shape = (40, task.observation_dim)
    data = from_arrays(generator.normal(size=shape), np.zeros((40, task.action_dim)), offsets=[0, 20, 40])
    report = measure(data, task=task, rows=10)
    assert "No simulator state follows" in report.left_out[0].why


def test_runs_are_compared_with_the_first_of_them(tmp_path: Path) -> None:
    import jax

    from astro_rl.agents.presets import learner_for
    from astro_rl.run.policy import Policy, save_policy

    for name, learner in (("before", "iql"), ("after", "iql"), ("other", "bc")):
        kind = learner_for(learner, preset="tiny")
        keys = jax.random.split(jax.random.key(len(name)), 2)
        states = jax.vmap(lambda key, kind=kind: kind.init(key, 2, 2))(keys)
        save_policy(Policy(kind, states, (0, 1), 2, 2), tmp_path / name)
    options = {"real": walks(0), "xy": (0, 1), "skip": ("ensemble", "novelty"), "rows": 10}
    report = measure(walks(2), runs={name: tmp_path / name for name in ("before", "after")}, **options)
    figure, maps = report["values/after"], report.details["values"]
    assert (figure.augmented, figure.real) == (maps["after"]["q_mean"], maps["before"]["q_mean"])
    assert figure.augmented != figure.real and maps["after"]["seeds"] == 2
    assert len(maps["after"]["map"]["q"]) == len(maps["before"]["map"]["x"]) > 20
    for runs, why in (
        ({"before": tmp_path / "before", "other": tmp_path / "other"}, "different learners"),
        ({"before": tmp_path / "before"}, "two trained runs"),
        ({"before": tmp_path / "before", "after": tmp_path / "nowhere"}, "no trained policy"),
    ):
        refused = measure(walks(2), runs=runs, **options)
        assert why in refused.left_out[-1].why


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rows": 0}, "rows"),
        ({"sequences": 0}, "sequences"),
        ({"xy": (0, 2)}, "two entries"),
        ({"xy": (1, 1)}, "two entries"),
        ({"skip": ("novlty",)}, "novelty"),
        ({"held_out": walks(1)}, "recordings that the data was made from"),
    ],
)
def test_what_cannot_be_measured_is_refused(options: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        measure(walks(2), **options)


def test_a_fit_of_other_data_is_refused(fitted: Fitted) -> None:
    with pytest.raises(DataError, match="belongs to another dataset"):
        measure(walks(2), real=walks(3), models=fitted.stitcher.models)


def test_the_table_has_a_line_a_figure_and_says_what_is_missing() -> None:
    report = measure(walks(2), real=walks(0), xy=(0, 1), rows=100, skip=("ensemble",))
    lines = report.table().splitlines()
    for figure in report.figures:
        assert sum(figure.text in line for line in lines) >= 1
    assert any(line.startswith("  ensemble of one-step models: it was to be skipped") for line in lines)
    assert lines[-1] == "real: 1 recording drawn at random"
