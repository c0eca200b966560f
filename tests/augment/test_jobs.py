"""Which source rows stand where in the sequences that are completed, and that all of them are, in order."""

import jax
import numpy as np
import pytest

from astro_rl.augment.jobs import Completes, complete_jobs, job_rows, known_span, needed_horizon
from astro_rl.data.normaliser import fit_normaliser
from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Completer
from astro_rl.stitch.geometry import ChainShape
from tests.augment.stub_completer import StubCompleter, numbered, plain
from tests.planner.stub_planner import planner_of
from tests.planner.test_complete import TOLD, WORLD

SHAPE = ChainShape(pieces=3, segment=2, mask=3)
STARTS = np.asarray([[10, 20, 30], [11, 40, 50]])


def test_rollout_rows_by_hand() -> None:
    """n = 3, l = 2, M = 3: L = 15. A longer horizon is filled up with what is to be generated."""
    rows = job_rows("rollout", SHAPE, STARTS, 16, tail=True)
    assert rows.shape == (2, 1, 16)
    gap = [-1, -1, -1]
    assert rows[0, 0].tolist() == [10, 11, *gap, 20, 21, *gap, 30, 31, *gap, -1]
    assert rows[1, 0].tolist() == [11, 12, *gap, 40, 41, *gap, 50, 51, *gap, -1]


def test_anchored_rows_by_hand() -> None:
    """One job a gap: the last state before it, the MASK, the piece behind. The tail has nothing behind it."""
    rows = job_rows("anchored", SHAPE, STARTS, 7, tail=False)
    assert rows.tolist() == [
        [[11, -1, -1, -1, 20, 21, -1], [21, -1, -1, -1, 30, 31, -1]],
        [[12, -1, -1, -1, 40, 41, -1], [41, -1, -1, -1, 50, 51, -1]],
    ]
    with_tail = job_rows("anchored", SHAPE, STARTS, 7, tail=True)
    assert with_tail[:, :2].tolist() == rows.tolist()
    assert with_tail[:, 2].tolist() == [[31, *[-1] * 6], [51, *[-1] * 6]]


@pytest.mark.parametrize(("mode", "least", "fix"), [("rollout", 15, "anchored"), ("anchored", 6, "1 + mask")])
def test_a_horizon_that_is_too_short_is_refused(mode: str, least: int, fix: str) -> None:
    assert needed_horizon(mode, SHAPE) == least  # type: ignore[arg-type]
    job_rows(mode, SHAPE, STARTS, least, tail=False)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="too short") as refused:
        job_rows(mode, SHAPE, STARTS, least - 1, tail=False)  # type: ignore[arg-type]
    assert refused.value.field == "horizon"
    assert str(least) in str(refused.value) and fix in str(refused.value)


def test_the_known_span_leaves_out_the_tail() -> None:
    assert known_span(SHAPE) == 12


def test_all_jobs_are_completed_in_order_in_batches_of_one_size() -> None:
    """Five jobs, two at a time: three calls, the last one filled up, each with its own key."""
    dataset = numbered(30)
    normaliser = fit_normaliser(dataset.observations)
    rows = np.arange(5)[:, None] * 3 + np.asarray([0, -100, 2])
    rows = np.where(rows < 0, -1, rows)
    completer = StubCompleter(3, lambda states, known: np.where(known[..., None], states, 7.0))
    done = complete_jobs(completer, dataset, normaliser, rows, jax.random.key(0), batch=2)
    assert [states.shape for _, states, _ in completer.asked] == [(2, 3, 1)] * 3
    keys = {tuple(jax.random.key_data(key).tolist()) for key, _, _ in completer.asked}
    assert len(keys) == 3
    assert done.known.tolist() == [[True, False, True]] * 5
    expected = (rows - normaliser.mean[0]) / normaliser.scale[0]
    np.testing.assert_allclose(done.given[..., 0], np.where(rows >= 0, expected, 0.0), rtol=1e-5)
    np.testing.assert_allclose(done.states[..., 0], np.where(rows >= 0, expected, 7.0), rtol=1e-5)
    assert done.actions.shape == (5, 3, 1) and done.deviation.shape == (5,)


def test_a_job_does_not_depend_on_how_many_there_are() -> None:
    dataset = numbered(30)
    rows = np.stack([np.arange(4), np.arange(4) + 4])
    completer = StubCompleter(4, lambda states, known: 2 * states)
    alone = complete_jobs(completer, dataset, plain(1), rows[:1], jax.random.key(0), batch=2)
    both = complete_jobs(completer, dataset, plain(1), rows, jax.random.key(0), batch=2)
    assert np.array_equal(alone.states[0], both.states[0])


def test_the_trained_models_and_the_stub_are_completers() -> None:
    assert isinstance(Completer(planner_of(2), TOLD, WORLD), Completes)
    assert isinstance(StubCompleter(2, lambda states, known: states), Completes)
