"""What a page may claim, by rule."""

import numpy as np
import pytest

from astro_rl.report.findings import compare, difference_of_means
from astro_rl.report.story import Scores


def scores(original: list[float], ours: list[float]) -> Scores:
    return Scores("iql", {"original": np.array(original, float), "ASTRO": np.array(ours, float)}, 50, 1_000)


@pytest.mark.parametrize(
    ("original", "ours", "verdict"),
    [
        ([10, 12, 11, 13], [50, 52, 51, 49], "gain"),
        ([50, 52, 51, 49], [10, 12, 11, 13], "loss"),
        ([10, 50, 30, 70], [20, 60, 10, 80], "none"),
        ([10, 12, 11], [50, 52, 51], "few"),
        ([10, 12, 11, 13, 12], [50, 52, 51], "few"),
        ([30], [30], "none"),
    ],
)
def test_verdicts(original: list[float], ours: list[float], verdict: str) -> None:
    (found,) = compare(scores(original, ours))
    assert found.verdict == verdict


def test_the_interval_of_a_difference_is_the_bootstraps() -> None:
    """Means of two draws from {0, 2} are 0, 1, 1, 2; less a constant 1 that is −1 to 1 at the 2.5 % tails."""
    found = difference_of_means(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    assert (found.value, found.low, found.high) == (0.0, -1.0, 1.0)
