"""`auto`: shapes that the data can serve, the reason said, and what would fit where nothing does."""

import numpy as np
import pytest

from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.auto import SPAN, check_shape, choose_shape, model_states, typical_states
from astro_rl.stitch.geometry import ChainShape

DISCOUNT = 0.998


def corridor(
    length: float, trajectories: int, rows: int, pace: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Latents of walks along a corridor that is `length` learned steps long, `1 / pace` data steps a learned one.

    Distance in the latent space is discounted, as the loss learns it, so the corridor is a bent curve.
    """
    generator = np.random.default_rng(seed)
    starts = generator.uniform(0, max(length - rows * pace, 0.0), trajectories)
    places = np.minimum(starts[:, None] + pace * np.arange(rows)[None], length).ravel()
    return bent(places), np.arange(trajectories + 1) * rows


def bent(places: np.ndarray) -> np.ndarray:
    """Points on a curve whose chord lengths are (1 − γ^|a − b|) / (1 − γ) for |a − b| up to a few hundred.

    Classical scaling of that distance over a grid of places, and a straight line between grid points.
    """
    grid = np.linspace(0, places.max() + 1, 120)
    apart = ((1 - DISCOUNT ** np.abs(grid[:, None] - grid[None])) / (1 - DISCOUNT)) ** 2
    centre = np.eye(len(grid)) - 1 / len(grid)
    values, vectors = np.linalg.eigh(-0.5 * centre @ apart @ centre)
    points = vectors[:, -20:] * np.sqrt(np.maximum(values[-20:], 0))
    return np.stack([np.interp(places, grid, axis) for axis in points.T], axis=1).astype(np.float32)


def test_a_large_dataset_gets_the_papers_shape_and_the_reason_is_told() -> None:
    latents, offsets = corridor(length=400, trajectories=60, rows=201)
    found = choose_shape(latents, offsets, DISCOUNT)
    assert found.shape == ChainShape(5, 18, 18)
    for part in ("n = 5", "l = M = 18", "L = 180", "201 states", "data steps apart"):
        assert part in found.why


@pytest.mark.parametrize("length", [60.0, 110.0, 200.0])
def test_a_chain_reaches_no_farther_than_the_datasets_states_lie_apart(length: float) -> None:
    latents, offsets = corridor(length, trajectories=200, rows=50)
    shape = choose_shape(latents, offsets, DISCOUNT).shape
    assert shape.pieces >= 2
    assert shape.horizon - shape.mask <= SPAN * length
    longer = ChainShape(shape.pieces, shape.segment + 6, shape.mask + 6)
    assert longer.horizon - longer.mask > 0.75 * SPAN * length, "much longer ones would have fitted"


def test_slow_data_is_given_longer_chains_than_fast_data_of_the_same_place() -> None:
    fast = choose_shape(*corridor(60, 200, 40, pace=1.0), DISCOUNT).shape
    slow = choose_shape(*corridor(60, 200, 40, pace=0.4), DISCOUNT).shape
    assert slow.horizon > fast.horizon


def test_short_trajectories_get_short_pieces() -> None:
    latents, offsets = corridor(300, trajectories=300, rows=32)
    shape = choose_shape(latents, offsets, DISCOUNT).shape
    assert shape.segment == 12
    assert model_states(shape, 6, "anchored") <= 32


def test_rollouts_are_learned_from_trajectories_as_long_as_the_horizon() -> None:
    latents, offsets = corridor(400, trajectories=100, rows=101)
    assert choose_shape(latents, offsets, DISCOUNT, completion="anchored").shape.horizon == 180
    assert choose_shape(latents, offsets, DISCOUNT, completion="rollout").shape.horizon == 96


@pytest.mark.parametrize("patch", [1, 2, 4, 5, 6])
def test_the_patch_divides_pieces_gaps_and_horizon(patch: int) -> None:
    shape = choose_shape(*corridor(150, 100, 60), DISCOUNT, patch=patch).shape
    assert shape.segment % patch == shape.mask % patch == shape.horizon % patch == 0


def test_trajectories_too_short_for_any_chain_are_refused_with_what_would_fit() -> None:
    latents, offsets = corridor(100, trajectories=100, rows=11)
    with pytest.raises(DataError, match=r"patch 3: n = 5, l = M = 3 would fit, L = 30"):
        choose_shape(latents, offsets, DISCOUNT, patch=6)
    assert choose_shape(latents, offsets, DISCOUNT, patch=3).shape.horizon == 30


def test_trajectories_of_a_few_states_fit_nothing_at_all() -> None:
    with pytest.raises(DataError, match="no L fits"):
        choose_shape(*corridor(100, trajectories=100, rows=3), DISCOUNT)


def test_states_too_close_together_are_refused() -> None:
    to_and_fro = 7 - np.abs(np.arange(60) % 14 - 7.0)
    latents, offsets = bent(np.tile(to_and_fro, 50)), np.arange(51) * 60
    with pytest.raises(DataError, match="too close together") as caught:
        choose_shape(latents, offsets, DISCOUNT)
    assert "use patch" in str(caught.value)


def test_a_single_trajectory_is_refused_only_if_pieces_must_come_from_different_ones() -> None:
    latents, offsets = corridor(200, trajectories=1, rows=190)
    with pytest.raises(DataError, match=r"generate\.search\.distinct=false"):
        choose_shape(latents, offsets, DISCOUNT)
    assert choose_shape(latents, offsets, DISCOUNT, distinct=False).shape.pieces >= 2


def test_no_more_pieces_than_trajectories() -> None:
    assert choose_shape(*corridor(400, trajectories=3, rows=201), DISCOUNT).shape.pieces == 3


def test_scraps_and_one_long_recording_do_not_decide_what_is_typical() -> None:
    assert typical_states(np.cumsum([0, *[100] * 10, *[2] * 50])) == 100
    assert typical_states(np.cumsum([0, *[20] * 100, 300])) == 20


def test_a_shape_by_hand_is_checked_against_the_data() -> None:
    offsets = np.arange(11) * 61
    check_shape(ChainShape(5, 18, 18), offsets, patch=6, completion="anchored", distinct=True)
    with pytest.raises(DataError, match="n = 5, l = M = 6 would fit: L = 60"):
        check_shape(ChainShape(5, 18, 18), offsets, patch=6, completion="rollout", distinct=True)
    with pytest.raises(ConfigError, match="patch 6, or other l and M"):
        check_shape(ChainShape(5, 18, 18), offsets, patch=12, completion="anchored", distinct=True)
    with pytest.raises(DataError, match="at least 12, one a piece"):
        check_shape(ChainShape(12, 6, 6), offsets, patch=6, completion="anchored", distinct=True)
