"""Karras et al. 2022 (EDM), as SynthER uses it: noise levels, preconditioning, loss and the stochastic Heun sampler.

A sample is noised as x + σ n, without scaling. The denoiser is

    D(x; σ) = c_skip(σ) x + c_out(σ) F(c_in(σ) x; c_noise(σ))                                      EDM's eq. (7)

    c_skip = σ_d² / (σ² + σ_d²)     c_out = σ σ_d / √(σ² + σ_d²)     c_in = 1 / √(σ² + σ_d²)     c_noise = ln(σ) / 4

and its loss, with ln σ normal, is weighted so that F regresses a target of unit variance at every level:

    L = E λ(σ) ‖D(x + σ n; σ) − x‖²,   λ = (σ² + σ_d²) / (σ σ_d)² = 1 / c_out²                      EDM's eqs. (2), (8)

Constants are those of EDM's table 1, which SynthER's authors keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from astro_rl.errors import ConfigError

Network = Callable[[Float[Array, "batch dims"], Float[Array, "batch"]], Float[Array, "batch dims"]]
"""F: (scaled sample, c_noise) to what is mixed into it."""
Denoise = Callable[[Float[Array, "batch dims"], Float[Array, ""]], Float[Array, "batch dims"]]
"""D at one level σ for the whole batch."""


@dataclass(frozen=True)
class Noise:
    """Levels of noise, and what the denoiser does with them."""

    data_spread: float = 1.0
    """σ_d: the standard deviation of the (normalised) data."""
    log_mean: float = -1.2
    """P_mean: training draws ln σ from a normal distribution with this mean …"""
    log_spread: float = 1.2
    """P_std: … and this standard deviation."""
    smallest: float = 0.002
    largest: float = 80.0
    """σ_min and σ_max: where sampling ends and begins."""

    def __post_init__(self) -> None:
        for name in ("data_spread", "log_spread", "smallest"):
            if not getattr(self, name) > 0:
                raise ConfigError("This has to be above 0.", field=f"noise.{name}", found=getattr(self, name))
        if not self.largest > self.smallest:
            raise ConfigError(
                "The largest noise level must lie above the smallest.",
                field="noise.largest",
                found=self.largest,
                expected=f"> {self.smallest}",
            )

    def skip(self, sigma: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """c_skip."""
        return self.data_spread**2 / (jnp.square(sigma) + self.data_spread**2)

    def out(self, sigma: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """c_out."""
        return sigma * self.data_spread * jax.lax.rsqrt(jnp.square(sigma) + self.data_spread**2)

    def scale_in(self, sigma: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """c_in."""
        return jax.lax.rsqrt(jnp.square(sigma) + self.data_spread**2)

    def level(self, sigma: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """c_noise."""
        return jnp.log(sigma) / 4

    def weight(self, sigma: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """λ."""
        return (jnp.square(sigma) + self.data_spread**2) / jnp.square(sigma * self.data_spread)

    def drawn(self, key: Key[Array, ""], count: int) -> Float[Array, "count"]:
        """Noise levels to train at."""
        return jnp.exp(self.log_mean + self.log_spread * jax.random.normal(key, (count,)))

    def denoised(
        self, network: Network, noisy: Float[Array, "batch dims"], sigma: Float[Array, "batch"]
    ) -> Float[Array, "batch dims"]:
        """D, EDM's eq. (7)."""
        answer = network(self.scale_in(sigma)[:, None] * noisy, self.level(sigma))
        return self.skip(sigma)[:, None] * noisy + self.out(sigma)[:, None] * answer

    def loss(
        self,
        network: Network,
        clean: Float[Array, "batch dims"],
        sigma: Float[Array, "batch"],
        noise: Float[Array, "batch dims"],
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """EDM's eq. (2) with λ of eq. (8), a mean over dimensions and batch as the authors'; beside it the unweighted
        error, which says how far from the data a denoised sample is."""
        miss = self.denoised(network, clean + sigma[:, None] * noise, sigma) - clean
        squares = jnp.square(miss).mean(axis=-1)
        loss = (self.weight(sigma) * squares).mean()
        return loss, {"loss": loss, "denoised_mse": squares.mean()}


@dataclass(frozen=True)
class Heun:
    """EDM's algorithm 2: at each level some noise is added (churn), then a step of Heun's method is taken down.

    `churn` 0 is the deterministic sampler. Defaults are SynthER's.
    """

    steps: int = 128
    """N."""
    rho: float = 7.0
    """ρ: how levels are spaced, EDM's eq. (5); larger, more of them are small."""
    churn: float = 80.0
    """S_churn. Each step raises σ by a factor 1 + γ, γ = min(S_churn / N, √2 − 1)."""
    churn_from: float = 0.05
    churn_to: float = 50.0
    """S_tmin and S_tmax: only levels between are churned."""
    churn_noise: float = 1.003
    """S_noise: the added noise is inflated a little, against what the denoiser takes away too much."""

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ConfigError(
                "Sampling needs two levels at least.",
                field="sampling.steps",
                found=self.steps,
                expected=">= 2",
            )
        for name in ("rho", "churn_noise"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    "This has to be above 0.", field=f"sampling.{name}", found=getattr(self, name)
                )
        if self.churn < 0:
            raise ConfigError("Churn cannot be negative.", field="sampling.churn", found=self.churn)

    def levels(self, noise: Noise) -> Float[Array, "steps_plus_1"]:
        """σ_0 = σ_max > … > σ_{N−1} = σ_min > σ_N = 0, EDM's eq. (5)."""
        first, last = noise.largest ** (1 / self.rho), noise.smallest ** (1 / self.rho)
        levels = (first + jnp.linspace(0.0, 1.0, self.steps) * (last - first)) ** self.rho
        return jnp.append(levels, 0.0)

    def churned(self, sigma: Float[Array, ""]) -> Float[Array, ""]:
        """σ̂ = (1 + γ) σ."""
        gamma = min(self.churn / self.steps, 2**0.5 - 1)
        inside = (sigma >= self.churn_from) & (sigma <= self.churn_to)
        return sigma * (1 + jnp.where(inside, gamma, 0.0))

    def sample(
        self, noise: Noise, denoise: Denoise, start: Float[Array, "batch dims"], key: Key[Array, ""]
    ) -> Float[Array, "batch dims"]:
        """From `start`, standard normal, to a sample of the data; 2 N − 1 calls of D that count."""
        levels = self.levels(noise)

        def one(x: Array, number: Array) -> tuple[Array, None]:
            eps = self.churn_noise * jax.random.normal(jax.random.fold_in(key, number), x.shape)
            return self.step(denoise, x, eps, levels[number], levels[number + 1]), None

        result, _ = jax.lax.scan(one, levels[0] * start, jnp.arange(self.steps))
        return result

    def step(
        self,
        denoise: Denoise,
        x: Float[Array, "batch dims"],
        eps: Float[Array, "batch dims"],
        sigma: Float[Array, ""],
        below: Float[Array, ""],
    ) -> Float[Array, "batch dims"]:
        """One pass of algorithm 2's loop, from σ_i to σ_{i+1}. The last one, to 0, is a step of Euler's."""
        hat = self.churned(sigma)
        churned = x + jnp.sqrt(jnp.maximum(jnp.square(hat) - jnp.square(sigma), 0.0)) * eps
        slope = (churned - denoise(churned, hat)) / hat
        euler = churned + (below - hat) * slope
        # Where `below` is 0 the second slope is not used; any level above 0 keeps it finite.
        second = jnp.where(below > 0, below, 1.0)
        corrected = (euler - denoise(euler, second)) / second
        return jnp.where(below > 0, churned + (below - hat) * (slope + corrected) / 2, euler)
