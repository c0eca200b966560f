"""What the planner is shown in training is what chains show it, at any phase."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augment.jobs import job_rows, needed_horizon
from astro_rl.planner.masks import draw_patterns, pattern
from astro_rl.stitch.geometry import ChainShape

SHAPE = ChainShape(pieces=3, segment=3, mask=2)


def bits(known: object) -> str:
    return "".join("x" if value else "." for value in np.asarray(known).tolist())


def test_patterns_by_hand() -> None:
    """l = 3, M = 2. Phase 2 starts at a piece's last state; phases 3 and 4 in a MASK, but the first state is given."""
    shown = [bits(pattern(SHAPE, 9, jnp.asarray(phase, jnp.int32))) for phase in range(5)]
    assert shown == ["xxx..xxx.", "xx..xxx..", "x..xxx..x", "x.xxx..xx", "xxxx..xxx"]


@pytest.mark.parametrize("shape", [SHAPE, ChainShape(), ChainShape(4, 5, 7), ChainShape(2, 6, 2)])
def test_phase_0_is_a_whole_chain_and_phase_l_minus_1_one_gap(shape: ChainShape) -> None:
    """The very places that `augment.jobs` fills from the source."""
    starts = np.arange(shape.pieces)[None] * 1000
    chain = job_rows("rollout", shape, starts, shape.horizon, tail=False)[0, 0] >= 0
    zero, last = jnp.int32(0), jnp.int32(shape.segment - 1)
    assert bits(pattern(shape, shape.horizon, zero)) == bits(chain) == bits(shape.known())
    # A patch may ask for a longer horizon than a gap needs; what is added is masked.
    for horizon in (needed_horizon("anchored", shape), needed_horizon("anchored", shape) + shape.mask):
        gap = job_rows("anchored", shape, starts, horizon, tail=False)[0, 0] >= 0
        assert bits(pattern(shape, horizon, last)) == bits(gap)


def test_a_share_of_training_sequences_is_entered_at_a_random_place() -> None:
    horizon, count = 15, 4000
    known = np.asarray(draw_patterns(jax.random.key(0), SHAPE, horizon, count, phase=0, moved_share=0.5))
    assert known[:, 0].all()
    possible = [bits(pattern(SHAPE, horizon, jnp.int32(phase))) for phase in range(SHAPE.period)]
    drawn = [bits(row) for row in known]
    assert set(drawn) == set(possible)
    # Half stay at phase 0, and a fifth of those that move land there too.
    assert np.mean([row == possible[0] for row in drawn]) == pytest.approx(0.6, abs=0.03)
    for other in possible[1:]:
        assert np.mean([row == other for row in drawn]) == pytest.approx(0.1, abs=0.02)


def test_without_a_share_all_begin_at_the_phase() -> None:
    known = draw_patterns(jax.random.key(0), SHAPE, 9, 50, phase=2, moved_share=0.0)
    assert {bits(row) for row in np.asarray(known)} == {"x..xxx..x"}
