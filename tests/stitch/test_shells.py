"""Shortcuts of the search say what the plain definitions say: bounds on raw distances, one product for all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.stitch.extension import CHOSEN, EMPTY_SHELL, Known, Shell, extend, pool_of
from astro_rl.stitch.gauge import Gauge, mean_bias
from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.windows import find_windows

GAUGES = [
    Gauge(0.99, literal=True),
    Gauge(0.99, slowness=1.3),
    Gauge(0.9, slowness=0.7),
    Gauge(0.99, slowness=1.8, posture=1.6),
]
FAR = 2_000.0


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(GAUGES), st.floats(-20, 700), st.floats(0, 50))
def test_bounds_on_raw_distances_pick_what_the_gauge_picks(
    gauge: Gauge, gap: float, tolerance: float
) -> None:
    raw = np.concatenate([np.linspace(0, 120, 997), [FAR]]).astype(np.float32)
    read = np.asarray(gauge.from_distance(jnp.asarray(raw)))
    nearest, farthest = gauge.raw_range(gap - tolerance, gap + tolerance)
    # A hair's breadth from the shell's edges, and from where everything starts to read "far", rounding decides.
    clear = (np.abs(np.abs(read - gap) - tolerance) > 0.05) & (np.abs(read - read[-1]) > 0.05) | (raw == FAR)
    clear &= np.abs(np.abs(read[-1] - gap) - tolerance) > 0.05
    assert ((raw >= nearest) & (raw <= farthest))[clear].tolist() == (np.abs(read - gap) <= tolerance)[
        clear
    ].tolist()


@pytest.mark.parametrize("gauge", GAUGES[:2])
def test_candidates_are_those_on_the_shell_and_none_else(gauge: Gauge) -> None:
    """With a threshold that accepts everything, a chain dies exactly where brute force finds its shell empty."""
    generator = np.random.default_rng(2)
    known = generator.uniform(0, 60, (12, 3, 2)).astype(np.float32)
    pool = generator.uniform(0, 60, (25, 3, 2)).astype(np.float32)
    chosen, _, outcome = extend(
        jax.random.key(0),
        Known(
            jnp.asarray(known),
            jnp.arange(3),
            jnp.zeros((12, 1), int),
            jnp.zeros(12),
        ),
        pool_of(pool, np.ones(25, int), np.zeros(25, np.float32)),
        jnp.arange(3) + 10,
        (Shell(2, 0, 20.0, 1.0),),
        gauge=gauge,
        threshold=1e9,
        shortlist=25,
        contest=1,
        distinct=True,
    )
    apart = np.linalg.norm(known[:, -1][:, None] - pool[None, :, 0], axis=-1)
    on_shell = np.abs(np.asarray(gauge.from_distance(jnp.asarray(apart))) - 20) <= 1
    assert 0 < on_shell.any(axis=1).sum() < 12, "some chains have candidates and some have none"
    for chain in range(12):
        assert int(outcome[chain]) == (CHOSEN if on_shell[chain].any() else EMPTY_SHELL)
        if on_shell[chain].any():
            assert on_shell[chain, int(chosen[chain])]


@pytest.mark.parametrize("accepted", [1, 3, 8])
def test_the_filter_of_any_number_of_chains_is_the_mean_bias_over_all_pairs(accepted: int) -> None:
    generator = np.random.default_rng(0)
    latents = (30 + np.cumsum(generator.normal(0.4, 0.3, (400, 5)), axis=0)).astype(np.float32)
    gauge, shape = Gauge(0.99, slowness=1.2), ChainShape(pieces=3, segment=6, mask=6)
    windows = find_windows(latents, np.array([0, 200, 400]), shape.segment, gauge, 1e9)
    search = ChainSearch(latents, windows, gauge, shape, SearchSettings(batch=4))
    starts = generator.choice(windows.starts, (accepted, 3))
    found = search.statistic(starts, generator)
    assert found.shape == (accepted,)
    for chain in range(accepted):
        rows = (starts[chain][:, None] + np.arange(6)).ravel()
        whole = jnp.asarray(latents[rows])
        assert found[chain] == pytest.approx(
            float(mean_bias(gauge, whole, jnp.asarray(shape.positions()))), abs=2e-3
        )
