"""EDM's formulas by hand, and its sampler on a Gaussian, whose denoiser is known exactly."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augmenters.synther.edm import Heun, Noise
from astro_rl.errors import ConfigError

UNIT = Noise()


def test_preconditioning_by_hand() -> None:
    """σ_d = 1 and σ = 1: c_skip 1/2, c_out 1/√2, c_in 1/√2, λ 2. c_noise(e⁴) = 1. And once with σ_d = 1/2, σ = 2."""
    one = jnp.float32(1.0)
    assert UNIT.skip(one) == pytest.approx(0.5)
    assert UNIT.out(one) == pytest.approx(0.5**0.5)
    assert UNIT.scale_in(one) == pytest.approx(0.5**0.5)
    assert UNIT.weight(one) == pytest.approx(2.0)
    assert UNIT.level(jnp.exp(jnp.float32(4.0))) == pytest.approx(1.0)
    half, two = Noise(data_spread=0.5), jnp.float32(2.0)
    assert half.skip(two) == pytest.approx(0.25 / 4.25)
    assert half.out(two) == pytest.approx(1.0 / 4.25**0.5)
    assert half.scale_in(two) == pytest.approx(4.25**-0.5)
    assert half.weight(two) == pytest.approx(4.25 / 1.0)


def test_what_preconditioning_is_for() -> None:
    """At every level: F sees unit variance, F's target has unit variance, and λ undoes c_out²."""
    noise, sigma = Noise(data_spread=0.7), jnp.geomspace(0.002, 80.0, 25)
    variance = noise.data_spread**2
    seen = jnp.square(noise.scale_in(sigma)) * (variance + jnp.square(sigma))
    # The target of F is (x − c_skip (x + σ n)) / c_out.
    target = jnp.square(1 - noise.skip(sigma)) * variance + jnp.square(noise.skip(sigma) * sigma)
    assert np.allclose(seen, 1.0, rtol=1e-4)
    assert np.allclose(target / jnp.square(noise.out(sigma)), 1.0, rtol=1e-4)
    assert np.allclose(noise.weight(sigma) * jnp.square(noise.out(sigma)), 1.0, rtol=1e-4)


def test_loss_by_hand() -> None:
    """F = 0, so D = c_skip (x + σ n).

    Row 1: σ = 1, x = (2, 0), n = (0, 4): D = (1, 2), error (1 + 4) / 2 = 2.5, times λ = 2 is 5.
    Row 2: σ = 2, x = (0, 0), n = (5, 0): D = 0.2 · (10, 0) = (2, 0), error 4 / 2 = 2, times λ = 5/4 is 2.5.
    """
    clean = jnp.array([[2.0, 0.0], [0.0, 0.0]])
    drawn = jnp.array([[0.0, 4.0], [5.0, 0.0]])
    loss, info = UNIT.loss(lambda x, level: jnp.zeros_like(x), clean, jnp.array([1.0, 2.0]), drawn)
    assert loss == pytest.approx((5 + 2.5) / 2)
    assert info["denoised_mse"] == pytest.approx((2.5 + 2) / 2)


def test_the_network_is_asked_about_the_scaled_sample_and_the_level() -> None:
    """F(x; c) = x + c at σ = 1: D = (1/2) x + (1/√2) (x/√2 + 0) = x. At σ = e⁴ the level adds c_out · 1."""
    answer = UNIT.denoised(lambda x, level: x + level[:, None], jnp.array([[3.0, -1.0]]), jnp.ones(1))
    assert np.allclose(answer, [[3.0, -1.0]], atol=1e-6)
    far = jnp.exp(jnp.full(1, 4.0))
    answer = UNIT.denoised(lambda x, level: level[:, None] * jnp.ones_like(x), jnp.zeros((1, 2)), far)
    assert np.allclose(answer, float(UNIT.out(far)[0]), rtol=1e-5)


def test_training_levels_are_log_normal() -> None:
    logs = jnp.log(Noise(log_mean=-1.2, log_spread=0.5).drawn(jax.random.key(0), 20_000))
    assert float(logs.mean()) == pytest.approx(-1.2, abs=0.02)
    assert float(logs.std()) == pytest.approx(0.5, abs=0.02)


def test_levels_by_hand() -> None:
    """EDM's eq. (5) with ρ = 2, three levels from 9 to 1: roots 3, 2, 1; then 0."""
    levels = Heun(steps=3, rho=2.0).levels(Noise(smallest=1.0, largest=9.0))
    assert np.allclose(levels, [9.0, 4.0, 1.0, 0.0], rtol=1e-5)


def test_churn_by_hand() -> None:
    """γ = 2 / 8 between 0.5 and 5, 0 outside; never above √2 − 1."""
    heun = Heun(steps=8, churn=2.0, churn_from=0.5, churn_to=5.0)
    for sigma, expected in ((0.4, 0.4), (0.5, 0.625), (4.0, 5.0), (6.0, 6.0)):
        assert heun.churned(jnp.float32(sigma)) == pytest.approx(expected)
    assert Heun(steps=8, churn=80.0).churned(jnp.float32(1.0)) == pytest.approx(2**0.5)


def test_a_step_by_hand() -> None:
    """D = 0, so that dx/dσ = x / σ, whose solutions are lines through the origin: Heun is exact.

    Without churn x = 4 goes from σ = 2 to σ = 1 as 2, and to σ = 0 as 0. With D = 1: slope (4 − 1)/2 = 1.5, Euler's
    2.5, slope there (2.5 − 1)/1 = 1.5, and again 2.5. With churn γ = 1/4 (σ̂ = 2.5) and ε = 2, x̂ = 4 + 1.5 · 2 = 7,
    and on the line down to σ = 1: 7 / 2.5 = 2.8.
    """
    x, sigma, below = jnp.full((1, 1), 4.0), jnp.float32(2.0), jnp.float32(1.0)
    still = Heun(churn=0.0)

    def constant(value: float):
        return lambda noisy, level: jnp.full_like(noisy, value)

    eps = jnp.full((1, 1), 2.0)
    assert still.step(constant(0.0), x, eps, sigma, below)[0, 0] == pytest.approx(2.0)
    assert still.step(constant(0.0), x, eps, sigma, jnp.float32(0.0))[0, 0] == pytest.approx(0.0)
    assert still.step(constant(1.0), x, eps, sigma, below)[0, 0] == pytest.approx(2.5)
    churned = Heun(steps=8, churn=2.0)
    assert churned.step(constant(0.0), x, eps, sigma, below)[0, 0] == pytest.approx(2.8)


def test_heuns_correction_by_hand() -> None:
    """D = x / 2, so that the slope is x / (2 σ). From x = 4, σ = 2 to σ = 1: slope 1, Euler's 3, slope there 3/2, and
    4 − (1 + 3/2) / 2 = 2.75. The exact solution, x ∝ √σ, is 2.83."""
    step = Heun(churn=0.0).step(
        lambda noisy, level: noisy / 2,
        jnp.full((1, 1), 4.0),
        jnp.zeros((1, 1)),
        jnp.float32(2.0),
        jnp.float32(1.0),
    )
    assert step[0, 0] == pytest.approx(2.75)


MEAN = jnp.array([1.0, -2.0])
COVARIANCE = jnp.array([[1.0, 0.6], [0.6, 0.5]])


def gaussian(noisy: jax.Array, sigma: jax.Array) -> jax.Array:
    """E[x | x + σ n] for x ~ N(MEAN, COVARIANCE): x̄ + Σ (Σ + σ² I)⁻¹ (noisy − x̄)."""
    gain = COVARIANCE @ jnp.linalg.inv(COVARIANCE + jnp.square(sigma) * jnp.eye(2))
    return MEAN + (noisy - MEAN) @ gain.T


@pytest.mark.parametrize("churn", [0.0, 80.0])
def test_sampling_a_gaussian_recovers_its_mean_and_covariance(churn: float) -> None:
    """At the authors' 128 steps; churn and its inflated noise leave a variance 2.3 % too large."""
    key = jax.random.key(1)
    drawn = Heun(churn=churn).sample(UNIT, gaussian, jax.random.normal(key, (10_000, 2)), key)
    assert np.allclose(drawn.mean(axis=0), MEAN, atol=0.04)
    assert np.allclose(np.cov(drawn.T), COVARIANCE, atol=0.06)


def test_what_few_steps_with_churn_make_too_large_is_as_the_recursion_has_it() -> None:
    """For x ~ N(0, 1) each step multiplies x by a number f and churn adds variance, so that the variance of samples
    follows by hand: v ← f² (v + (σ̂² − σ²) S_noise²). It is 1.097 after 32 steps."""
    heun = Heun(steps=32)
    levels, variance = np.asarray(heun.levels(UNIT), np.float64), UNIT.largest**2
    for sigma, below in itertools.pairwise(levels):
        gamma = 2**0.5 - 1 if 0.05 <= sigma <= 50 else 0.0
        hat = sigma * (1 + gamma)
        variance += (hat**2 - sigma**2) * 1.003**2
        factor = 1 + (below - hat) * hat / (1 + hat**2)
        if below > 0:
            factor = 1 + (below - hat) * (hat / (1 + hat**2) + factor * below / (1 + below**2)) / 2
        variance *= factor**2
    key = jax.random.key(2)
    drawn = heun.sample(UNIT, lambda x, s: x / (1 + jnp.square(s)), jax.random.normal(key, (100, 1000)), key)
    assert variance == pytest.approx(1.097, abs=1e-3)
    assert float(drawn.var()) == pytest.approx(variance, rel=0.015)


def test_the_sampler_is_of_second_order() -> None:
    """Without churn the sampler solves an equation: with D = x s² / (s² + σ²), x(0) = x(σ) s / √(s² + σ²). Twice the
    steps, a quarter of the error."""
    start = jnp.ones((1, 1))
    exact = UNIT.largest / (1 + UNIT.largest**2) ** 0.5
    errors = [
        abs(
            float(
                Heun(steps=steps, churn=0.0, rho=4.0).sample(
                    UNIT, lambda x, s: x / (1 + jnp.square(s)), start, jax.random.key(0)
                )[0, 0]
            )
            - exact
        )
        for steps in (10, 20, 40)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2] > 0


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Heun(steps=1), "sampling.steps"),
        (lambda: Heun(churn=-1.0), "sampling.churn"),
        (lambda: Heun(rho=0.0), "sampling.rho"),
        (lambda: Noise(largest=0.001), "noise.largest"),
        (lambda: Noise(data_spread=0.0), "noise.data_spread"),
    ],
)
def test_settings_that_cannot_be_are_named(make, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make()
