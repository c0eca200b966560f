"""Chains: exact against brute force, counted, from windows that may be chained, never across a trajectory's end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.extension import (
    CHOSEN,
    Known,
    Shell,
    extend,
    pairwise_distance,
    pool_of,
    shortlist_of,
    stretch,
)
from astro_rl.stitch.gauge import Gauge, fit_gauge, gauge_through, mean_bias, sampled_bias
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.order import Order, placing_order, shells_for
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.targets import nearest_targets
from astro_rl.stitch.windows import Windows, find_windows, own_bias, window_starts

LITERAL = Gauge(0.99, literal=True)


def line_of_trajectories(count: int, length: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Trajectories that walk along a line at one unit a step, from random places: latents and offsets."""
    generator = np.random.default_rng(seed)
    starts = generator.uniform(0, 200, count)
    steps = starts[:, None] + np.arange(length)[None]
    latents = np.stack([steps.ravel(), 0.05 * generator.normal(size=count * length)], axis=1).astype(
        np.float32
    )
    return latents, np.arange(count + 1) * length


def test_the_horizon_is_n_times_l_plus_m() -> None:
    assert ChainShape().horizon == 180
    assert ChainShape(segment=34, mask=34).horizon == 340
    assert ChainShape(pieces=2, segment=2, mask=3).positions().tolist() == [0, 1, 5, 6]
    assert ChainShape(pieces=2, segment=2, mask=3).known().sum() == 4


def test_mean_bias_by_hand() -> None:
    """States at 0, 1, 4 on a line, at positions 0, 1, 3: pairs |1−1| = 0, |3−4| = 1, |2−3| = 1; mean 2/3."""
    latents = jnp.asarray([[0.0], [1.0], [4.0]])
    assert float(mean_bias(LITERAL, latents, jnp.asarray([0, 1, 3]))) == pytest.approx(2 / 3, abs=1e-5)
    pairs = jnp.asarray([[0, 2], [0, 1]])
    assert float(sampled_bias(LITERAL, latents, jnp.asarray([0, 1, 3]), pairs)) == pytest.approx(
        0.5, abs=1e-5
    )


def test_a_gauge_undoes_the_discount_and_keeps_the_datas_pace() -> None:
    raw = (1 - 0.99**12) / 0.01
    assert float(Gauge(0.99, slowness=1.5).from_distance(jnp.asarray(raw))) == pytest.approx(18.0, abs=1e-2)
    assert float(LITERAL.from_distance(jnp.asarray(raw))) == pytest.approx(raw)


def walks_that(steps: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """A trajectory for each row: where its latents stand so that they lie steps[k] learned steps from the first."""
    raw = (1 - 0.99**steps) / 0.01
    return raw.reshape(-1, 1).astype(np.float32), np.arange(len(steps) + 1) * length


def test_slowness_ignores_windows_that_idle() -> None:
    """Of 100 trajectories of 18 states 60 rest; the others cover 10 steps in 17: c = 1.7."""
    moving = np.zeros((100, 18))
    moving[60:, -1] = 10.0
    latents, offsets = walks_that(moving, 18)
    generator = np.random.default_rng(0)
    gauge = fit_gauge(latents, offsets, 17, 36, 0.99, generator)
    assert gauge.slowness == pytest.approx(1.7, rel=1e-3) and gauge.posture == 0
    with pytest.raises(DataError, match="No window of the dataset moves"):
        fit_gauge(0 * latents, offsets, 17, 36, 0.99, generator)


@pytest.mark.parametrize(
    ("farther", "slowness", "posture"),
    [
        (12.0, 2.0, 2.0),  # 5 learned steps in 10 data steps; 7 − 5 are posture
        (14.0, 10 / 7, 0.0),  # in proportion
        (16.0, 10 / 7, 0.0),  # more than in proportion: no posture is negative
        (8.0, 10 / 3.5, 3.5),  # would be 6; at most half of 7 is put down to posture
        (7.0, 10 / 7, 0.0),  # no farther at all
    ],
)
def test_a_gauge_through_two_lengths_by_hand(farther: float, slowness: float, posture: float) -> None:
    gauge = gauge_through(10, 7.0, 20, farther, 0.99)
    assert (gauge.slowness, gauge.posture) == (pytest.approx(slowness), pytest.approx(posture))
    near = jnp.asarray((1 - 0.99**7.0) / 0.01)
    assert float(gauge.from_distance(near)) == pytest.approx(10.0, abs=1e-2)


def test_what_lies_within_the_posture_is_no_way_at_all() -> None:
    gauge = Gauge(0.99, slowness=2.0, posture=2.0)
    for learned, data in ((12.0, 20.0), (2.0, 0.0), (1.0, 0.0)):
        assert float(gauge.from_distance(jnp.asarray((1 - 0.99**learned) / 0.01))) == pytest.approx(
            data, abs=1e-2
        )


def test_windows_stay_in_their_trajectories() -> None:
    starts, trajectories = window_starts(np.array([0, 4, 6, 11]), 3)
    assert starts.tolist() == [0, 1, 6, 7, 8]
    assert trajectories.tolist() == [0, 0, 2, 2, 2]


def test_own_bias_equals_brute_force() -> None:
    latents = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    fast = own_bias(latents, 5, LITERAL)
    for row in range(36):
        window = jnp.asarray(latents[row : row + 5])
        assert fast[row] == pytest.approx(float(mean_bias(LITERAL, window, jnp.arange(5))), abs=1e-4)
    assert np.isinf(fast[36:]).all()


def test_all_distances_by_one_product_equal_distances_one_by_one() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(5, 4)) + 50, generator.normal(size=(7, 4)) + 50
    expected = np.linalg.norm(a[:, None] - b[None], axis=-1)
    found = pairwise_distance(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_shortlist_holds_eligible_places_only_each_once() -> None:
    eligible = np.random.default_rng(0).random((6, 50)) < 0.2
    eligible[0] = False
    places, real = map(np.asarray, shortlist_of(jax.random.key(0), jnp.asarray(eligible), 16))
    for row in range(6):
        chosen = places[row][real[row]]
        assert len(set(chosen.tolist())) == len(chosen) == min(16, eligible[row].sum())
        assert eligible[row][chosen].all()


@pytest.mark.parametrize("contest", [1, 60])
def test_an_extension_accepts_exactly_what_brute_force_accepts(contest: int) -> None:
    """With a contest of all candidates, the one with the least bias; with one of 1, any that fits."""
    generator = np.random.default_rng(1)
    known = generator.uniform(0, 20, (4, 6, 2)).astype(np.float32)
    pool = generator.uniform(0, 40, (60, 3, 2)).astype(np.float32)
    known_positions, new_positions = np.arange(6), np.array([10, 11, 12])
    owners, pool_owners = generator.integers(0, 5, (4, 2)), generator.integers(0, 5, 60)
    known_sums = np.asarray(mean_bias(LITERAL, jnp.asarray(known), jnp.arange(6))) * 15
    pool_sums = np.asarray(mean_bias(LITERAL, jnp.asarray(pool), jnp.arange(3))) * 3
    chosen, sums, outcome = map(
        np.asarray,
        extend(
            jax.random.key(0),
            Known(*map(jnp.asarray, (known, known_positions, owners, known_sums))),
            pool_of(pool, pool_owners, pool_sums),
            jnp.asarray(new_positions),
            (Shell(5, 0, 8.0, 6.0), Shell(0, -1, 16.0, 12.0)),
            gauge=LITERAL,
            threshold=9.0,
            shortlist=60,
            contest=contest,
            distinct=True,
        ),
    )
    positions = jnp.asarray(np.concatenate([known_positions, new_positions]))
    had_a_choice = False
    for chain in range(4):
        fits = {}
        for candidate in range(60):
            gap = np.linalg.norm(known[chain, -1] - pool[candidate, 0])
            whole_way = np.linalg.norm(known[chain, 0] - pool[candidate, -1])
            whole = jnp.asarray(np.concatenate([known[chain], pool[candidate]]))
            bias = float(mean_bias(LITERAL, whole, positions))
            on_shells = abs(gap - 8) <= 6 and abs(whole_way - 16) <= 12
            if on_shells and bias <= 9 and pool_owners[candidate] not in owners[chain]:
                fits[candidate] = bias
            if candidate == chosen[chain]:
                assert sums[chain] / 36 == pytest.approx(bias, abs=1e-3)
        assert (outcome[chain] == CHOSEN) == bool(fits)
        assert chosen[chain] in fits if fits else chosen[chain] == -1
        if fits and contest == 60:
            assert chosen[chain] == min(fits, key=fits.__getitem__)
        had_a_choice |= len(fits) > 1
    assert had_a_choice


def test_a_contest_is_among_some_of_those_that_fit() -> None:
    """Eight windows fit, with biases 0 to 7: a contest of one takes each of them in its turn, one of three the better
    ones more often, one of eight always the best."""
    pool = np.zeros((8, 2, 1), np.float32) + np.array([10.0, 11.0], np.float32)[:, None]
    known = Known(jnp.zeros((4000, 1, 1)), jnp.arange(1), jnp.zeros((4000, 1), int), jnp.zeros(4000))

    def share_of_each(contest: int) -> np.ndarray:
        chosen, _, _ = extend(
            jax.random.key(0),
            known,
            pool_of(pool, np.ones(8, int), np.arange(8, dtype=np.float32)),
            jnp.array([10, 11]),
            (Shell(0, 0, 10.0, 1.0),),
            gauge=LITERAL,
            threshold=1e9,
            shortlist=8,
            contest=contest,
            distinct=True,
        )
        return np.bincount(np.asarray(chosen), minlength=8) / 4000

    np.testing.assert_allclose(share_of_each(1), 1 / 8, atol=0.03)
    three = share_of_each(3)
    assert three[0] > 0.22 and three[-1] < 0.08 and (three > 0).all()
    assert share_of_each(8)[0] > 0.85


def searched(settings: SearchSettings, seed: int = 0) -> tuple[ChainSearch, np.ndarray]:
    latents, offsets = line_of_trajectories(60, 40)
    shape = ChainShape(pieces=3, segment=4, mask=4)
    windows = find_windows(latents, offsets, shape.segment, LITERAL, settings.threshold)
    return ChainSearch(latents, windows, LITERAL, shape, settings), offsets


@pytest.mark.parametrize("order", ["ends", "forward"])
def test_chains_pass_the_filter_stay_inside_and_are_all_accounted_for(order: Order) -> None:
    settings = SearchSettings(
        threshold=1.5, tolerance=1.0, pool=512, looks=512, shortlist=32, batch=64, order=order
    )
    search, offsets = searched(settings)
    chains = search.batch(seed=3, number=0)
    assert len(chains) > 10
    assert len(chains) + sum(chains.rejected.values()) == chains.proposed == 64
    assert (chains.statistic <= 1.5).all()
    owners = np.searchsorted(offsets, chains.starts, side="right") - 1
    assert (chains.starts + 3 < offsets[owners + 1]).all(), "a window crosses its trajectory's end"
    assert all(len(set(row)) == 3 for row in owners.tolist()), "two pieces come from one trajectory"
    rows = chains.starts[0][:, None] + np.arange(4)
    whole = jnp.asarray(search.latents[rows].reshape(-1, 2))
    by_hand = float(mean_bias(LITERAL, whole, jnp.asarray(search.shape.positions())))
    assert chains.statistic[0] == pytest.approx(by_hand, abs=1e-4)
    gaps = np.diff(search.latents[chains.starts, 0], axis=1) - 3
    assert (np.abs(gaps - 4) <= 1.01).all(), "literally, every target lies M = 4 behind the piece before it"


def test_the_last_piece_is_found_first_then_those_between() -> None:
    assert placing_order(5, "forward") == [1, 2, 3, 4]
    assert placing_order(5, "ends") == [4, 2, 1, 3]
    assert placing_order(2, "ends") == [1]
    for pieces in range(2, 9):
        assert sorted(placing_order(pieces, "ends")) == list(range(1, pieces))


def test_shells_by_hand() -> None:
    """n = 5, l = 4, M = 4, period 8, seen at 2 states each. Piece 2, between 0 and 4: its first state 13 steps behind
    the source's last (place 1), its last 13 before the far end's first (place 2). Piece 1, between 0 and 2: neighbours
    on both sides, 5 steps each."""
    shape = ChainShape(5, 4, 4)

    def shells(piece: int, placed: list[int], order: Order) -> tuple[Shell, ...]:
        return shells_for(piece, placed, shape, probes=2, gap=5.0, tolerance=2.0, threshold=3.0, order=order)

    assert shells(4, [0], "ends") == (Shell(1, 0, 29.0, 6.0), Shell(0, -1, 35.0, 6.0))
    assert shells(2, [0, 4], "ends") == (Shell(1, 0, 13.0, 6.0), Shell(2, -1, 13.0, 6.0))
    assert shells(1, [0, 4, 2], "ends") == (Shell(1, 0, 5.0, 2.0), Shell(4, -1, 5.0, 2.0))
    assert shells(3, [0, 1, 2], "forward") == (Shell(5, 0, 5.0, 2.0),)


def test_a_source_without_a_far_end_is_told_as_such() -> None:
    """Ten states on a line and no more: nothing lies 20 ahead."""
    latents, offsets = line_of_trajectories(60, 40)
    short = ChainSearch(
        latents * np.array([0.02, 1.0], np.float32),
        Windows(*window_starts(offsets, 4), total=1),
        LITERAL,
        ChainShape(pieces=3, segment=4, mask=4),
        SearchSettings(threshold=5.0, pool=512, batch=32),
    )
    found = short.batch(0, 0)
    assert found.rejected == {"nothing lies as far ahead as the chain is long": 32}


def test_the_literal_rule_goes_forward() -> None:
    assert SearchSettings().placing == "ends"
    assert SearchSettings(rule="argmin").placing == "forward"
    with pytest.raises(ConfigError, match="forward"):
        SearchSettings(rule="argmin", order="ends")


def test_the_fewer_chains_are_left_the_more_each_is_compared_with() -> None:
    settings = SearchSettings(pool=400, looks=50, batch=32)
    search, _ = searched(settings)
    generator = np.random.default_rng(0)
    for chains, looked in ((32, 50), (17, 50), (16, 100), (3, 400)):
        places, pool, _ = search._looked_at(0, 0, chains, generator)
        assert len(places) == len(pool.latents) == pool.edges.shape[1] == looked
        centred = search.latents[search.windows.starts[places]] - search._pool(0, 0).centre
        np.testing.assert_allclose(pool.edges[0], centred, atol=1e-4)
    again, _, _ = search._looked_at(0, 63, 1, generator)
    assert np.array_equal(again, places), "batches of one era share a pool"
    assert not np.array_equal(search._looked_at(0, 64, 1, generator)[0], places)


def test_a_stretch_of_a_pool_is_the_pool_of_that_stretch() -> None:
    generator = np.random.default_rng(0)
    columns = generator.normal(size=(9, 3, 2)), np.arange(9), generator.normal(size=9)
    part, whole = pool_of(*(column[2:6] for column in columns)), stretch(pool_of(*columns), 2, 6)
    for mine, other in zip(part, whole, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_the_same_seed_gives_the_same_chains() -> None:
    settings = SearchSettings(threshold=1.5, tolerance=1.0, pool=256, shortlist=32, batch=32)
    search, _ = searched(settings)
    assert np.array_equal(search.batch(1, 4).starts, search.batch(1, 4).starts)
    assert not np.array_equal(search.batch(1, 4).starts, search.batch(1, 5).starts)


def test_the_literal_rule_takes_the_state_nearest_to_m() -> None:
    latents = np.array([[0.0], [3.0], [5.2], [4.9], [9.0]], np.float32)
    windows = Windows(np.arange(5), np.array([0, 1, 2, 3, 4]), total=5)
    found = nearest_targets(latents, windows, latents[:1], np.array([[0]]), LITERAL, 5.0, True)
    assert found.tolist() == [3]
    without = nearest_targets(latents, windows, latents[:1], np.array([[3]]), LITERAL, 5.0, True)
    assert without.tolist() == [2]


def test_data_in_which_nothing_passes_says_so() -> None:
    latents, offsets = np.zeros((40, 2), np.float32), np.array([0, 20, 40])
    windows = find_windows(latents, offsets, 4, LITERAL, 0.5)
    assert windows.dropped == windows.total == 34
    with pytest.raises(DataError, match="No sub-trajectory"):
        ChainSearch(latents, windows, LITERAL, ChainShape(pieces=2, segment=4, mask=4))
