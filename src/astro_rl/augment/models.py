"""Everything that was fitted to one dataset, in one place: what augmentation needs besides the data."""

from __future__ import annotations

from dataclasses import dataclass

from astro_rl.augment.limits import RealLimits
from astro_rl.data.normaliser import Normaliser
from astro_rl.dynamics.model import Dynamics
from astro_rl.nets.dit import DiT
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
