"""The state planner by hand: (1) and (2), what the network is shown, and that known states are never touched."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.data.normaliser import fit_normaliser
from astro_rl.diffusion.schedule import Schedule
from astro_rl.dynamics.sequences import sequence_data, spread_of
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from astro_rl.stateplan.masks import ChainMasks, GapMasks
from astro_rl.stateplan.model import StatePlanner
from astro_rl.stitch.geometry import ChainShape
from astro_rl.training.fit import fit_chunk
from tests.dynamics.stub_networks import StubNetwork, walks

HALF = Schedule(final_signal=1e-9)
"""ᾱ(1/2) = 1 − sin²(π/4) = 1/2."""
NET = DiTConfig(width=32, depth=1, heads=2, patch=2, step_width=16)
MASKS = GapMasks(2, 3)
KNOWN = jnp.asarray([[True, False, False, True, True]])


def rows(*values: float) -> jax.Array:
    return jnp.asarray(values, jnp.float32)[None, :, None]


def fixed(*values: float) -> StubNetwork:
    return StubNetwork(
        lambda p, steps, level, extras: jnp.broadcast_to(p[None, :, None], steps[:, :, :1].shape), *values
    )


def test_the_loss_by_hand() -> None:
    """ᾱ = ½, real 1, 3, 4, 8, 9, noise 2 and −2 in the gap, velocities √2·1.5 and √2·1 there:
    x̃ = ½ (3 + 2) + 1.5 = 4 and ½ (4 − 2) + 1 = 2, which miss by 1 and −2; what is said elsewhere does not count.

    Sequence: (1 + 4) / 2. Steps: 1, −3, 2 in steps of 2, the pair that is known left out: (¼ + 9/4 + 1) / 3.
    """
    planner = StatePlanner(5, 1, MASKS, net=DiTConfig(patch=1), schedule=HALF, step_weight=0.1)
    root = math.sqrt(2)
    loss, info = planner.loss(
        fixed(7, root * 1.5, root * 1, -7, 70),
        rows(1, 3, 4, 8, 9),
        KNOWN,
        jnp.asarray([0.5]),
        rows(5, 2, -2, 6, 7),
        jnp.asarray([2.0]),
    )
    assert float(info["sequence_mse"]) == pytest.approx(2.5, rel=1e-5)
    assert float(info["step_mse"]) == pytest.approx(3.5 / 3, rel=1e-5)
    assert float(loss) == pytest.approx(2.5 + 0.35 / 3, rel=1e-5)


def test_what_the_network_is_shown_is_seen_from_the_first_state() -> None:
    """s = ½, first state 4: the known 5 is (5 − 4) / ½ = 2. Shown: noisy (2 in its place), given, first, flag."""
    shown: list[jax.Array] = []
    network = StubNetwork(lambda p, steps, level, extras: shown.append(steps) or 0 * steps[:, :, :1])
    planner = StatePlanner(3, 1, MASKS, net=DiTConfig(patch=1), schedule=HALF, spread=(0.5,))
    clean = planner.clean(
        network, rows(8, 6, 9), rows(4, 100, 5), jnp.asarray([[True, False, True]]), jnp.asarray([0.5])
    )
    np.testing.assert_allclose(shown[0][0], [[0, 0, 4, 1], [6, 0, 4, 0], [2, 2, 4, 1]])
    np.testing.assert_allclose(clean[0, :, 0], [0.0, math.sqrt(0.5) * 6, 2.0], rtol=1e-6)


def test_a_network_that_knows_the_answer_fills_the_gap_with_it() -> None:
    """It says the velocity whose clean sequence is the first state, at every level: so does the sampler's end."""

    def still(_: object, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        signal = Schedule().alpha_bar(level)[:, None, None]
        return (steps[:, :, 2:3] - jnp.sqrt(signal) * steps[:, :, :1]) / jnp.sqrt(1 - signal)

    planner = StatePlanner(5, 1, MASKS, net=DiTConfig(patch=1))
    for sampler in ("ddim", "renoise"):
        filled = planner.fill(
            StubNetwork(still),
            rows(3, 0, 0, 8, 9),
            KNOWN,
            jax.random.key(0),
            steps=3,
            sampler=sampler,  # type: ignore[arg-type]
        )
        np.testing.assert_allclose(filled[0, :, 0], [3, 3, 3, 8, 9], atol=1e-5)


def test_known_states_come_back_to_the_bit() -> None:
    planner = StatePlanner(6, 2, MASKS, net=NET, spread=(0.3, 1.0))
    network = planner.init(jax.random.key(0)).network
    states = jax.random.normal(jax.random.key(1), (4, 6, 2)) * 1e3 + 0.1
    known = MASKS.draw(jax.random.key(2), 4, 6)
    filled = planner.fill(network, states, known, jax.random.key(3), steps=2)
    np.testing.assert_array_equal(filled[known], states[known])
    assert not np.isclose(filled[~known], states[~known]).any()


def test_it_learns_to_join_two_ends() -> None:
    """Points at constant speeds: between two known places lies a straight line. Standing still and jumping misses by
    far more."""
    dataset = walks(tuple(np.linspace(-1, 1, 9)), 30)
    normaliser = fit_normaliser(dataset.observations)
    data = sequence_data(dataset, normaliser, 6)
    masks = GapMasks(4, 4, free_share=0.0)
    planner = StatePlanner(
        6, 1, masks, net=NET, batch_size=32, learning_rate=3e-3, warmup=20, spread=spread_of(data, 6)
    )
    state, _ = fit_chunk(planner, planner.init(jax.random.key(0)), data, jax.random.key(1), 0, 300)
    real = data.observations[data.starts[::25, None] + jnp.arange(6)]
    known = masks.draw(jax.random.key(2), len(real), 6)
    filled = planner.fill(
        state.average, jnp.where(known[..., None], real, 0), known, jax.random.key(3), steps=5
    )
    missed = jnp.square(filled - real).mean()
    still = jnp.square(real[:, :1] - real)[:, 1:4].mean()
    assert float(missed) < 0.05 * float(still)


def test_masks_know_the_first_state_and_one_stretch_behind_the_gap() -> None:
    known = np.asarray(GapMasks(3, 5, free_share=0.5).draw(jax.random.key(0), 2000, 8))
    assert known[:, 0].all() and not known[:, 1:3].any()
    free = ~known[:, 1:].any(axis=1)
    assert 0.45 < free.mean() < 0.55
    behind = known[~free, 1:].argmax(axis=1) + 1
    assert set(behind) == {3, 4, 5}
    stretches = np.diff(np.pad(known[~free, 1:].astype(int), ((0, 0), (1, 1))), axis=1) == 1
    assert (stretches.sum(axis=1) == 1).all(), "one stretch, without holes"
    assert known[~free, 7].any() and not known[~free, 7].all(), "it ends anywhere"


def test_masks_can_follow_a_chain() -> None:
    known = ChainMasks(ChainShape(2, 3, 2), phase=2, moved_share=0.0).draw(jax.random.key(0), 3, 6)
    assert np.asarray(known).astype(int).tolist() == [[1, 0, 0, 1, 1, 1]] * 3


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"(?s)patch.*5 steps in patches of 2"):
        StatePlanner(5, 1, MASKS, net=NET)
    with pytest.raises(ConfigError, match=r"(?s)spread.*2 numbers.*1 numbers"):
        StatePlanner(4, 1, MASKS, net=NET, spread=(1.0, 1.0))
    with pytest.raises(ConfigError, match="2 <= shortest <= longest"):
        GapMasks(1, 4)
    with pytest.raises(ConfigError, match=r"(?s)longest.*9.*< 8"):
        GapMasks(2, 9).draw(jax.random.key(0), 1, 8)
