"""Everything that was fitted to one dataset, in one place: what augmentation needs besides the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from astro_rl.augment.limits import RealLimits
from astro_rl.augment.settings import AstroSettings, Stage
from astro_rl.data.digest import digest_columns
from astro_rl.data.normaliser import Normaliser
from astro_rl.dynamics.model import Dynamics
from astro_rl.dynamics.onestep import OneStep
from astro_rl.nets.dit import DiT
from astro_rl.nets.mlp import MLP
from astro_rl.planner.model import Planner
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.model import TemporalModel


@dataclass(frozen=True)
class FittedModels:
    """Models and what they were fitted to. A plain record: saving and loading are the front door's."""

    source_digest: str
    """`augment.lineage.source_digest` of the dataset, so that no other is augmented with them."""
    shape: ChainShape
    normaliser: Normaliser
    temporal: TemporalModel
    gauge: Gauge
    dynamics: Dynamics
    dynamics_network: DiT
    """The moving average of the weights."""
    planner: Planner
    planner_network: DiT
    limits: RealLimits
    settings: AstroSettings
    """What they were fitted with; its `generate` is what augmentation does unless told otherwise."""
    seed: int
    why: str = ""
    """Why the chain has its shape, in words."""
    seeds: Mapping[Stage, int] = field(default_factory=dict)
    """Of the stages that were taken from a fit of another seed."""
    onestep: OneStep | None = None
    onestep_network: MLP | None = None
    """What gaps are polished with; None where they are not."""

    def seed_of(self, stage: Stage) -> int:
        return self.seeds.get(stage, self.seed)

    def networks(self) -> dict[str, Any]:
        """All weights, by the names under which they are saved."""
        return {
            "temporal": self.temporal.encoder,
            "dynamics": self.dynamics_network,
            "planner": self.planner_network,
            **({} if self.onestep_network is None else {"onestep": self.onestep_network}),
        }

    def digest(self) -> str:
        """SHA-256 over all weights: two fits that agree in it complete the same chains alike."""
        return weights_digest(self.networks())

    def temporal_digest(self) -> str:
        """SHA-256 over ψ alone: fits that agree in it read one table of latents."""
        return weights_digest({"temporal": self.temporal.encoder})


def weights_digest(networks: Mapping[str, Any]) -> str:
    """SHA-256 over all weights of all networks."""
    columns = {
        f"{name}{jax.tree_util.keystr(path)}": np.asarray(leaf)
        for name, network in networks.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(network)[0]
    }
    return digest_columns(columns)
