"""How stitches are sought, filled, checked and written down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from astro_rl.augment.reward_model import RewardSettings
from astro_rl.augmenters.diffstitch.limits import StitchLimits
from astro_rl.augmenters.diffstitch.similarity import Measure
from astro_rl.errors import ConfigError
from astro_rl.stateplan.complete import StateSampling


@dataclass(frozen=True)
class StitchSettings:
    """Everything that decides the augmented data, besides models, dataset, task and seed."""

    similarity: Measure = "cosine"
    threshold: float | None = None
    """What a similarity has to reach. The authors: 0.9, on two tasks 0.8. None: by `similarity_quantile`."""
    similarity_quantile: float = 0.5
    """The share of real futures that come so near to a continuation of their own past."""
    candidates: int = 512
    """Targets looked at for each source, drawn among the high ones."""
    source_share: float = 0.5
    """Of all places to stitch from, those with the lowest scores."""
    target_share: float = 0.02
    """Of all places to stitch to, those with the highest: the authors' 2 %."""
    return_noise: float = 0.25
    """ν, in ranks from 0 to 1. 0 is the authors' strict order."""
    discount: float = 0.99
    """γ of the returns."""
    require_gain: bool = True
    """Whether the state stitched from must not be worth less than before."""
    deviation_most: float | None = None
    """Largest Σ over dimensions of squared deviation of any transition of a gap, normalised. The authors: 0.8 to 1.5 in
    units that are √3 times ours (a uniform distribution on [−1, 1] has variance 1/3), 4.5 here. None: by
    `deviation_quantile`."""
    deviation_quantile: float = 0.99
    """Rejected is what deviates more than this share of real gaps, filled in the same way."""
    piece: int = 20
    """Real states kept on either side of the gap."""
    batch: int = 256
    """Sources a batch."""
    completion_batch: int = 64
    """Sequences that are filled at once. Noise is drawn so, and it decides the result too."""
    sampling: StateSampling = field(default_factory=StateSampling)
    limit_windows: int = 256
    """Real gaps that limits are measured on."""
    give_up_after: int = 16
    """Batches in a row that may keep nothing."""
    rewards: RewardSettings = field(default_factory=RewardSettings)
    """The learned reward model, where the dataset has rewards and no task says what they are."""

    def __post_init__(self) -> None:
        for name in ("source_share", "target_share"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError("A share lies in (0, 1].", field=name, found=getattr(self, name))
        for name in ("similarity_quantile", "deviation_quantile"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError("A quantile lies in (0, 1].", field=name, found=getattr(self, name))
        if not 0 <= self.discount < 1:
            raise ConfigError("γ lies in [0, 1).", field="discount", found=self.discount)
        low, high = (-1.0, 1.0) if self.similarity == "cosine" else (-math.inf, 0.0)
        if self.threshold is not None and not low <= self.threshold <= high:
            raise ConfigError(
                f"No {self.similarity} similarity is so large or so small.",
                field="threshold",
                found=self.threshold,
                expected=f"{low} to {high}",
            )
        if self.return_noise < 0:
            raise ConfigError("This must not be negative.", field="return_noise", found=self.return_noise)
        if self.deviation_most is not None and self.deviation_most <= 0:
            raise ConfigError(
                "A deviation is larger than 0.", field="deviation_most", found=self.deviation_most
            )
        for name in ("candidates", "batch", "completion_batch", "limit_windows", "give_up_after"):
            if getattr(self, name) < 1:
                raise ConfigError("This has to be at least 1.", field=name, found=getattr(self, name))
        if self.piece < 2:
            raise ConfigError("A piece needs a transition.", field="piece", found=self.piece, expected=">= 2")

    def least_similarity(self, limits: StitchLimits) -> float:
        """What a similarity has to reach."""
        if self.threshold is not None:
            return self.threshold
        return limits.at(self.similarity, 1 - self.similarity_quantile)

    def most_deviation(self, limits: StitchLimits) -> float:
        """What a gap's deviation must not exceed."""
        if self.deviation_most is not None:
            return self.deviation_most
        return limits.at("deviation", self.deviation_quantile)
