"""The goal-reaching Ant policy that is shipped with the package: what OGBench's antmaze data is made with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

ASSET = Path(__file__).parent.parent / "assets" / "ant_expert.npz"


def gelu(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The tanh approximation, which is what the expert was trained with."""
    return (
        0.5 * x * (1.0 + np.tanh(np.float32(np.sqrt(2.0 / np.pi)) * (x + np.float32(0.044715) * x * x * x)))
    )


class AntExpert:
    """Soft actor-critic's mean action: state without x-y and the unit vector to the sub-goal, to torques."""

    def __init__(self, weights: Path = ASSET) -> None:
        with np.load(weights, allow_pickle=False) as arrays:
            layers = ("actor_net.Dense_0", "actor_net.Dense_1", "mean_net")
            self._layers = [(arrays[f"{name}.kernel"], arrays[f"{name}.bias"]) for name in layers]

    def __call__(
        self, state: Float[np.ndarray, "27"], direction: Float[np.ndarray, "2"]
    ) -> Float[np.ndarray, "8"]:
        x = np.concatenate([state, direction]).astype(np.float32)
        for kernel, bias in self._layers[:-1]:
            x = gelu(_times(x, kernel) + bias)
        kernel, bias = self._layers[-1]
        return np.tanh(_times(x, kernel) + bias)


def _times(x: Float[np.ndarray, "inputs"], kernel: Float[np.ndarray, "inputs outputs"]) -> np.ndarray:
    # einsum and not `@`: the linear-algebra library behind `@` adds up in an order that depends on its
    # number of threads, and a dataset's bytes must not. A vector this short loses 3 microseconds of the 400
    # an ant step takes.
    return np.einsum("i,ij->j", x, kernel)
