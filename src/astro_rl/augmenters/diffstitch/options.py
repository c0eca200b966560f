"""How stitches are sought, filled, checked and written down."""

from __future__ import annotations

from dataclasses import dataclass, field

from astro_rl.augment.reward_model import RewardSettings
from astro_rl.augmenters.diffstitch.similarity import Measure
from astro_rl.errors import ConfigError
from astro_rl.stateplan.complete import StateSampling


@dataclass(frozen=True)
class StitchSettings:
    """Everything that decides the augmented data, besides models, dataset, task and seed."""

    similarity: Measure = "cosine"
    least_cosine: float = 0.9
    """The authors' threshold; 0.8 on two of their tasks."""
    most_distance: float = 0.3
    """The threshold of `similarity="euclidean"`: root mean square over dimensions, normalised."""
    candidates: int = 512
    """Targets looked at for each source, drawn among the high ones."""
    source_share: float = 0.5
    """Of all places to stitch from, those with the lowest scores."""
    target_share: float = 0.02
    """Of all places to stitch to, those with the highest: the authors' 2 %."""
    return_noise: float = 1.0
    """ν, in standard deviations of the returns. 0 is the authors' strict order."""
    discount: float = 0.99
    """γ of the returns."""
    require_gain: bool = True
    """Whether the state stitched from must not be worth less than before."""
    deviation_most: float = 4.5
    """Largest Σ over dimensions of squared deviation of any transition of a gap, normalised. The authors' 1.5 times 3,
    because their units (a uniform distribution on [−1, 1]) are √3 times ours."""
    deviation_quantile: float | None = None
    """Also reject what is above this quantile of real gaps, filled in the same way. None: as the authors."""
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
        if self.deviation_quantile is not None and not 0 < self.deviation_quantile <= 1:
            raise ConfigError(
                "A quantile lies in (0, 1].", field="deviation_quantile", found=self.deviation_quantile
            )
        if not 0 <= self.discount < 1:
            raise ConfigError("γ lies in [0, 1).", field="discount", found=self.discount)
        if not -1 <= self.least_cosine <= 1:
            raise ConfigError("A cosine lies in [-1, 1].", field="least_cosine", found=self.least_cosine)
        for name in ("return_noise", "most_distance", "deviation_most"):
            if getattr(self, name) < 0:
                raise ConfigError("This must not be negative.", field=name, found=getattr(self, name))
        for name in ("candidates", "batch", "completion_batch", "limit_windows", "give_up_after"):
            if getattr(self, name) < 1:
                raise ConfigError("This has to be at least 1.", field=name, found=getattr(self, name))
        if self.piece < 2:
            raise ConfigError("A piece needs a transition.", field="piece", found=self.piece, expected=">= 2")

    @property
    def threshold(self) -> float:
        """What a similarity has to reach."""
        return self.least_cosine if self.similarity == "cosine" else -self.most_distance
