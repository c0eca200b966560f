"""Completions as trajectories, by hand: real rows stay, junctions are cut, rejected gaps end one and start another.

The source holds its row numbers; the state that job j generates at place k is 1000·(j + 1) + k, its action a tenth of
a thousandth of that.
"""

import numpy as np
import pytest

from astro_rl.augment.layout import Laid, lay_anchored, lay_rollout
from astro_rl.augment.verdicts import CUT, DEVIATES, KEPT
from astro_rl.stitch.geometry import ChainShape
from tests.augment.stub_completer import numbered

SHAPE = ChainShape(pieces=3, segment=2, mask=2)
SOURCE = numbered(9, 9, 12)


def lay(*verdicts: int, starts: tuple[int, ...] = (3, 10, 20), tail: bool = False) -> Laid:
    """One chain; verdicts and δ = 0.1, 0.2, 0.3 of its gaps, the tail the last."""
    jobs = len(verdicts)
    states = 1000.0 * (np.arange(jobs)[:, None] + 1) + np.arange(5)
    return lay_anchored(
        SHAPE,
        SOURCE,
        np.asarray([starts]),
        states[None, :, :, None].astype(np.float32),
        states[None, :, :, None].astype(np.float32) / 10_000,
        np.asarray([[0.1, 0.2, 0.3][:jobs]], np.float32),
        np.asarray([verdicts]),
        tail=tail,
    )


def places(laid: Laid) -> list[list[int]]:
    """The observations of each trajectory."""
    bounds = np.cumsum(laid.sizes)[:-1]
    return [part[:, 0].astype(int).tolist() for part in np.split(laid.observations, bounds)]


def test_a_chain_of_kept_gaps_is_one_trajectory() -> None:
    laid = lay(KEPT, KEPT)
    assert places(laid) == [[3, 4, 1001, 1002, 10, 11, 2001, 2002, 20, 21]]
    assert laid.source_rows.tolist() == [3, 4, -1, -1, 10, 11, -1, -1, 20, 21]
    # A generated action leads from the last real state into the gap, through it, and to the next piece.
    expected = [0.003, 0.1000, 0.1001, 0.1002, 0.010, 0.2000, 0.2001, 0.2002, 0.020, 0.0]
    np.testing.assert_allclose(laid.actions[:, 0], expected, rtol=1e-5)
    assert laid.is_real.tolist() == [True, False, False, False, True, False, False, False, True, False]
    assert laid.chains.tolist() == [0]
    assert laid.deviation == pytest.approx([0.2]), "the largest of its gaps"


def test_a_cut_junction_ends_at_the_generated_state_and_starts_at_the_real_one() -> None:
    laid = lay(CUT, KEPT)
    assert places(laid) == [[3, 4, 1001, 1002, 1003], [10, 11, 2001, 2002, 20, 21]]
    expected = [0.003, 0.1000, 0.1001, 0.1002, 0.0, 0.010, 0.2000, 0.2001, 0.2002, 0.020, 0.0]
    np.testing.assert_allclose(laid.actions[:, 0], expected, rtol=1e-5)
    assert laid.source_rows[4] == -1
    assert laid.deviation == pytest.approx([0.1, 0.2])


def test_a_last_piece_behind_a_cut_junction_is_real_data_and_left_out() -> None:
    """The picture at the head of `layout`."""
    laid = lay(KEPT, CUT)
    assert places(laid) == [[3, 4, 1001, 1002, 10, 11, 2001, 2002, 2003]]
    assert laid.deviation == pytest.approx([0.2])


def test_a_rejected_gap_leaves_nothing_of_itself() -> None:
    assert places(lay(DEVIATES, KEPT)) == [[10, 11, 2001, 2002, 20, 21]]
    first = lay(KEPT, DEVIATES)
    assert places(first) == [[3, 4, 1001, 1002, 10, 11]]
    assert float(first.actions[-1, 0]) == 0.0
    assert first.deviation == pytest.approx([0.1]), "a rejected gap's δ does not count"
    assert len(lay(DEVIATES, DEVIATES).sizes) == 0


def test_a_tail_is_a_free_continuation() -> None:
    laid = lay(KEPT, KEPT, KEPT, tail=True)
    assert places(laid) == [[3, 4, 1001, 1002, 10, 11, 2001, 2002, 20, 21, 3001, 3002]]
    np.testing.assert_allclose(laid.actions[-3:, 0], [0.3000, 0.3001, 0.0], rtol=1e-5)
    assert laid.is_real[-4:].tolist() == [True, False, False, False]
    assert laid.deviation == pytest.approx([0.3])
    assert places(lay(KEPT, DEVIATES, KEPT, tail=True)) == [[3, 4, 1001, 1002, 10, 11], [20, 21, 3001, 3002]]
    assert places(lay(KEPT, KEPT, DEVIATES, tail=True)) == [[3, 4, 1001, 1002, 10, 11, 2001, 2002, 20, 21]]
    assert places(lay(KEPT, CUT, DEVIATES, tail=True)) == [[3, 4, 1001, 1002, 10, 11, 2001, 2002, 2003]]


def test_chains_follow_one_another_each_trajectory_knows_its_own() -> None:
    states = np.zeros((2, 2, 5, 1), np.float32)
    laid = lay_anchored(
        SHAPE,
        SOURCE,
        np.asarray([[0, 10, 20], [2, 11, 22]]),
        states,
        states,
        np.zeros((2, 2), np.float32),
        np.asarray([[CUT, KEPT], [KEPT, DEVIATES]]),
        tail=False,
    )
    assert laid.chains.tolist() == [0, 0, 1]
    assert laid.sizes.tolist() == [5, 6, 6]
    assert laid.source_rows[-6:].tolist() == [2, 3, -1, -1, 11, 12]


def test_a_rollout_is_the_models_own_whole_or_not_at_all() -> None:
    """L = 12 with its tail, 10 without. States are generated also where a source is named."""
    states = np.arange(2 * 13, dtype=np.float32).reshape(2, 13, 1)
    rows = np.stack([np.arange(13), np.arange(13) + 100])
    verdict = np.asarray([DEVIATES, KEPT])
    for tail, length in ((True, 12), (False, 10)):
        laid = lay_rollout(
            SHAPE, rows, states, states / 100, np.asarray([0.5, 0.25], np.float32), verdict, tail=tail
        )
        assert laid.sizes.tolist() == [length] and laid.chains.tolist() == [1]
        assert places(laid) == [list(range(13, 13 + length))]
        assert laid.source_rows.tolist() == list(range(100, 100 + length))
        np.testing.assert_allclose(laid.actions[:, 0], [*np.arange(13, 12 + length) / 100, 0.0], rtol=1e-6)
        assert not laid.is_real.any()
        assert laid.deviation.tolist() == [0.25]
    assert states[1, 9, 0] == 22, "what was given is not written to"
