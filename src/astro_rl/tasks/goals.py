"""Where the goals of OGBench's tasks are: five for each environment, copied as facts.

A test builds every environment and compares.
"""

from __future__ import annotations

from astro_rl.tasks import bodies
from astro_rl.tasks.rewards import Part, Placed, Reach, Switched, Together

Cell = tuple[int, int]
Xyz = tuple[float, float, float]

MAZE_UNIT = 4.0
"""Side of a cell. The centre of cell (1, 1), the first that is free, is the origin; rows run along y."""

MAZE_GOALS: dict[str, tuple[Cell, ...]] = {
    "medium": ((6, 6), (1, 6), (4, 2), (6, 1), (1, 1)),
    "large": ((7, 10), (7, 1), (1, 10), (5, 4), (5, 4)),
    "giant": ((10, 14), (10, 1), (1, 1), (5, 12), (3, 8)),
}
SOCCER_GOALS: dict[str, tuple[Cell, ...]] = {"arena": ((5, 2), (2, 2), (6, 6), (6, 1), (1, 6))}

CUBE_GOALS: dict[str, tuple[tuple[Xyz, ...], ...]] = {
    "single": (
        ((0.425, -0.1, 0.02),),
        ((0.5, 0.0, 0.02),),
        ((0.35, 0.0, 0.02),),
        ((0.5, 0.2, 0.02),),
        ((0.5, -0.2, 0.02),),
    ),
    "double": (
        ((0.425, 0.0, 0.02), (0.425, 0.1, 0.02)),
        ((0.35, 0.1, 0.02), (0.5, 0.1, 0.02)),
        ((0.425, -0.2, 0.02), (0.425, 0.2, 0.02)),
        ((0.425, 0.1, 0.02), (0.425, -0.1, 0.02)),
        ((0.425, 0.0, 0.02), (0.425, 0.0, 0.06)),
    ),
}

_IN_DRAWER = (0.33, -0.356, 0.065986)
SCENE_GOALS: tuple[tuple[Xyz, tuple[int, int], float, float], ...] = (
    # cube, buttons, drawer, window
    ((0.35, 0.05, 0.02), (1, 1), -0.16, 0.2),
    ((0.35, -0.05, 0.02), (0, 0), 0.0, 0.0),
    ((0.4, 0.15, 0.02), (1, 1), -0.16, 0.0),
    (_IN_DRAWER, (1, 0), 0.0, 0.0),
    (_IN_DRAWER, (0, 0), 0.0, 0.2),
)


def cell_center(cell: Cell) -> tuple[float, float]:
    """x and y of a cell given as (row, column)."""
    row, column = cell
    return (column - 1) * MAZE_UNIT, (row - 1) * MAZE_UNIT


def maze(maze_name: str, tolerance: float) -> tuple[Reach, ...]:
    return tuple(Reach((0, 1), cell_center(cell), tolerance) for cell in MAZE_GOALS[maze_name])


def soccer(field: str) -> tuple[Reach, ...]:
    return tuple(Reach(bodies.BALL_XY, cell_center(cell), 0.5) for cell in SOCCER_GOALS[field])


def _cube(number: int, target: Xyz) -> Placed:
    start = bodies.CUBES_START + bodies.CUBE_SIZE * number
    return Placed(start, target, bodies.XYZ_SCALE, bodies.XYZ_CENTER)


def cubes(variant: str) -> tuple[Together, ...]:
    return tuple(
        Together(tuple(_cube(number, xyz) for number, xyz in enumerate(targets)))
        for targets in CUBE_GOALS[variant]
    )


def scene() -> tuple[Together, ...]:
    found = []
    for cube, buttons, drawer, window in SCENE_GOALS:
        parts: list[Part] = [_cube(0, cube)]
        for number, target in enumerate(buttons):
            start = bodies.BUTTONS_START + bodies.BUTTON_SIZE * number
            parts.append(Switched(start, bodies.BUTTON_STATES, target))
        parts.append(Placed(bodies.DRAWER_INDEX, (drawer,), bodies.DRAWER_SCALE, (0.0,)))
        parts.append(Placed(bodies.WINDOW_INDEX, (window,), bodies.WINDOW_SCALE, (0.0,)))
        found.append(Together(tuple(parts)))
    return tuple(found)
