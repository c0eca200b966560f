"""What states are worth (6), which ends are drawn (7), which target fits and where (8, 9), layout of stitches."""

import numpy as np
import pytest

from astro_rl.augmenters.diffstitch.layout import lay_stitches
from astro_rl.augmenters.diffstitch.returns import gap_returns, pools, ranks, returns_to_go
from astro_rl.augmenters.diffstitch.similarity import choose, similarities
from astro_rl.data import from_arrays
from astro_rl.data.schema import Dataset


def rewarded(rewards: list[float], offsets: list[int], terminated: list[int] | None = None) -> Dataset:
    rows = len(rewards)
    ended = np.zeros(rows, bool)
    ended[terminated or []] = True
    return from_arrays(
        np.arange(rows, dtype=np.float32)[:, None],
        np.zeros((rows, 1), np.float32),
        offsets=np.asarray(offsets),
        rewards=np.asarray(rewards, np.float32),
        terminated=ended,
    )


def test_returns_to_go_by_hand() -> None:
    """γ = ½. Three steps of −1, cut off: −1 / (1 − ½) = −2 everywhere, near the end as at the beginning. A success at
    the second of three: 0 there, −1 before it, and what follows starts anew. One step of 4: 8."""
    dataset = rewarded([-1, -1, -1, 9, -1, 0, -1, 9, 4, 9], [0, 4, 8, 10], terminated=[5])
    expected = [-2, -2, -2, -2, -1, 0, -2, -2, 8, 8]
    np.testing.assert_allclose(returns_to_go(dataset, 0.5), expected)


def test_an_end_that_is_one_is_worth_nothing() -> None:
    assert returns_to_go(rewarded([1, 3, 9], [0, 3], terminated=[1]), 0.5).tolist() == [2.5, 3.0, 0.0]


def test_without_rewards_nothing_is_worth_more() -> None:
    dataset = from_arrays(
        np.ones((4, 1), np.float32), np.zeros((4, 1), np.float32), offsets=np.asarray([0, 4])
    )
    worth = returns_to_go(dataset, 0.9)
    assert worth.tolist() == [0.0] * 4
    assert ranks(worth).tolist() == [0.5] * 4


def test_equals_share_a_rank() -> None:
    """Two of four are the lowest: the middle of 0 and ½. Rounding makes no difference."""
    worth = np.asarray([7.0, -100.0, -100.0 * (1 + 1e-15), 8.0])
    assert ranks(worth).tolist() == [0.625, 0.25, 0.25, 0.875]


def test_a_gap_adds_its_rewards_before_the_target() -> None:
    """γ = ½: 1 + ½·4 = 3, then −1 + ½·3. With an end after its first step the target does not count."""
    rewards = np.asarray([-1.0, 1.0])
    assert gap_returns(rewards, np.asarray([False, False]), 4.0, 0.5) == 0.5
    assert gap_returns(rewards, np.asarray([True, False]), 4.0, 0.5) == -1.0


def test_sources_are_the_lowest_and_targets_the_highest() -> None:
    scores = np.asarray([5.0, 1, 4, 2, 3, 0])
    ends = np.asarray([0, 1, 2, 3]), np.asarray([1, 2, 3, 4, 5])
    low, high = pools(scores, *ends, np.zeros(6), source_share=0.5, target_share=0.4)
    assert (low.tolist(), high.tolist()) == ([1, 3], [2, 4])
    noise = np.asarray([0.0, 0, -9, 9, 0, 0])
    low, high = pools(scores, *ends, noise, source_share=0.01, target_share=0.01)
    assert (low.tolist(), high.tolist()) == ([2], [3]), "at least one each, by the noisy score"


def test_noise_balances_sparse_rewards() -> None:
    """One row in fifty is rewarded and a fiftieth are targets: without noise these and no others, with ours both."""
    scores = ranks(np.where(np.arange(5000) % 50 == 0, 0.0, -100.0))
    noise = np.random.default_rng(0).standard_normal(5000)
    ends = np.arange(5000), np.arange(5000)
    shares = {"source_share": 0.5, "target_share": 0.02}
    _, strict = pools(scores, *ends, np.zeros(5000), **shares)
    assert (strict % 50 == 0).all()
    _, balanced = pools(scores, *ends, 0.25 * noise, **shares)
    assert 0.2 < (balanced % 50 == 0).mean() < 0.6


def test_similarities_by_hand() -> None:
    """(3, 4) and (4, 3): 24 / 25, and √((1 + 1) / 2) apart. (0, 5): 20 / 25, and √(10 / 2)."""
    walked, candidates = np.asarray([[[3.0, 4.0]]]), np.asarray([[[4.0, 3.0], [0.0, 5.0]]])
    np.testing.assert_allclose(similarities(walked, candidates, "cosine"), [[[0.96, 0.8]]])
    np.testing.assert_allclose(
        similarities(walked, candidates, "euclidean"), [[[-1.0, -np.sqrt(5.0)]]], rtol=1e-6
    )


def test_one_that_fits_is_drawn_and_placed_where_it_is_nearest() -> None:
    """Steps 3, 4, 5. Candidate 0 never reaches ½, 1 does later, 2 at once but is not allowed, 3 at once."""
    similar = np.asarray([[[0.1, 0.2, 0.9, 0.6], [0.4, 0.5, 0.9, 0.2], [0.2, 0.7, 0.9, 0.1]]] * 400)
    allowed = np.asarray([[True, True, False, True]] * 399 + [[True, False, False, False]])
    choice = choose(similar, allowed, 0.5, 3, np.random.default_rng(0))
    assert choice.found.tolist() == [True] * 399 + [False]
    drawn = choice.candidate[:-1]
    assert set(drawn) == {1, 3} and 150 < (drawn == 1).sum() < 250
    assert (choice.place[:-1] == np.where(drawn == 1, 5, 3)).all()
    assert (choice.similarity[:-1] == np.where(drawn == 1, 0.7, 0.6)).all()


@pytest.mark.parametrize("broken", [np.nan, -1.0])
def test_what_is_not_a_number_is_near_nothing(broken: float) -> None:
    similar = np.full((1, 2, 2), broken)
    assert not choose(similar, np.ones((1, 2), bool), 0.0, 1, np.random.default_rng(0)).found[0]


def test_a_stitch_is_laid_out_by_hand() -> None:
    """Pieces of two states; from row 1, over two generated states, to row 6 at place 3."""
    dataset = rewarded([0.0] * 8, [0, 4, 8])
    acts = np.arange(8, dtype=np.float32)[:, None] / 10
    dataset = from_arrays(dataset.observations, acts, offsets=dataset.offsets)
    made = np.asarray([[[1.0], [50], [60], [6], [7]]], np.float32)
    told = np.asarray([[[0.91], [0.92], [0.93], [0.94], [0.0]]], np.float32)
    one = np.asarray
    laid = lay_stitches(dataset, one([1]), one([6]), one([3]), made, told, one([0.5]), one([7]), 2)
    assert laid.observations[:, 0].tolist() == [0, 1, 50, 60, 6, 7]
    np.testing.assert_allclose(laid.actions[:, 0], [0, 0.91, 0.92, 0.93, 0.6, 0.0], rtol=1e-6)
    assert laid.source_rows.tolist() == [0, 1, -1, -1, 6, 7]
    assert laid.is_real.tolist() == [True, False, False, False, True, False]
    assert (laid.sizes.tolist(), laid.chains.tolist(), laid.deviation.tolist()) == ([6], [7], [0.5])
