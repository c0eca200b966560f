"""How chains are completed, checked and written down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from astro_rl.augment.continuation import ContinuationSettings
from astro_rl.augment.limits import Mode
from astro_rl.augment.reward_model import RewardSettings
from astro_rl.errors import ConfigError
from astro_rl.planner.complete import Sampling
from astro_rl.stitch.search import SearchSettings


@dataclass(frozen=True)
class GenerateSettings:
    """Everything that decides the augmented data, besides models, dataset, task and seed."""

    mode: Mode = "anchored"
    """anchored: gap by gap from real states. rollout: the whole chain from its first state, as the paper."""
    chains: Literal["stitched", "regenerated"] = "stitched"
    """regenerated: real windows masked and completed in the same way. A control: it adds no new connection."""
    selection: Literal["temporal", "random", "euclidean"] = "temporal"
    """temporal: targets by ψ and the filter. The paper's comparisons, without a filter (`stitch.selection`): random,
    drawn uniformly; euclidean, nearest to an imitated continuation."""
    drop_tail: bool = True
    """Leave out the trailing MASK. It has no target, so nothing guides it and δ does not see it. The paper keeps it."""
    search: SearchSettings = field(default_factory=SearchSettings)
    filter_real: bool = True
    """Whether regenerated windows have to pass Δ_thresh as chains do."""
    filter_others: bool = False
    """Whether chains of the other selections have to pass it."""
    continuation: ContinuationSettings = field(default_factory=ContinuationSettings)
    """The imitation that `euclidean` targets are chosen with."""
    sampling: Sampling = field(default_factory=Sampling)
    deviation_quantile: float = 0.99
    """A completion is rejected when its δ is above this quantile of real windows' own."""
    step_quantile: float = 0.99
    """The same for the error of one-step changes."""
    jump_quantile: float = 0.95
    """`anchored`: the trajectory is cut where the last generated step misses the next real state by more."""
    jump_least: float = 0.25
    """Typical steps. A miss that is smaller is not cut: polished, real windows miss by next to nothing."""
    jump_most: float = 1.0
    """Typical steps. A miss that is larger is cut whatever real windows do: models that miss those by far have limits
    that let anything pass."""
    limit_windows: int = 256
    """Real windows that limits are measured on, where the models carry none for this mode."""
    completion_batch: int = 64
    """Sequences that are completed at once. Noise is drawn a batch at a time, so it decides the result too."""
    give_up_after: int = 16
    """Batches in a row that may keep nothing."""
    rewards: RewardSettings = field(default_factory=RewardSettings)
    """The learned reward model, where the dataset has rewards and no task says what they are."""

    @property
    def completion(self) -> Sampling:
        """How sequences are drawn in this mode: a rollout holds no recorded state that could be polished towards."""
        return self.sampling if self.mode == "anchored" else replace(self.sampling, polish=0)

    def __post_init__(self) -> None:
        for name in ("deviation_quantile", "step_quantile", "jump_quantile"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError("A quantile lies in (0, 1].", field=name, found=getattr(self, name))
        if not 0 <= self.jump_least <= self.jump_most or self.jump_most == 0:
            raise ConfigError(
                "The largest miss is above 0 and not below the least one that counts.",
                field="jump_least, jump_most",
                found=f"{self.jump_least}, {self.jump_most}",
            )
        for name in ("limit_windows", "completion_batch", "give_up_after"):
            if getattr(self, name) < 1:
                raise ConfigError("This has to be at least 1.", field=name, found=getattr(self, name))
        if self.chains == "regenerated" and self.selection != "temporal":
            raise ConfigError(
                "Regenerated windows are not selected.",
                field="selection",
                found=f'{self.selection!r}, chains="regenerated"',
                fix="leave one of them out",
            )
        if self.selection == "temporal" and self.filter_others:
            raise ConfigError(
                "filter_others has an effect only on other selections.",
                field="filter_others",
                found='selection="temporal", which always filters',
            )
        if self.chains == "stitched" and not self.filter_real:
            raise ConfigError(
                "filter_real has an effect only on regenerated windows.",
                field="filter_real",
                found='chains="stitched"',
            )
