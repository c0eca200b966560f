"""The datasets we know by name: how large they are, how they were made, and how a user gets them.

OGBench publishes the commands its data was made with, so a name carries a whole recipe. D4RL was made once
with simulators that can no longer be installed: its files can be fetched or put in place by hand, never made.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from astro_rl.errors import UnavailableError

Kind = Literal["navigate", "stitch", "explore", "play", "noisy"]
Agent = Literal["point", "ant", "antball", "humanoid", "manip"]

VALIDATION_SHARE = 10
"""OGBench's validation file holds one episode for every ten of the training file, from the same process."""


@dataclass(frozen=True)
class Recipe:
    """How OGBench made one dataset. `episode_rows` counts observations, one more than transitions."""

    dataset: str
    env_id: str
    kind: Kind
    episodes: int
    episode_rows: int
    noise: float
    """Standard deviation of the Gaussian added to actions (`manip`: the controllers' noise level)."""
    agent: Agent
    makeable: bool
    """Whether it can be made locally: the controller is scripted, or its expert is shipped."""
    why_not: str | None = None
    random_actions: float = 0.0
    """Share of steps at which a uniformly random action replaces the controller's."""

    @property
    def rows(self) -> int:
        return self.episodes * self.episode_rows

    @property
    def validation_episodes(self) -> int:
        return self.episodes // VALIDATION_SHARE


@dataclass(frozen=True)
class KnownDataset:
    """What `astro-rl data list` shows of a dataset and `astro-rl data fetch` needs."""

    name: str
    suite: Literal["ogbench", "d4rl"]
    files: tuple[str, ...]
    """File names a user ends up with: training data first, validation data second where there is any."""
    rows: tuple[int, ...]
    """Rows expected in each of the files."""
    trajectories: tuple[int | None, ...]
    """Trajectories expected in each of the files, None where nobody published the number."""
    remote_path: str
    """The folder on the official host that holds the files; `remote_files` are their names there."""
    remote_files: tuple[str, ...]
    recipe: Recipe | None = None

    @property
    def makeable(self) -> bool:
        return self.recipe is not None and self.recipe.makeable

    @property
    def why_not_makeable(self) -> str | None:
        if self.recipe is None:
            return (
                "D4RL's simulators and policies cannot be installed any more; its files can only be fetched"
            )
        return self.recipe.why_not


_NO_HUMANOID = "it needs OGBench's humanoid expert, which takes 40 million steps to train and is not shipped"
_NO_ANTBALL = (
    "it needs OGBench's ball-dribbling ant expert, which takes 12 million steps to train and is not shipped"
)
_NO_PUZZLE = "the puzzle controllers are not built in yet"

# agent, maze, kind, episodes, observations an episode, action noise
_LOCOMAZE: tuple[tuple[Agent, str, Kind, int, int, float], ...] = (
    ("point", "medium", "navigate", 1000, 1001, 0.5),
    ("point", "large", "navigate", 1000, 1001, 0.5),
    ("point", "giant", "navigate", 500, 2001, 0.5),
    ("point", "teleport", "navigate", 1000, 1001, 0.5),
    ("point", "medium", "stitch", 5000, 201, 0.5),
    ("point", "large", "stitch", 5000, 201, 0.5),
    ("point", "giant", "stitch", 5000, 201, 0.5),
    ("point", "teleport", "stitch", 5000, 201, 0.5),
    ("ant", "medium", "navigate", 1000, 1001, 0.2),
    ("ant", "large", "navigate", 1000, 1001, 0.2),
    ("ant", "giant", "navigate", 500, 2001, 0.2),
    ("ant", "teleport", "navigate", 1000, 1001, 0.2),
    ("ant", "medium", "stitch", 5000, 201, 0.2),
    ("ant", "large", "stitch", 5000, 201, 0.2),
    ("ant", "giant", "stitch", 5000, 201, 0.2),
    ("ant", "teleport", "stitch", 5000, 201, 0.2),
    ("ant", "medium", "explore", 10000, 501, 1.0),
    ("ant", "large", "explore", 10000, 501, 1.0),
    ("ant", "teleport", "explore", 10000, 501, 1.0),
    ("humanoid", "medium", "navigate", 1000, 2001, 0.2),
    ("humanoid", "large", "navigate", 1000, 2001, 0.2),
    ("humanoid", "giant", "navigate", 1000, 4001, 0.2),
    ("humanoid", "medium", "stitch", 5000, 401, 0.2),
    ("humanoid", "large", "stitch", 5000, 401, 0.2),
    ("humanoid", "giant", "stitch", 10000, 401, 0.2),
    ("antball", "arena", "navigate", 1000, 1001, 0.2),
    ("antball", "medium", "navigate", 4000, 1001, 0.2),
    ("antball", "arena", "stitch", 5000, 201, 0.2),
    ("antball", "medium", "stitch", 8000, 501, 0.2),
)
_ENVIRONMENT = {"point": "pointmaze", "ant": "antmaze", "humanoid": "humanoidmaze", "antball": "antsoccer"}
_WHY_NOT = {"humanoid": _NO_HUMANOID, "antball": _NO_ANTBALL}

# environment, episodes, share of random actions in the noisy variant; 1001 observations an episode everywhere
_MANIPULATION: tuple[tuple[str, int, float], ...] = (
    ("cube-single", 1000, 0.1),
    ("cube-double", 1000, 0.1),
    ("cube-triple", 3000, 0.1),
    ("cube-quadruple", 5000, 0.1),
    ("scene", 1000, 0.1),
    ("puzzle-3x3", 1000, 0.2),
    ("puzzle-4x4", 1000, 0.2),
    ("puzzle-4x5", 3000, 0.2),
    ("puzzle-4x6", 5000, 0.2),
)


def _recipes() -> dict[str, Recipe]:
    found: list[Recipe] = []
    for agent, maze, kind, episodes, episode_rows, noise in _LOCOMAZE:
        stem, why_not = f"{_ENVIRONMENT[agent]}-{maze}", _WHY_NOT.get(agent)
        found.append(
            Recipe(
                dataset=f"{stem}-{kind}-v0",
                env_id=f"{stem}-v0",
                kind=kind,
                episodes=episodes,
                episode_rows=episode_rows,
                noise=noise,
                agent=agent,
                makeable=why_not is None,
                why_not=why_not,
            )
        )
    variants: tuple[Kind, ...] = ("play", "noisy")
    for stem, episodes, random_share in _MANIPULATION:
        why_not = _NO_PUZZLE if stem.startswith("puzzle") else None
        for kind in variants:
            found.append(
                Recipe(
                    dataset=f"{stem}-{kind}-v0",
                    env_id=f"{stem}-v0",
                    kind=kind,
                    episodes=episodes,
                    episode_rows=1001,
                    noise=0.1,
                    agent="manip",
                    makeable=why_not is None,
                    why_not=why_not,
                    random_actions=random_share if kind == "noisy" else 0.0,
                )
            )
    return {recipe.dataset: recipe for recipe in found}


RECIPES: dict[str, Recipe] = _recipes()
"""Every state-based OGBench dataset by name."""

# The published file of each D4RL maze; the maze and the two multi-start, multi-goal switches are in its name.
_D4RL_ANTMAZE = {
    "antmaze-umaze-v2": ("u-maze", False, False),
    "antmaze-umaze-diverse-v2": ("u-maze", True, True),
    "antmaze-medium-play-v2": ("big-maze", True, False),
    "antmaze-medium-diverse-v2": ("big-maze", True, True),
    "antmaze-large-play-v2": ("hardest-maze", True, False),
    "antmaze-large-diverse-v2": ("hardest-maze", True, True),
}


def d4rl_file_name(name: str) -> str:
    """What the published file of a D4RL antmaze is called, which its dataset name does not tell."""
    maze, multistart, multigoal = _D4RL_ANTMAZE[name]
    return f"Ant_maze_{maze}_noisy_multistart_{multistart}_multigoal_{multigoal}_sparse_fixed.hdf5"


def _known() -> dict[str, KnownDataset]:
    known: dict[str, KnownDataset] = {}
    for name, recipe in RECIPES.items():
        files = (f"{name}.npz", f"{name}-val.npz")
        known[name] = KnownDataset(
            name=name,
            suite="ogbench",
            files=files,
            rows=(recipe.rows, recipe.validation_episodes * recipe.episode_rows),
            trajectories=(recipe.episodes, recipe.validation_episodes),
            remote_path="ogbench",
            remote_files=files,
            recipe=recipe,
        )
    for name in _D4RL_ANTMAZE:
        known[name] = KnownDataset(
            name=name,
            suite="d4rl",
            files=(f"{name}.hdf5",),
            rows=(1_000_000,),
            trajectories=(None,),
            remote_path="offline_rl/ant_maze_v2",
            remote_files=(d4rl_file_name(name),),
        )
    return known


KNOWN: dict[str, KnownDataset] = _known()
"""Every dataset that has a name here, OGBench's first."""


def known_dataset(name: str) -> KnownDataset:
    """The entry of a dataset, or an error that says which name was probably meant."""
    if name in KNOWN:
        return KNOWN[name]
    if name.startswith(("visual-", "powderworld-")):
        raise UnavailableError(
            f"The dataset {name!r} has image observations, which are not supported.",
            fix=f"use its state-based sibling {name.removeprefix('visual-')!r}"
            if name.removeprefix("visual-") in KNOWN
            else "use a state-based dataset; `astro-rl data list` shows them",
        )
    if "/" in name:
        raise UnavailableError(
            f"{name!r} looks like one of Minari's datasets, which Minari fetches itself.",
            fix=f"minari download {name}; then give its folder in place of a name",
        )
    near = difflib.get_close_matches(name, KNOWN, n=3)
    raise UnavailableError(
        f"No dataset is called {name!r}.",
        found=name,
        expected=f"a name such as {', '.join(near)}" if near else "a name that `astro-rl data list` shows",
        fix="a file of your own is loaded by its path, not by a name",
    )
