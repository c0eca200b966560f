"""The last check by hand: four errors, limits from real windows, verdicts with their reasons."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from astro_rl.augment.check import (
    Errors,
    StepScale,
    errors,
    first_target,
    measure_limits,
    real_windows,
    step_scale,
)
from astro_rl.augment.jobs import Completions
from astro_rl.augment.limits import LEVELS, Mode, RealLimits, quantiles
from astro_rl.augment.options import GenerateSettings
from astro_rl.augment.verdicts import CUT, DEVIATES, KEPT, MISSTEPS, NOT_FINITE, judge, largest_jumps
from astro_rl.data import from_arrays
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.errors import ConfigError, DataError
from astro_rl.planner.complete import Sampling
from astro_rl.stitch.geometry import ChainShape
from tests.augment.stub_completer import StubCompleter, numbered, plain


def column(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)


def completed(known: list[int], given: list[Any], states: list[Any], deviation: float = 0.0) -> Completions:
    flags = np.asarray(known, bool)[None]
    made = np.asarray(states, np.float32)[None]
    return Completions(
        np.where(flags[..., None], np.asarray(given, np.float32)[None], 0).astype(np.float32),
        flags,
        made,
        np.zeros((1, len(known), 1), np.float32),
        column(deviation),
    )


def test_all_four_errors_by_hand() -> None:
    """Shown x . x x in three dimensions with typical steps 0.5, 2 and none; x and y in units of 2 and 10.

    At the target, real (1, 4, 9), generated (1.5, 0, 0); behind it real (2, 4, 9), generated (3, 6, 5).
    step: changes (1, 0) against (1.5, 6): 0.5 / 0.5 = 1 and 6 / 2 = 3: √((1 + 9) / 2) = √5
    jump: −0.5 / 0.5 = −1 and 4 / 2 = 2: √((1 + 4) / 2) = √2.5
    jump x-y: |(−1, 40)| over the length of a step, |(0.5·2, 2·10)|: √1601 / √401
    """
    scale = StepScale(column(0.5, 2, 0), column(2, 10, 0))
    given = [[5, 5, 5], [0, 0, 0], [1, 4, 9], [2, 4, 9]]
    states = [[5, 5, 5], [8, 8, 8], [1.5, 0, 0], [3, 6, 5]]
    found = errors(completed([1, 0, 1, 1], given, states, deviation=0.25), scale)
    assert float(found.deviation[0]) == 0.25
    assert float(found.step_error[0]) == pytest.approx(np.sqrt(5))
    assert float(found.jump[0]) == pytest.approx(np.sqrt(2.5))
    assert float(found.jump_xy[0]) == pytest.approx(np.sqrt(1601 / 401))


def test_steps_are_compared_between_neighbours_that_are_both_known() -> None:
    """x x . x x: pairs (0, 1) and (3, 4), with misses 1 and 2 of a step of 1: √(5 / 2). The hole's do not count."""
    found = errors(
        completed([1, 1, 0, 1, 1], [[0], [1], [0], [7], [8]], [[0], [2], [50], [7], [10]]),
        StepScale(column(1), column(0)),
    )
    assert float(found.step_error[0]) == pytest.approx(np.sqrt(2.5))
    assert float(found.jump[0]) == 0.0 == float(found.jump_xy[0])


def test_the_jump_is_at_the_first_known_place_behind_a_mask() -> None:
    known = np.asarray([[1, 1, 0, 0, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0, 0, 0]], bool)
    assert first_target(known).tolist() == [4, 2, 0]
    free = errors(completed([1, 0, 0], [[3], [0], [0]], [[3], [9], [9]]), StepScale(column(1), column(1)))
    assert float(free.jump[0]) == 0.0, "a free continuation has no target"


def test_what_is_not_finite_has_no_error_at_all() -> None:
    scale = StepScale(column(1), column(0))
    bad = completed([1, 0, 1], [[0], [0], [1]], [[0], [np.inf], [1]], deviation=0.1)
    assert all(np.isnan(value[0]) for value in errors(bad, scale))
    lost = completed([1, 0, 1], [[0], [0], [1]], [[0], [1], [1]])
    lost.actions[0, 0] = np.nan
    assert np.isnan(errors(lost, scale).deviation[0])


def test_a_typical_step_by_hand() -> None:
    """Dimension 0: 0, 3, 7 | 100, 99: changes 3, 4, −1, root mean square √(26 / 3); dimension 1 is constant."""
    observations = np.asarray([[0, 5], [3, 5], [7, 5], [100, 5], [99, 5]], np.float32)
    dataset = from_arrays(observations, np.zeros((5, 1), np.float32), offsets=[0, 3, 5])
    normaliser = fit_normaliser(observations)
    spread = observations[:, 0].std()
    scale = step_scale(dataset, normaliser, xy=(0, 1))
    assert scale.sigma[0] == pytest.approx(np.sqrt(26 / 3) / spread, rel=1e-5)
    assert scale.sigma[1] == 0.0
    assert scale.plane.tolist() == pytest.approx([spread, 1.0], rel=1e-5)
    assert scale.has_plane and not step_scale(dataset, normaliser).has_plane


def test_real_windows_stay_inside_and_among_the_trajectories_asked_for() -> None:
    dataset = numbered(4, 6, 3)
    assert real_windows(dataset, 4).tolist() == [0, 4, 5, 6]
    assert real_windows(dataset, 4, np.asarray([0, 2])).tolist() == [0]
    with pytest.raises(DataError, match="No trajectory is long enough") as refused:
        real_windows(dataset, 7)
    assert "6 states" in str(refused.value) and "7 states" in str(refused.value)


SHAPE = ChainShape(pieces=3, segment=2, mask=2)


def limits_of(mode: Mode, horizon: int, **options: Any) -> tuple[RealLimits, StubCompleter]:
    """A completer that is off by 0.5 at every known state."""
    completer = StubCompleter(horizon, lambda states, known: states + 0.5)
    found = measure_limits(
        completer,
        numbered(20, 20, 20),
        plain(1),
        SHAPE,
        mode,
        windows=6,
        batch=4,
        **options,
    )
    return found, completer


def test_limits_of_a_model_that_is_off_by_a_half_everywhere() -> None:
    """δ = 0.25; changes are right; the jump is half a step of 1, in the plane too."""
    found, completer = limits_of("anchored", 5, xy=(0, 0), trajectories=np.asarray([2]))
    assert found.mode == "anchored" and found.windows == 6
    assert found.deviation == pytest.approx((0.25,) * len(LEVELS))
    assert found.step_error == pytest.approx((0.0,) * len(LEVELS), abs=1e-6)
    assert found.jump == pytest.approx((0.5,) * len(LEVELS))
    assert found.jump_xy == pytest.approx((0.5,) * len(LEVELS))
    shown = np.concatenate([known for _, _, known in completer.asked])
    assert (shown == [True, False, False, True, True]).all(), "one gap, as chains have it"
    rows = np.concatenate([states[:, :, 0] for _, states, _ in completer.asked])
    assert rows[:, 0].min() >= 41 and rows.max() < 60, "windows of the held-out trajectory alone"
    assert (rows[:, 3] == rows[:, 0] + 3).all(), "a real window goes on after M states"


def test_limits_of_whole_chains_and_without_a_plane() -> None:
    found, completer = limits_of("rollout", 12)
    assert found.jump_xy is None
    states, known = completer.asked[0][1:]
    assert known[0].tolist() == [True, True, False, False] * 3
    assert (states[0, [1, 4, 5, 8, 9], 0] - states[0, 0, 0]).tolist() == [1, 4, 5, 8, 9]


def test_models_that_lose_themselves_on_real_windows_are_refused() -> None:
    completer = StubCompleter(5, lambda states, known: states * np.nan)
    with pytest.raises(DataError, match="not finite on real windows"):
        measure_limits(completer, numbered(20), plain(1), SHAPE, "anchored", windows=4, batch=4)


def limits(jump_xy: float | None = None) -> RealLimits:
    """At the quantiles 0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99 and 1: 0 … 8, times 1, 10 and 100."""
    steps = np.arange(9.0)
    return RealLimits(
        "anchored",
        100,
        tuple(steps),
        tuple(10 * steps),
        tuple(100 * steps),
        None if jump_xy is None else (jump_xy,) * 9,
    )


def test_a_quantile_between_two_is_interpolated() -> None:
    assert limits().at("deviation", 0.5) == 3.0
    assert limits().at("step_error", 0.3) == pytest.approx(22.0)
    assert limits().at("jump", 1.0) == 800.0
    with pytest.raises(ConfigError, match="quantile"):
        limits().at("jump", 1.5)
    assert quantiles(np.arange(101.0)) == pytest.approx((0, 10, 25, 50, 75, 90, 95, 99, 100))


@pytest.mark.parametrize("jump_xy", [None, 2.0])
def test_limits_survive_json(jump_xy: float | None) -> None:
    assert RealLimits.from_json(json.loads(json.dumps(limits(jump_xy).as_json()))) == limits(jump_xy)


def test_verdicts_by_hand() -> None:
    """Limits at their quantiles: δ 3, step error 30, jump 300, in the plane 5."""
    settings = GenerateSettings(
        deviation_quantile=0.5,
        step_quantile=0.5,
        jump_quantile=0.5,
        jump_most=1000.0,
        sampling=Sampling(polish=0),
    )
    cases = {
        (3.0, 30.0, 300.0, 5.0): KEPT,
        (3.0, 30.0, 301.0, 5.0): CUT,
        (3.0, 30.0, 300.0, 5.1): CUT,
        (3.0, 31.0, 301.0, 5.0): MISSTEPS,
        (3.1, 31.0, 301.0, 9.0): DEVIATES,
        (np.nan, np.nan, np.nan, np.nan): NOT_FINITE,
    }
    found = judge(Errors(*np.asarray(list(cases)).T), limits(jump_xy=5.0), settings)
    assert found.tolist() == list(cases.values())
    # Of a polished gap δ is its jump once more, which cuts the junction and no more.
    polished = replace(settings, sampling=Sampling())
    found = judge(Errors(*np.asarray(list(cases)).T), limits(jump_xy=5.0), polished)
    assert found.tolist() == [KEPT, CUT, CUT, MISSTEPS, MISSTEPS, NOT_FINITE]


def test_a_rollout_is_never_cut_and_no_plane_cuts_nothing() -> None:
    one = Errors(column(1), column(1), column(301), column(99))
    settings: dict[str, Any] = {
        "deviation_quantile": 0.5,
        "step_quantile": 0.5,
        "jump_quantile": 0.5,
        "jump_most": 1000.0,
    }
    assert judge(one, limits(jump_xy=5.0), GenerateSettings(mode="rollout", **settings)).tolist() == [KEPT]
    near = one._replace(jump=column(300))
    assert judge(near, limits(jump_xy=None), GenerateSettings(**settings)).tolist() == [KEPT]


def test_real_windows_do_not_excuse_any_miss() -> None:
    """Limits of 300 and 5 typical steps let nothing pass that misses by more than one."""
    settings = GenerateSettings(deviation_quantile=0.5, step_quantile=0.5, jump_quantile=0.5)
    errors = Errors(column(1, 1, 1), column(1, 1, 1), column(0.9, 1.1, 0.9), column(0.9, 0.9, 1.1))
    assert judge(errors, limits(jump_xy=5.0), settings).tolist() == [KEPT, CUT, CUT]
    assert largest_jumps(limits(jump_xy=0.5), settings) == (1.0, 0.5)
    assert largest_jumps(limits(jump_xy=0.01), settings) == (1.0, 0.25), (
        "nor do they cut what is next to nothing"
    )
    refused: list[dict[str, Any]] = [
        {"jump_most": 0.0, "jump_least": 0.0},
        {"jump_most": 0.2},
        {"jump_least": -0.1},
    ]
    for wrong in refused:
        with pytest.raises(ConfigError, match="jump_most"):
            GenerateSettings(**wrong)
