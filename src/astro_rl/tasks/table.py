"""The task table, as rows. What an environment needs that others do not is a column here, never a test of its
name.

`from_paper` rows carry the paper's numbers (its appendix B); in the others, and wherever `ours` names a
column, the value was chosen by us. Horizons of pointmaze: the point covers a cell in about half the ant's
steps, so 100 steps reach as far as the ant's 180. D4RL's IQL temperature is the one IQL's authors publish for
antmaze.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from astro_rl.tasks import bodies, d4rl, goals
from astro_rl.tasks.bodies import Body
from astro_rl.tasks.published import table_1, table_2
from astro_rl.tasks.rewards import Reach
from astro_rl.tasks.task import Rewards, SuccessTiming, Suite, Task

CHAIN = 5
"""n, sub-trajectories in a chain; a horizon is L = n·(l + M) with l = M."""

_CHOICES = ("horizon", "segment", "mask", "discount", "iql_alpha", "fql_alpha")


@dataclass(frozen=True)
class Row:
    """One dataset and what its goals share."""

    environment: str
    data: str
    body: Body
    rewards: tuple[Rewards, ...]
    default_goal: int
    max_episode_steps: int
    discount: float
    iql_alpha: float
    fql_alpha: float
    fql_authors_alpha: float | None
    horizon: int = 180
    fql_settings: Mapping[str, object] = field(default_factory=dict)
    fql_authors_steps: int | None = 1_000_000
    from_paper: bool = True
    ours: tuple[str, ...] = ()
    other_data: tuple[str, ...] = ()
    """Dataset types of the same environment that OGBench has and the paper does not use."""
    suite: Suite = "ogbench"
    success_timing: SuccessTiming = "pre"

    @property
    def short_name(self) -> str:
        return f"{self.environment}-{self.data}"


_MIN = {"q_aggregation": "min"}
_MAZE_DATA, _EXPLORED_MAZE_DATA, _ARM_DATA = ("navigate",), ("navigate", "explore"), ("noisy",)


def _maze_row(agent: str, maze: str, body: Body, tolerance: float, steps: int, **columns: object) -> Row:
    return Row(
        environment=f"{agent}-{maze}",
        data="stitch",
        body=body,
        rewards=goals.maze(maze, tolerance),
        default_goal=1,
        max_episode_steps=steps,
        **columns,  # pyright: ignore[reportArgumentType]
    )


def _point(maze: str, discount: float) -> Row:
    return _maze_row(
        *("pointmaze", maze, bodies.POINT, 1.0, 1000),
        discount=discount,
        iql_alpha=10.0,
        fql_alpha=10.0,
        fql_authors_alpha=None,
        fql_authors_steps=None,
        fql_settings=_MIN,
        horizon=100,
        from_paper=False,
        other_data=_MAZE_DATA,
    )


def _ant(maze: str, discount: float, from_paper: bool = True, explored: bool = True) -> Row:
    return _maze_row(
        *("antmaze", maze, bodies.ANT, 0.5, 1000),
        discount=discount,
        iql_alpha=10.0,
        fql_alpha=10.0,
        fql_authors_alpha=10.0 if from_paper else None,
        fql_authors_steps=1_000_000 if from_paper else None,
        fql_settings=_MIN,
        from_paper=from_paper,
        other_data=_EXPLORED_MAZE_DATA if explored else _MAZE_DATA,
    )


def _humanoid(maze: str) -> Row:
    return _maze_row(
        *("humanoidmaze", maze, bodies.HUMANOID, 0.5, 2000),
        discount=0.995,
        iql_alpha=10.0,
        fql_alpha=30.0,
        fql_authors_alpha=30.0,
        horizon=340,
        other_data=_MAZE_DATA,
    )


def _cube(variant: str, body: Body, steps: int, iql_alpha: float, fql_alpha: float) -> Row:
    return Row(
        environment=f"cube-{variant}",
        data="play",
        body=body,
        rewards=goals.cubes(variant),
        default_goal=2,
        max_episode_steps=steps,
        discount=0.99,
        iql_alpha=iql_alpha,
        fql_alpha=fql_alpha,
        fql_authors_alpha=300.0,
        other_data=_ARM_DATA,
    )


def _d4rl(name: str, fql_alpha: float) -> Row:
    maze = d4rl.MAZES[name]
    return Row(
        environment=name.removesuffix("-v2"),
        data="v2",
        body=bodies.ANT,
        rewards=(Reach((0, 1), maze.goal_center, d4rl.GOAL_RADIUS),),
        default_goal=1,
        max_episode_steps=maze.max_episode_steps,
        discount=0.99,
        iql_alpha=10.0,
        fql_alpha=fql_alpha,
        fql_authors_alpha=fql_alpha,
        fql_authors_steps=500_000,
        ours=("iql_alpha",),
        suite="d4rl",
        success_timing="post",
    )


ROWS: tuple[Row, ...] = (
    _ant("large", 0.99),
    _ant("giant", 0.995, explored=False),
    _humanoid("medium"),
    _humanoid("large"),
    Row(
        environment="antsoccer-arena",
        data="stitch",
        body=bodies.ANT_AND_BALL,
        rewards=goals.soccer("arena"),
        default_goal=4,
        max_episode_steps=1000,
        discount=0.995,
        iql_alpha=1.0,
        fql_alpha=10.0,
        fql_authors_alpha=10.0,
        other_data=_MAZE_DATA,
    ),
    Row(
        environment="scene",
        data="play",
        body=bodies.SCENE,
        rewards=goals.scene(),
        default_goal=2,
        max_episode_steps=750,
        discount=0.99,
        iql_alpha=10.0,
        fql_alpha=100.0,
        fql_authors_alpha=300.0,
        other_data=_ARM_DATA,
    ),
    _cube("single", bodies.ONE_CUBE, steps=200, iql_alpha=1.0, fql_alpha=300.0),
    _cube("double", bodies.TWO_CUBES, steps=500, iql_alpha=0.3, fql_alpha=100.0),
    _d4rl("antmaze-umaze-v2", 10.0),
    _d4rl("antmaze-umaze-diverse-v2", 10.0),
    _d4rl("antmaze-medium-play-v2", 10.0),
    _d4rl("antmaze-medium-diverse-v2", 10.0),
    _d4rl("antmaze-large-play-v2", 3.0),
    _d4rl("antmaze-large-diverse-v2", 3.0),
    _point("medium", 0.99),
    _point("large", 0.99),
    _point("giant", 0.995),
    _ant("medium", 0.99, from_paper=False),
)


def tasks_of_row(row: Row, data: str | None = None) -> tuple[Task, ...]:
    """A row's tasks, one for each goal. `data` names another dataset type of the same environment."""
    data, as_in_table = data or row.data, data in (None, row.data)
    on_ogbench = row.suite == "ogbench"
    found = []
    for goal, rewards in enumerate(row.rewards, start=1):
        in_paper = row.from_paper and as_in_table and goal == row.default_goal
        choices = _CHOICES if row.fql_authors_alpha is not None else (*_CHOICES, "fql_settings")
        span = row.horizon // (2 * CHAIN)
        found.append(
            Task(
                name=f"{row.environment}-{data}-singletask-task{goal}-v0" if on_ogbench else row.short_name,
                suite=row.suite,
                dataset=f"{row.environment}-{data}-v0" if on_ogbench else row.short_name,
                env_id=f"{row.environment}-singletask-task{goal}-v0" if on_ogbench else row.short_name,
                goal=goal,
                is_default_goal=goal == row.default_goal,
                observation_dim=row.body.observation_dim,
                action_dim=row.body.action_dim,
                max_episode_steps=row.max_episode_steps,
                rewards=rewards,
                horizon=row.horizon,
                segment=span,
                mask=span,
                discount=row.discount,
                iql_alpha=row.iql_alpha,
                fql_alpha=row.fql_alpha,
                fql_settings=row.fql_settings,
                fql_authors_alpha=row.fql_authors_alpha,
                fql_authors_steps=row.fql_authors_steps,
                chosen_by_us=row.ours if row.from_paper and as_in_table else choices,
                xy_indices=row.body.xy_indices,
                layout=row.body.layout,
                state=row.body.state,
                success_timing=row.success_timing,
                published=table_1(row.short_name) if in_paper else (),
                ablation=table_2(row.short_name) if in_paper else (),
            )
        )
    return tuple(found)
