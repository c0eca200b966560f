"""True shortest paths in a maze of square cells, which learned distances are held against.

A shortest path among walls is straight but at walls' convex corners. So instead of searching a grid (whose eight
directions make paths up to 8.2 % too long, at any resolution), corners are joined where they see each other, and a
distance is the shortest over the corners that both ends see. It is exact for a point. A body with a radius
swings wider round corners, so its paths are somewhat longer; walls are not inflated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from astro_rl.errors import UnavailableError
from astro_rl.tasks import d4rl, goals
from astro_rl.tasks.task import Task

CHUNK_PAIRS = 2048
"""Segments tested against all walls at once: a few megabytes."""

_CLEARANCE = 1e-6
"""Shares of a cell. Corners stand this far off their walls, and walls count half as much wider: a path may run
along a wall, but not between two walls that touch."""

Points = Float[np.ndarray, "batch 2"]


@dataclass(frozen=True, eq=False)
class MazeGrid:
    """Cells of a maze, and exact shortest distances between places in it."""

    walls: Bool[np.ndarray, "rows columns"]
    unit: float
    """Side of a cell."""
    origin: tuple[float, float]
    """x and y of the centre of cell (0, 0); columns run along x, rows along y."""
    resolution: float
    """Spacing of `points()`, in shares of a cell. Distances do not depend on it."""
    boxes: Float[np.ndarray, "walls 4"]
    corners: Float[np.ndarray, "corners 2"]
    between_corners: Float[np.ndarray, "corners corners"]

    @classmethod
    def of_walls(
        cls,
        walls: Bool[np.ndarray, "rows columns"],
        *,
        unit: float = 1.0,
        origin: tuple[float, float] = (0.0, 0.0),
        resolution: float = 0.25,
    ) -> MazeGrid:
        boxes = _boxes(walls, unit, origin)
        corners = _convex_corners(walls, unit, origin)
        between = np.full((len(corners), len(corners)), np.inf)
        first, second = np.triu_indices(len(corners))
        seen = ~_blocked(corners[first], corners[second], boxes)
        lengths = np.linalg.norm(corners[first] - corners[second], axis=-1)
        between[first[seen], second[seen]] = between[second[seen], first[seen]] = lengths[seen]
        for via in range(len(corners)):  # Floyd and Warshall: there are a few dozen corners
            between = np.minimum(between, between[:, via, None] + between[None, via, :])
        return cls(walls, unit, origin, resolution, boxes, corners, between)

    @classmethod
    def of_task(cls, task: Task, resolution: float = 0.25) -> MazeGrid:
        """The maze that a task is set in. OGBench's are read off the environment, which is built for it."""
        if task.xy_indices is None:
            raise UnavailableError(
                f"{task.name} is not set in a maze, so it has no shortest paths.",
                fix="name a task of a maze, such as antmaze-medium-stitch",
            )
        if task.suite == "d4rl":
            maze = d4rl.MAZES[task.name]
            walls = np.array([[mark == "#" for mark in row] for row in maze.rows])
            return cls.of_walls(
                walls, unit=d4rl.MAZE_SCALE, origin=maze.center((0, 0)), resolution=resolution
            )
        from astro_rl.envs.build import make_env

        env: Any = make_env(task.env_id)
        walls = np.asarray(env.unwrapped.maze_map) == 1
        env.close()
        return cls.of_walls(
            walls, unit=goals.MAZE_UNIT, origin=goals.cell_center((0, 0)), resolution=resolution
        )

    def distance(self, xy_a: Points, xy_b: Points) -> Float[np.ndarray, "batch"]:
        """Length of the shortest path, pair by pair; infinite where there is none, and from inside a wall."""
        a, b = np.asarray(xy_a, np.float64), np.asarray(xy_b, np.float64)
        found = np.empty(len(a))
        for start in range(0, len(a), CHUNK_PAIRS):
            part = slice(start, start + CHUNK_PAIRS)
            straight = np.where(
                _blocked(a[part], b[part], self.boxes), np.inf, np.linalg.norm(a[part] - b[part], axis=-1)
            )
            found[part] = straight
            bent = np.flatnonzero(np.isinf(straight))
            if len(self.corners) and len(bent):
                from_a, from_b = self._to_corners(a[part][bent]), self._to_corners(b[part][bent])
                # min over corners i, j of |a i| + d(i, j) + |j b|
                to_each = (from_a[:, :, None] + self.between_corners[None]).min(axis=1)
                found[start + bent] = (to_each + from_b).min(axis=1)
        return found

    def separated_by_wall(self, xy_a: Points, xy_b: Points) -> Bool[np.ndarray, "batch"]:
        """Whether the straight line between them crosses a wall."""
        return _blocked(np.asarray(xy_a, np.float64), np.asarray(xy_b, np.float64), self.boxes)

    def points(self) -> Float[np.ndarray, "points 2"]:
        """Places on a regular grid, none of them in a wall: what maps are drawn over."""
        per_cell = max(1, round(1 / self.resolution))
        inside = (np.arange(per_cell) + 0.5) / per_cell - 0.5
        rows, columns = np.nonzero(~self.walls)
        x = columns[:, None, None] + inside[None, None, :] + np.zeros((1, per_cell, 1))
        y = rows[:, None, None] + inside[None, :, None] + np.zeros((1, 1, per_cell))
        return np.stack([x.ravel(), y.ravel()], axis=-1) * self.unit + np.array(self.origin)

    def _to_corners(self, points: Float[np.ndarray, "batch 2"]) -> Float[np.ndarray, "batch corners"]:
        n, k = len(points), len(self.corners)
        a, b = np.repeat(points, k, axis=0), np.tile(self.corners, (n, 1))
        lengths = np.where(_blocked(a, b, self.boxes), np.inf, np.linalg.norm(a - b, axis=-1))
        return lengths.reshape(n, k)


def _boxes(walls: np.ndarray, unit: float, origin: tuple[float, float]) -> np.ndarray:
    """(x low, y low, x high, y high) of walls, runs of a row joined into one, a hair wider than they are."""
    found = []
    for i, row in enumerate(walls):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
        for first, stop in edges.reshape(-1, 2):
            found.append((first - 0.5, i - 0.5, stop - 0.5, i + 0.5))
    boxes = np.array(found, np.float64).reshape(-1, 4) * unit + np.array([*origin, *origin])
    hair = 0.5 * _CLEARANCE * unit
    return boxes + np.array([-hair, -hair, hair, hair])


def _convex_corners(walls: np.ndarray, unit: float, origin: tuple[float, float]) -> np.ndarray:
    """Where one cell of four is a wall: the only places at which a shortest path turns."""
    found = []
    for i, j in np.argwhere(walls):
        for di in (-1, 1):
            for dj in (-1, 1):
                around = ((i + di, j), (i, j + dj), (i + di, j + dj))
                inside = all(0 <= a < walls.shape[0] and 0 <= b < walls.shape[1] for a, b in around)
                if inside and not any(walls[cell] for cell in around):
                    reach = 0.5 + _CLEARANCE
                    found.append((j + dj * reach, i + di * reach))
    return np.array(found, np.float64).reshape(-1, 2) * unit + np.array(origin)


def _blocked(a: np.ndarray, b: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether the segment a b meets the inside of any box (slab method)."""
    blocked = np.zeros(len(a), bool)
    for start in range(0, len(a), CHUNK_PAIRS * 8):
        part = slice(start, start + CHUNK_PAIRS * 8)
        enter, leave = np.zeros((len(a[part]), len(boxes))), np.ones((len(a[part]), len(boxes)))
        for axis in (0, 1):
            origin, step = a[part, axis, None], (b[part, axis] - a[part, axis])[:, None]
            low, high = boxes[None, :, axis], boxes[None, :, axis + 2]
            moving = np.abs(step) > 1e-12
            safe = np.where(moving, step, 1.0)
            near, far = (low - origin) / safe, (high - origin) / safe
            between = (origin > low) & (origin < high)
            enter = np.maximum(
                enter, np.where(moving, np.minimum(near, far), np.where(between, -np.inf, np.inf))
            )
            leave = np.minimum(
                leave, np.where(moving, np.maximum(near, far), np.where(between, np.inf, -np.inf))
            )
        blocked[part] = (enter < leave).any(axis=1)
    return blocked
