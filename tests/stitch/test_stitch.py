"""Chains: exact against brute force, counted, from windows that may be chained, never across a trajectory's end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.errors import DataError
from astro_rl.stitch.extension import CHOSEN, Known, Pool, extend, pairwise_distance, shortlist_of
from astro_rl.stitch.gauge import Gauge, fit_gauge, mean_bias, sampled_bias
from astro_rl.stitch.geometry import ChainShape
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


def test_slowness_ignores_windows_that_idle() -> None:
    discounted = (1 - 0.99**10) / 0.01
    first = np.zeros((100, 1), np.float32)
    last = np.where(np.arange(100)[:, None] < 60, 0.01, discounted).astype(np.float32)
    assert fit_gauge(first, last, 17, 0.99).slowness == pytest.approx(1.7, rel=1e-3)
    with pytest.raises(DataError, match="No window of the dataset moves"):
        fit_gauge(first, first, 17, 0.99)


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


def test_an_extension_accepts_exactly_what_brute_force_accepts() -> None:
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
            Known(*map(jnp.asarray, (known, known_positions, known[:, -1], owners, known_sums))),
            Pool(*map(jnp.asarray, (pool, pool_owners, pool_sums))),
            jnp.asarray(new_positions),
            gauge=LITERAL,
            gap=8.0,
            tolerance=6.0,
            threshold=9.0,
            shortlist=60,
            distinct=True,
        ),
    )
    positions = jnp.asarray(np.concatenate([known_positions, new_positions]))
    accepted_somewhere = False
    for chain in range(4):
        fits = []
        for candidate in range(60):
            gap = np.linalg.norm(known[chain, -1] - pool[candidate, 0])
            whole = jnp.asarray(np.concatenate([known[chain], pool[candidate]]))
            bias = float(mean_bias(LITERAL, whole, positions))
            if abs(gap - 8) <= 6 and bias <= 9 and pool_owners[candidate] not in owners[chain]:
                fits.append(candidate)
            if candidate == chosen[chain]:
                assert sums[chain] / 36 == pytest.approx(bias, abs=1e-3)
        assert (outcome[chain] == CHOSEN) == bool(fits)
        assert chosen[chain] in fits if fits else chosen[chain] == -1
        accepted_somewhere |= bool(fits)
    assert accepted_somewhere


def searched(settings: SearchSettings, seed: int = 0) -> tuple[ChainSearch, np.ndarray]:
    latents, offsets = line_of_trajectories(60, 40)
    shape = ChainShape(pieces=3, segment=4, mask=4)
    windows = find_windows(latents, offsets, shape.segment, LITERAL, settings.threshold)
    return ChainSearch(latents, windows, LITERAL, shape, settings), offsets


def test_chains_pass_the_filter_stay_inside_and_are_all_accounted_for() -> None:
    settings = SearchSettings(threshold=1.5, tolerance=1.0, pool=512, shortlist=32, batch=64)
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
