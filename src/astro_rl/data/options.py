"""What to do with data that is nearly right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from numpy.typing import ArrayLike

from astro_rl.data.checks import Source
from astro_rl.data.columns import MemorySpace, Space
from astro_rl.errors import ConfigError

ActionsOutside = Literal["refuse", "clip", "rescale"]
ActionRange = tuple[ArrayLike | int, ArrayLike | int]


@dataclass(frozen=True)
class BuildOptions:
    """Each change that is made is told in the dataset's `info["changes"]`."""

    drop_short: bool = False
    """Leave out trajectories without a transition instead of refusing the data."""
    actions_outside: ActionsOutside = "refuse"
    """Actions outside [-1, 1]: refuse the data, clip them, or rescale all actions linearly."""
    action_range: ActionRange | None = None
    """For rescaling: the lowest and highest action of the environment; without it, the data's own."""
    source: Source = None
    """The file that messages name."""
    space: Space = field(default_factory=MemorySpace)
    """Where the columns land."""

    def __post_init__(self) -> None:
        if self.actions_outside not in ("refuse", "clip", "rescale"):
            raise ConfigError(
                "actions_outside is unknown.", found=self.actions_outside, expected="refuse, clip or rescale"
            )
        if self.action_range is not None and self.actions_outside != "rescale":
            raise ConfigError(
                'action_range has an effect only with actions_outside="rescale".',
                found=f"actions_outside={self.actions_outside!r}",
                fix='pass actions_outside="rescale" too, or leave action_range out',
            )
