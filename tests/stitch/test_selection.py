"""Selections that ASTRO's is compared with: uniform where they say so, nearest where they say so, all counted."""

from typing import Any

import numpy as np
import pytest

from astro_rl.data.normaliser import Normaliser
from astro_rl.errors import DataError
from astro_rl.stitch.euclidean import NOBODY_ELSE, NOWHERE, NearestContinuation
from astro_rl.stitch.filtering import FILTERED, ChainFilter
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch
from astro_rl.stitch.selection import (
    RandomTargets,
    RealWindows,
    Selection,
    all_windows,
    drawn_from_others,
)

LITERAL = Gauge(0.99, literal=True)
SHAPE = ChainShape(pieces=3, segment=2, mask=2)
SIZES = (4, 3, 6, 5)
OFFSETS = np.cumsum([0, *SIZES])
PLACES = np.arange(18, dtype=np.float32)[:, None]
"""One number a row, in steps of 1: trajectories stand end to end on a line."""


def filtered(threshold: float | None, batch: int = 64, shape: ChainShape = SHAPE) -> ChainFilter:
    return ChainFilter(PLACES, LITERAL, shape, batch, threshold)


class Counting(np.random.Generator):
    """Draws 0, 1, 2, …: every window that may be drawn, in order."""

    def integers(self, bounds: Any, *_: Any, **__: Any) -> Any:
        assert (np.arange(len(bounds)) < bounds).all()
        return np.arange(len(bounds))


def test_draws_from_other_trajectories_by_hand() -> None:
    """Windows of two states: 3, 2, 5 and 4 of them. A chain that holds trajectories 2 and 0 may take numbers 3, 4
    (trajectory 1) and 10 to 13 (trajectory 3), and each of the six draws gives another of them."""
    windows = all_windows(OFFSETS, 2)
    assert windows.trajectories.tolist() == [0] * 3 + [1] * 2 + [2] * 5 + [3] * 4
    owners = np.tile([2, 0], (6, 1))
    found = drawn_from_others(Counting(np.random.PCG64(0)), windows, owners)
    assert found.tolist() == [3, 4, 10, 11, 12, 13]
    anything = drawn_from_others(Counting(np.random.PCG64(0)), windows, np.zeros((14, 0), np.int64))
    assert anything.tolist() == list(range(14))


def test_random_chains_hold_no_trajectory_twice_and_all_are_kept() -> None:
    chains = RandomTargets(all_windows(OFFSETS, 2), filtered(None)).batch(0, 0)
    assert len(chains) == chains.proposed == 64 and not chains.rejected
    owners = np.searchsorted(OFFSETS, chains.starts, side="right") - 1
    assert (np.sort(owners, axis=1)[:, 1:] != np.sort(owners, axis=1)[:, :-1]).all()
    assert (np.searchsorted(OFFSETS, chains.starts + 1, side="right") - 1 == owners).all(), "whole windows"
    assert set(chains.starts[:, 0]) == set(all_windows(OFFSETS, 2).starts), (
        "sources are drawn from everywhere"
    )


def test_a_random_target_is_uniform() -> None:
    """Where pieces may come from anywhere, each of the 14 windows takes a fourteenth: 3,000 draws, four deviations."""
    chains = RandomTargets(all_windows(OFFSETS, 2), filtered(None, batch=3000), distinct=False).batch(1, 0)
    counts = np.bincount(chains.starts[:, 1], minlength=18)[all_windows(OFFSETS, 2).starts]
    assert np.abs(counts - 3000 / 14).max() < 4 * np.sqrt(3000 / 14)


def test_a_filter_that_is_asked_for_is_counted() -> None:
    free, strict = (RandomTargets(all_windows(OFFSETS, 2), filtered(limit)) for limit in (None, 3.0))
    everything, passed = free.batch(0, 0), strict.batch(0, 0)
    assert 0 < len(passed) < 64
    assert passed.rejected == {FILTERED: 64 - len(passed)}
    np.testing.assert_array_equal(passed.starts, everything.starts[everything.statistic <= 3.0])


def test_too_few_trajectories_for_distinct_pieces_are_refused() -> None:
    with pytest.raises(DataError, match="Too few trajectories"):
        RandomTargets(all_windows(OFFSETS[:3], 2), filtered(None))
    RandomTargets(all_windows(OFFSETS[:3], 2), filtered(None), distinct=False).batch(0, 0)


def ahead(_: Any, states: np.ndarray) -> np.ndarray:
    """A continuation that goes M + 1 = 3 along the line."""
    return states + 3


def nearest(**changes: Any) -> NearestContinuation:
    one = np.ones(1, np.float32)
    given: dict[str, Any] = {
        "observations": PLACES,
        "normaliser": Normaliser(0 * one, one, one),
        "windows": all_windows(OFFSETS, 2),
        "filter": filtered(None),
        "continued": ahead,
        "pool": 1000,
    }
    return NearestContinuation(**{**given, **changes})


def test_the_target_is_the_window_nearest_to_the_continuation_by_hand() -> None:
    """A source at rows 2, 3 continues to 6. Trajectory 0 is its own; of the others' windows (4, 5 | 7 … 11 | 13 … 16)
    5 and 7 are as near: the first. From 6 on to 9, which is there; without `distinct` 6 → 9 too."""
    chains = nearest().batch(0, 0)
    assert len(chains) == 64 and not chains.rejected
    from_two = chains.starts[chains.starts[:, 0] == 2]
    assert len(from_two) and (from_two == [2, 5, 9]).all()


def test_a_continuation_along_other_dimensions_decides_too() -> None:
    """The second dimension tells rows apart that are near in the first; its spread is what it is measured in."""
    observations = np.stack([np.zeros(18), np.arange(18) * 100.0], axis=1).astype(np.float32)
    normaliser = Normaliser(np.zeros(2, np.float32), *(np.array([1, 100], np.float32),) * 2)

    def along_second(_: Any, states: np.ndarray) -> np.ndarray:
        return states + np.array([0.0, 3.0])

    chains = nearest(observations=observations, normaliser=normaliser, continued=along_second).batch(0, 0)
    assert (chains.starts[chains.starts[:, 0] == 2] == [2, 5, 9]).all()


def test_continuations_that_lead_nowhere_are_counted() -> None:
    def lost(_: Any, states: np.ndarray) -> np.ndarray:
        return np.where(states > 8, np.nan, states + 3)

    chains = nearest(continued=lost).batch(0, 0)
    assert 0 < len(chains) < 64 and chains.rejected == {NOWHERE: 64 - len(chains)}
    assert (chains.starts[:, :-1] + 1 <= 8).all(), "no piece but the last ends where nothing leads on"


def test_a_pool_of_the_chains_own_trajectories_is_told() -> None:
    """A pool of one window cannot give two targets of different trajectories."""
    chains = nearest(pool=1).batch(0, 0)
    assert len(chains) == 0 and chains.rejected == {NOBODY_ELSE: 64}
    assert chains.starts.shape == (0, 3)


def test_real_windows_follow_one_another() -> None:
    shape = ChainShape(pieces=2, segment=2, mask=1)
    chains = RealWindows(np.array([0, 7, 8]), filtered(None, shape=shape)).batch(0, 0)
    assert (np.diff(chains.starts, axis=1) == shape.period).all()
    # Along the line the distance is the number of steps: the statistic of what was recorded is 0.
    np.testing.assert_allclose(chains.statistic, 0, atol=1e-4)


@pytest.mark.parametrize("make", [lambda: RandomTargets(all_windows(OFFSETS, 2), filtered(None)), nearest])
def test_a_batch_depends_on_seed_and_number_alone(make: Any) -> None:
    selection = make()
    first = selection.batch(3, 1)
    assert isinstance(selection, Selection) and issubclass(ChainSearch, Selection)
    assert not np.array_equal(selection.batch(3, 2).starts, first.starts)
    assert not np.array_equal(selection.batch(4, 1).starts, first.starts)
    np.testing.assert_array_equal(make().batch(3, 1).starts, first.starts)
    np.testing.assert_array_equal(
        selection.statistic(first.starts, np.random.default_rng(0)), first.statistic
    )
