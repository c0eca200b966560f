"""θ_dyn by hand: eq. (13) in its three parametrisations, eq. (10)'s walk, what the network is shown."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.diffusion.schedule import Schedule, noised
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.sequences import sequence_data
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiTConfig
from tests.dynamics.stub_networks import PLAIN, StubNetwork, sums_of_actions, walks

HALF = Schedule(final_signal=1e-9)
"""ᾱ(1/2) = 1 − sin²(π/4) = 1/2."""


def rows(*values: float) -> jax.Array:
    """One sequence of numbers."""
    return jnp.asarray(values, jnp.float32)[None, :, None]


def fixed(*values: float) -> StubNetwork:
    """Answers the same sequence, whatever it is shown."""
    return StubNetwork(
        lambda p, steps, level, extras: jnp.broadcast_to(p[None, :, None], steps[:, :, :1].shape), *values
    )


def test_equation_13_by_hand() -> None:
    """Real 1, 3, 4; the network says 9, 2, 6, and its first state is replaced by the given one: 1, 2, 6.

    Sequence: (0² + 1² + 2²) / 3 = 5/3. Steps: 1, 4 against 2, 1, so −1 and 3; in steps of 2, −0.5 and 1.5:
    (0.25 + 2.25) / 2 = 1.25, weighted 0.1.
    """
    dynamics = Dynamics(3, 1, 1, predicts="clean", step_weight=0.1)
    states, actions, noise = rows(1, 3, 4), rows(0, 0, 0), rows(5, 6, 7)
    loss, info = dynamics.loss(fixed(9, 2, 6), states, actions, jnp.asarray([0.5]), noise, jnp.asarray([2.0]))
    assert float(info["sequence_mse"]) == pytest.approx(5 / 3)
    assert float(info["step_mse"]) == pytest.approx(1.25)
    assert float(loss) == pytest.approx(5 / 3 + 0.125)
    paper = dataclasses.replace(dynamics, step_weight=0.0)
    loss, _ = paper.loss(fixed(9, 2, 6), states, actions, jnp.asarray([0.5]), noise, jnp.asarray([2.0]))
    assert float(loss) == pytest.approx(5 / 3)


def test_the_second_line_of_equation_13_by_hand() -> None:
    """At ᾱ = 1/2: τ_t = 1, ε = 3/√2 gives (1 − √½·3/√2) / √½ = (1 − 1.5)·√2 = −0.7071."""
    dynamics = Dynamics(2, 1, 1, predicts="noise", schedule=HALF)
    clean = dynamics.clean(
        fixed(0.0, 3 / math.sqrt(2)), rows(9, 1), jnp.asarray([[4.0]]), rows(0, 0), jnp.asarray([0.5])
    )
    np.testing.assert_allclose(clean[0, :, 0], [4.0, -math.sqrt(0.5)], rtol=1e-5)


def test_a_velocity_by_hand() -> None:
    """At ᾱ = 1/2: √½·2 + √½·1 = 3/√2."""
    dynamics = Dynamics(2, 1, 1, predicts="velocity", schedule=HALF)
    clean = dynamics.clean(fixed(0, 1), rows(9, 2), jnp.asarray([[4.0]]), rows(0, 0), jnp.asarray([0.5]))
    np.testing.assert_allclose(clean[0, :, 0], [4.0, 3 / math.sqrt(2)], rtol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_true_noise_and_the_true_velocity_give_the_states_back(level: float) -> None:
    """ε for `noise`; √(1−ᾱ) x₀ − √ᾱ ε for `velocity`."""
    states, noise, levels = rows(1, -2, 3), rows(0.3, -0.8, 1.1), jnp.asarray([level])
    signal = float(Schedule().alpha_bar(jnp.asarray(level)))
    velocity = math.sqrt(1 - signal) * states - math.sqrt(signal) * noise
    noisy = noised(Schedule(), states, levels, noise)
    for predicts, truth in (("noise", noise), ("velocity", velocity)):
        dynamics = Dynamics(3, 1, 1, predicts=predicts)  # type: ignore[arg-type]
        clean = dynamics.clean(fixed(*truth[0, :, 0].tolist()), noisy, states[:, 0], rows(0, 0, 0), levels)
        np.testing.assert_allclose(clean, states, rtol=1e-4)


def test_a_velocity_from_the_first_state_by_hand() -> None:
    """ᾱ = ½, s = ½, s₀ = 4, noisy 3, answer 1. n² = ½·¼ + ½ = 0.625; x' = 3 − √½·4.
    x̃ = 4 + √½·¼/0.625·x' + ½·√½/√0.625·1. The network is shown x'/n, and 0 in the first place."""
    dynamics = Dynamics(2, 1, 1, predicts="velocity", schedule=HALF, spread=(0.5,))
    half, size = math.sqrt(0.5), math.sqrt(0.625)
    moved = 3 - half * 4
    first, noisy = jnp.asarray([[4.0]]), rows(9, 3)
    clean = dynamics.clean(fixed(7, 1), noisy, first, rows(0, 0), jnp.asarray([0.5]))
    expected = 4 + half * 0.25 / 0.625 * moved + 0.5 * half / size
    np.testing.assert_allclose(clean[0, :, 0], [4.0, expected], rtol=1e-5)

    shown = StubNetwork(lambda p, steps, level, extras: steps[:, :, :1] + 100 * steps[:, :, 1:2])
    clean = dynamics.clean(shown, noisy, first, rows(0, 0), jnp.asarray([0.5]))
    answer = moved / size + 400
    np.testing.assert_allclose(
        clean[0, 1, 0], 4 + half * 0.25 / 0.625 * moved + 0.5 * half / size * answer, rtol=1e-5
    )


def test_a_dimension_that_goes_anywhere_is_taken_as_it_is() -> None:
    states, noise, levels = rows(1, -2, 3), rows(0.3, -0.8, 1.1), jnp.asarray([0.3])
    noisy, network = noised(Schedule(), states, levels, noise), fixed(0.2, -0.4, 0.6)
    plain = Dynamics(3, 1, 1).clean(network, noisy, states[:, 0], rows(0, 0, 0), levels)
    wide = Dynamics(3, 1, 1, spread=(1.0,)).clean(network, noisy, states[:, 0], rows(0, 0, 0), levels)
    np.testing.assert_allclose(plain, wide, rtol=1e-6)


@pytest.mark.parametrize("level", [0.05, 0.4, 0.8, 1.0])
def test_what_the_network_is_shown_and_asked_for_has_unit_size(level: float) -> None:
    """Over sequences whose distance from the first state is s: whatever the level, and however far away they are."""
    generator = np.random.default_rng(0)
    spread = 0.05
    states = jnp.asarray(5 + spread * generator.normal(size=(4000, 2, 1)), jnp.float32).at[:, 0].set(5.0)
    levels = jnp.full(len(states), level)
    noisy = noised(Schedule(), states, levels, jnp.asarray(generator.normal(size=states.shape), jnp.float32))
    dynamics = Dynamics(2, 1, 1, spread=(spread,))
    seen = []

    def answered(value: float) -> np.ndarray:
        def answer(p: jax.Array, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
            seen.append(np.asarray(steps[:, 1, 0]))
            return value + 0 * steps[:, :, :1]

        clean = dynamics.clean(
            StubNetwork(answer), noisy, states[:, 0], jnp.zeros((len(states), 2, 1)), levels
        )
        return np.asarray(clean)[:, 1, 0]

    zero, one = answered(0.0), answered(1.0)
    wanted = (np.asarray(states)[:, 1, 0] - zero) / (one - zero)
    assert seen[0].std() == pytest.approx(1.0, abs=0.05) and abs(seen[0].mean()) < 0.05
    assert wanted.std() == pytest.approx(1.0, abs=0.05)


def test_a_spread_belongs_to_each_dimension_of_velocities() -> None:
    with pytest.raises(ConfigError, match=r"field: *spread"):
        Dynamics(3, 1, 1, spread=(0.5, 0.5))
    with pytest.raises(ConfigError, match="predicts=noise"):
        Dynamics(3, 1, 1, spread=(0.5,), predicts="noise")


def test_the_network_sees_noisy_states_the_first_state_everywhere_and_the_actions() -> None:
    """Features (noisy state, first state, action); the first noisy state is replaced by the given one."""

    def told(_: jax.Array, steps: jax.Array, level: jax.Array, extras: jax.Array) -> jax.Array:
        digits = jnp.asarray([1.0, 10.0, 100.0])
        beginning = 10_000 * steps[:, :1, :1]
        return (steps * digits).sum(axis=-1, keepdims=True) + 1000 * level[:, None, None] + beginning

    dynamics = Dynamics(3, 1, 1, predicts="clean")
    clean = dynamics.clean(
        StubNetwork(told), rows(9, 2, 3), jnp.asarray([[4.0]]), rows(5, 6, 7), jnp.asarray([8.0])
    )
    np.testing.assert_allclose(
        clean[0, :, 0], [4.0, 40_000 + 8000 + 600 + 40 + 2, 40_000 + 8000 + 700 + 40 + 3]
    )


@pytest.mark.parametrize(("sampler", "spread"), [("renoise", 1.0), ("ddim", math.sqrt(2))])
def test_a_rollout_walks_down_the_levels(sampler: str, spread: float) -> None:
    """T = 2, and a network that adds the level to what it sees. With z the first noise and ᾱ(½) = ½:

    level 1: x̃ = z + 1;  to level ½: √½ (z + 1) + √½ z', with z' fresh (re-noising) or z again (DDIM, whose implied
    noise is z as ᾱ(1) = 0);  level ½: x̃ = that + ½. Mean √½ + ½; deviation 1, or √½ + √½ = √2.
    """
    dynamics = Dynamics(2, 1, 1, predicts="clean", schedule=HALF)
    network = StubNetwork(lambda p, steps, level, extras: steps[:, :, :1] + level[:, None, None])
    count = 20_000
    rolled = dynamics.rollout(
        network,
        jnp.full((count, 1), 7.0),
        jnp.zeros((count, 2, 1)),
        jax.random.key(0),
        steps=2,
        sampler=sampler,  # type: ignore[arg-type]
    )
    assert (np.asarray(rolled[:, 0]) == 7.0).all()
    assert float(rolled[:, 1].mean()) == pytest.approx(math.sqrt(0.5) + 0.5, abs=0.03)
    assert float(rolled[:, 1].std()) == pytest.approx(spread, rel=0.03)


def test_a_rollout_of_a_perfect_model_is_where_the_actions_lead() -> None:
    dynamics = Dynamics(4, 1, 1, predicts="clean")
    rolled = dynamics.rollout(
        StubNetwork(sums_of_actions), jnp.asarray([[10.0]]), rows(1, -2, 5, 0), jax.random.key(0), steps=3
    )
    np.testing.assert_allclose(rolled[0, :, 0], [10, 11, 9, 14])


def test_an_update_learns_from_real_sequences_and_averages_its_weights() -> None:
    """The average after the first update is 0.1 of the first weights and 0.9 of the new ones (`settled`)."""
    data = sequence_data(walks((0.5, -0.5), 8), PLAIN, 4)
    data = data._replace(observations=(data.observations - 150) / 50)
    net = DiTConfig(width=8, depth=1, heads=1, patch=2, step_width=16)
    dynamics = Dynamics(4, 1, 1, net=net, batch_size=16, learning_rate=3e-3, warmup=0)
    update = jax.jit(dynamics.update)
    before = state = dynamics.init(jax.random.key(0))
    errors = []
    for step in range(200):
        state, info = update(state, data, jax.random.fold_in(jax.random.key(1), step))
        errors.append(float(info["sequence_mse"]))
        if step == 0:
            old, new, average = (part.final.weight for part in (before.average, state.network, state.average))
            assert float(jnp.abs(new - old).max()) > 0
            np.testing.assert_allclose(average, 0.1 * old + 0.9 * new, rtol=1e-4, atol=1e-8)
    assert np.mean(errors[-20:]) < 0.3 * np.mean(errors[:20])
    assert int(state.updates) == 200
