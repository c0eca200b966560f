import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from astro_rl.errors import ConfigError
from astro_rl.evaluate import statistics

FEW = settings(deadline=None, max_examples=40)
SCORES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(0, 8).map(float)
)


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_iqm_by_hand() -> None:
    # Sorted 0 0 0 1 2 3 50 100; two are dropped from either end; (0 + 1 + 2 + 3) / 4.
    assert statistics.interquartile_mean(column(0, 100, 3, 0, 2, 50, 1, 0)) == 1.5
    # Ten scores: ⌊10/4⌋ = 2 go from either end, not 2.5; (2 + 3 + 4 + 5 + 6 + 7) / 6.
    assert statistics.interquartile_mean(column(*range(10))) == 4.5
    # Three scores: none is dropped.
    assert statistics.interquartile_mean(column(0, 0, 9)) == 3.0
    # Tasks are pooled: 1 2 3 4 | 10 20 30 40 keeps 3 4 10 20.
    pooled = np.array([[1, 10], [2, 20], [3, 30], [4, 40]], np.float64)
    assert statistics.interquartile_mean(pooled) == 9.25


@FEW
@given(SCORES)
def test_iqm_is_the_trimmed_mean_that_rliable_takes(scores: np.ndarray) -> None:
    expected = scipy.stats.trim_mean(scores.reshape(-1), proportiontocut=0.25)
    np.testing.assert_allclose(statistics.interquartile_mean(scores), expected, rtol=1e-12)


def test_the_interval_of_a_known_distribution() -> None:
    # Eight seeds, four of which score 1: a resampled mean is Binomial(8, 1/2) / 8. Its 2.5 % quantile is 1/8
    # (P[0] = 0.004, P[≤ 1] = 0.035), its 97.5 % quantile 7/8; at 90 %, 2/8 and 6/8 (P[≤ 1] = 0.035, P[≤ 2] =
    # 0.14).
    scores = column(0, 0, 0, 0, 1, 1, 1, 1)
    wide = statistics.interval(scores, statistics.mean_score)
    assert (wide.value, wide.low, wide.high) == (0.5, 0.125, 0.875)
    narrow = statistics.interval(scores, statistics.mean_score, confidence=0.9)
    assert (narrow.low, narrow.high) == (0.25, 0.75)


def test_seeds_are_resampled_within_their_task() -> None:
    # Seeds agree within each task, so that nothing varies, however far tasks are apart.
    scores = np.array([[0.0, 100.0]] * 5)
    estimate = statistics.interval(scores, statistics.mean_score, resamples=200)
    assert (estimate.value, estimate.low, estimate.high) == (50.0, 50.0, 50.0)


def test_tasks_are_resampled_independently_of_each_other() -> None:
    # Rows drawn together would always sum to 1. Drawn apart, the mean of two tasks takes every value.
    scores = np.array([[0.0, 1.0], [1.0, 0.0]])
    estimate = statistics.interval(scores, statistics.mean_score, resamples=2000)
    assert (estimate.low, estimate.high) == (0.0, 1.0)


def test_the_interval_is_seeded() -> None:
    scores = np.random.default_rng(0).normal(size=(8, 3))

    def of(seed: int) -> statistics.Estimate:
        return statistics.interval(scores, statistics.interquartile_mean, resamples=500, seed=seed)

    assert of(1) == of(1) != of(2)


def test_chunks_cover_all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def counting(scores: np.ndarray) -> np.ndarray:
        drawn.append(scores.shape[:-2])
        return statistics.mean_score(scores)

    monkeypatch.setattr(statistics, "CELLS_AT_ONCE", 30)
    statistics.interval(np.ones((2, 5)), counting, resamples=10)
    sizes = [shape[0] for shape in drawn if shape]
    assert sum(sizes) == 10 and max(sizes) * 2 * 5 <= 30


def test_probability_of_improvement_by_hand() -> None:
    # 3 > 2, 3 > 1, 1 < 2, 1 = 1: (1 + 1 + 0 + ½) / 4. The other task is won by every pair. Average of 0.625
    # and 1.
    ours, theirs = np.array([[3.0, 9], [1, 8]]), np.array([[2.0, 1], [1, 2]])
    estimate = statistics.probability_of_improvement(ours, theirs)
    assert estimate.value == 0.8125
    # Drawing both seeds alike happens often enough: 3, 3 against anything wins, 1, 1 against 2, 2 loses.
    assert (estimate.low, estimate.high) == (0.5, 1.0)


@FEW
@given(SCORES, st.integers(1, 5), st.data())
def test_improvement_is_mann_whitney_over_pairs(ours: np.ndarray, m: int, data: st.DataObject) -> None:
    theirs = data.draw(hnp.arrays(np.float64, (m, ours.shape[1]), elements=st.integers(0, 8).map(float)))
    expected = np.mean(
        [
            scipy.stats.mannwhitneyu(ours[:, task], theirs[:, task], method="asymptotic").statistic
            / (len(ours) * m)
            for task in range(ours.shape[1])
        ]
    )
    forward = statistics.probability_of_improvement(ours, theirs, resamples=50)
    backward = statistics.probability_of_improvement(theirs, ours, resamples=50)
    assert forward.value == pytest.approx(expected)
    assert forward.value + backward.value == pytest.approx(1.0)
    assert 0 <= forward.low <= forward.high <= 1


def test_seeds_that_never_learned() -> None:
    assert statistics.never_learned(np.array([0.0, 2.0, 0.0])) == 2
    assert statistics.never_learned(np.array([5.0, 12.0]), floor=5.0) == 1
    # The second seed had learned once and forgot; the third never did.
    assert statistics.never_learned(np.array([[0.0, 9.0], [4.0, 0.0], [0.0, 0.0]])) == 1


def test_a_summary_says_all_of_it() -> None:
    summary = statistics.summarise(np.array([0.0, 10.0, 20.0, 90.0]))
    assert (summary.mean, summary.std, summary.iqm.value) == (30.0, pytest.approx(np.sqrt(1250)), 15.0)
    assert summary.never_learned == 1
    assert str(summary).startswith("30.0 ± 35.4 over 4 seeds, IQM 15.0 [")
    assert summary.to_json()["iqm"]["value"] == 15.0


@pytest.mark.parametrize("scores", [np.zeros((0, 2)), np.array([[1.0], [np.nan]])])
def test_scores_that_mean_nothing_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(ConfigError):
        statistics.interval(scores, statistics.mean_score)


def test_methods_scored_on_different_tasks_are_refused() -> None:
    with pytest.raises(ConfigError, match="same tasks"):
        statistics.probability_of_improvement(np.ones((3, 2)), np.ones((3, 1)))
