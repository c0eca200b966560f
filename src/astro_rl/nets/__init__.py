"""Networks. Every leaf is an array; sizes and flags are static."""

from astro_rl.nets.mlp import MLP, LayerNorm, Linear
from astro_rl.nets.policies import MeanPolicy, NoisePolicy, VectorField
from astro_rl.nets.values import Critic, Value

__all__ = ["MLP", "Critic", "LayerNorm", "Linear", "MeanPolicy", "NoisePolicy", "Value", "VectorField"]
