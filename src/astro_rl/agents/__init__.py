"""Learners: offline reinforcement learning algorithms behind one contract (`base.Learner`)."""

from __future__ import annotations

from types import MappingProxyType

from astro_rl.agents.base import AnyLearner, Batch, Info, Learner, LinkedBatch
from astro_rl.agents.bc import BC
from astro_rl.agents.fql import FQL
from astro_rl.agents.iql import IQL
from astro_rl.agents.rebrac import ReBRAC
from astro_rl.agents.td3bc import TD3BC

LEARNERS: MappingProxyType[str, type] = MappingProxyType(
    {"iql": IQL, "fql": FQL, "bc": BC, "td3bc": TD3BC, "rebrac": ReBRAC}
)
"""Every learner by the name that commands and records use."""

__all__ = [
    "BC",
    "FQL",
    "IQL",
    "LEARNERS",
    "TD3BC",
    "AnyLearner",
    "Batch",
    "Info",
    "Learner",
    "LinkedBatch",
    "ReBRAC",
]
