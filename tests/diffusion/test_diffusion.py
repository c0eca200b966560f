"""The schedule, eqs. (4) and (5), samplers, and the transformer that starts as nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.diffusion.sampling import sample
from astro_rl.diffusion.schedule import Schedule, clean_from_noise, deterministic_step, noised
from astro_rl.errors import ConfigError
from astro_rl.nets.dit import DiT, DiTConfig


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_all_signal_at_level_0_almost_none_at_1_and_falling_between(kind: str) -> None:
    signal = np.asarray(Schedule(kind).alpha_bar(jnp.linspace(0, 1, 50)))  # type: ignore[arg-type]
    assert signal[0] == 1.0
    assert signal[-1] == pytest.approx(1e-4, rel=1e-2)
    assert (np.diff(signal) < 0).all()


def test_noising_by_hand_and_undone_by_the_true_noise() -> None:
    """Cosine at u = 1/2 with ᾱ(1) → 0: ᾱ = 1 − sin²(π/4) = 1/2, so x_t = √½·2 + √½·1 = 2.1213."""
    schedule, level = Schedule(final_signal=1e-9), jnp.asarray([0.5])
    noisy = noised(schedule, jnp.asarray([[2.0]]), level, jnp.asarray([[1.0]]))
    assert float(noisy[0, 0]) == pytest.approx(3 / 2**0.5, abs=1e-4)
    assert float(clean_from_noise(schedule, noisy, level, jnp.asarray([[1.0]]))[0, 0]) == pytest.approx(
        2.0, abs=1e-4
    )


def test_a_deterministic_step_keeps_the_implied_noise() -> None:
    schedule, clean, noise = Schedule(), jnp.asarray([[2.0]]), jnp.asarray([[0.7]])
    high, low = jnp.asarray([0.8]), jnp.asarray([0.3])
    stepped = deterministic_step(schedule, noised(schedule, clean, high, noise), clean, high, low)
    np.testing.assert_allclose(stepped, noised(schedule, clean, low, noise), rtol=1e-4)


@pytest.mark.parametrize("sampler", ["renoise", "ddim"])
def test_sampling_with_the_exact_predictor_gives_the_datas_distribution(sampler: str) -> None:
    """Data N(3, 0.5²): E[x₀ | x_t] is linear, so the predictor is exact and only the sampler is tested."""
    schedule, mean, variance = Schedule(), 3.0, 0.25

    def predict(x: jax.Array, level: jax.Array) -> jax.Array:
        signal = schedule.alpha_bar(level)[:, None]
        gain = jnp.sqrt(signal) * variance / (signal * variance + 1 - signal)
        return mean + gain * (x - jnp.sqrt(signal) * mean)

    noise = jax.random.normal(jax.random.key(0), (4000, 1))
    drawn = np.asarray(sample(schedule, predict, noise, jax.random.key(1), steps=50, sampler=sampler))  # type: ignore[arg-type]
    assert drawn.mean() == pytest.approx(3.0, abs=0.05)
    if sampler == "ddim":
        # Re-noising a *mean* loses spread by design; the deterministic walk keeps it.
        assert drawn.std() == pytest.approx(0.5, abs=0.05)


def test_a_fresh_transformer_answers_zero_and_learns_from_every_step() -> None:
    config = DiTConfig(width=16, depth=2, heads=2, patch=2, step_width=8)
    network = DiT.init(jax.random.key(0), config, features=3, outputs=2)
    steps, level, extras = jnp.ones((2, 6, 3)), jnp.asarray([0.1, 0.9]), jnp.zeros((2, 1))
    assert float(jnp.abs(network(steps, level, extras)).max()) == 0.0
    moved = jax.tree.map(lambda leaf: leaf + 0.05 * jax.random.normal(jax.random.key(1), leaf.shape), network)
    reach = jax.jacobian(lambda x: moved(x, level[:1], extras[:1])[0, 0, 0])(steps[:1])
    assert (np.abs(np.asarray(reach)).sum(axis=(0, 2)) > 0).all(), (
        "the first step does not hear of all others"
    )


def test_a_patch_that_does_not_divide_the_horizon_is_refused() -> None:
    network = DiT.init(jax.random.key(0), DiTConfig(width=16, depth=1, heads=2, patch=4, step_width=8), 3, 2)
    with pytest.raises(ConfigError, match="patch"):
        network(jnp.ones((1, 6, 3)), jnp.ones(1), jnp.zeros((1, 1)))
    with pytest.raises(ConfigError, match="Heads"):
        DiTConfig(width=10, heads=4)
