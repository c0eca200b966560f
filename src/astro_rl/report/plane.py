"""A plane as inline SVG: walls, tracks, marks. Colours and widths are the page's style sheet's business."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from astro_rl.report.raster import Grid
from astro_rl.report.story import RunStory, Stitched, Walls

BORDER = 0.2
"""How much of an outer wall is drawn, in wall widths."""


@dataclass(frozen=True)
class Plane:
    """The part of the plane that is drawn. SVG's y runs down, ours up."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def mark(self) -> float:
        """A size for marks, in units of the plane."""
        return max(self.width, self.height) / 40

    def points(self, xy: Float[np.ndarray, "points 2"]) -> Float[np.ndarray, "points 2"]:
        """In the picture's coordinates."""
        return np.stack([xy[:, 0] - self.x0, self.y1 - xy[:, 1]], axis=1)

    def at(self, x: float, y: float) -> tuple[float, float]:
        return x - self.x0, self.y1 - y


def plane_of(story: RunStory) -> Plane | None:
    """All of the maze and a rim of its outer walls; without walls, all that is drawn and a margin."""
    if story.walls is not None:
        low = story.walls.corners.min(axis=0) + story.walls.size * (1 - BORDER)
        high = story.walls.corners.max(axis=0) + story.walls.size * BORDER
        return Plane(*(float(v) for v in (*low, *high)))
    drawn = [*(story.fragments.tracks if story.fragments else ())]
    drawn += [*(story.generated.tracks if story.generated else ())]
    drawn += [piece for chain in story.chains for piece in chain.pieces]
    drawn += [track.xy for track in story.stitched] + [values.xy for values in story.values]
    drawn += [pair.given[pair.known] for pair in story.pairs]
    drawn += [xy for pairs in story.chosen.values() for pair in pairs for xy in (pair.source, pair.target)]
    if story.distance is not None:
        drawn.append(story.distance.steps.xy)
    if not drawn:
        return None
    every = np.concatenate(drawn)
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.04 * max(float((high - low).max()), 1e-9)
    return Plane(*(float(v) for v in (*(low - margin), *(high + margin))))


def svg(plane: Plane, inside: str, label: str, classes: str = "map", extra: str = "") -> str:
    """A map with a text for those who do not see it. Walls lie under the rest: what crosses one is seen to."""
    return (
        f'<svg class="{classes}" viewBox="0 0 {_n(plane.width)} {_n(plane.height)}" role="img" '
        f'aria-label="{escape(label)}"{extra}><use href="#walls"/>{inside}</svg>'
    )


def walls_path(plane: Plane, walls: Walls | None) -> str:
    """All walls as one path, clipped to the picture."""
    if walls is None:
        return ""
    corners = []
    for x, y in walls.corners:
        left, right = max(x, plane.x0), min(x + walls.size, plane.x1)
        bottom, top = max(y, plane.y0), min(y + walls.size, plane.y1)
        if right > left and top > bottom:
            a, b = plane.at(left, top)
            corners.append(f"M{_n(a)} {_n(b)}h{_n(right - left)}v{_n(top - bottom)}h{_n(left - right)}z")
    return f'<path class="wall" d="{"".join(corners)}"/>'


def track(plane: Plane, xy: Float[np.ndarray, "points 2"], classes: str) -> str:
    return f'<path class="{classes}" d="{path_data(plane, xy)}"/>'


def path_data(plane: Plane, xy: Float[np.ndarray, "points 2"]) -> str:
    points = plane.points(np.asarray(xy, np.float64))
    first, rest = points[0], points[1:]
    return f"M{_n(first[0])} {_n(first[1])}" + (
        "L" + " ".join(f"{_n(x)} {_n(y)}" for x, y in rest) if len(rest) else "h0"
    )


def stitched_track(plane: Plane, stitched: Stitched) -> str:
    """Recorded and generated steps in two styles, and marks where the trajectory starts and ends."""
    runs = {True: "", False: ""}
    for start, stop, real in step_runs(stitched.generated, stitched.source):
        runs[real] += path_data(plane, stitched.xy[start : stop + 1])
    return (
        f'<path class="generated" d="{runs[False]}"/><path class="real" d="{runs[True]}"/>'
        + start_mark(plane, stitched.xy[0])
        + end_mark(plane, stitched.xy[-1])
    )


def step_runs(
    generated: Bool[np.ndarray, "states"], source: Int[np.ndarray, "states"] | None
) -> list[tuple[int, int, bool]]:
    """Runs of steps of one kind as (first state, last state, recorded). A step is recorded only if both its states
    are, and in the same recording: the step across a seam belongs to the models."""
    real = ~generated[:-1] & ~generated[1:]
    if source is not None:
        real &= source[:-1] == source[1:]
    if len(real) == 0:
        return []
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(real)) + 1, [len(real)]])
    return [(int(a), int(b), bool(real[a])) for a, b in pairwise(cuts)]


def start_mark(plane: Plane, at: Float[np.ndarray, "2"]) -> str:
    x, y = plane.at(float(at[0]), float(at[1]))
    return f'<circle class="start" cx="{_n(x)}" cy="{_n(y)}" r="{_n(0.6 * plane.mark)}"/>'


def end_mark(plane: Plane, at: Float[np.ndarray, "2"]) -> str:
    x, y = plane.at(float(at[0]), float(at[1]))
    side = plane.mark
    return (
        f'<rect class="end" x="{_n(x - side / 2)}" y="{_n(y - side / 2)}" '
        f'width="{_n(side)}" height="{_n(side)}"/>'
    )


def goal_mark(plane: Plane, goal: tuple[float, float] | None, radius: float | None) -> str:
    """A star at the goal and the circle within which it counts as reached."""
    if goal is None:
        return ""
    x, y = plane.at(*goal)
    turns = np.pi * (np.arange(10) / 5 - 0.5)
    sizes = np.where(np.arange(10) % 2 == 0, 1.0, 0.42) * plane.mark
    corners = " ".join(
        f"{_n(x + r * np.cos(t))},{_n(y + r * np.sin(t))}" for r, t in zip(sizes, turns, strict=True)
    )
    circle = (
        f'<circle class="goal-reach" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'
        if radius is not None
        else ""
    )
    return f'{circle}<polygon class="goal" points="{corners}"/>'


def image(plane: Plane, grid: Grid, uri: str, classes: str = "squares") -> str:
    """A grid's picture, laid where its squares lie."""
    rows, columns = grid.values.shape
    x, y = plane.at(grid.x0, grid.y0 + rows * grid.cell)
    return (
        f'<image class="{classes}" x="{_n(x)}" y="{_n(y)}" width="{_n(columns * grid.cell)}" '
        f'height="{_n(rows * grid.cell)}" preserveAspectRatio="none" href="{uri}"/>'
    )


def contours(plane: Plane, grid: Grid, levels: list[float]) -> str:
    """Lines of equal value between the middles of squares; nothing is drawn across unseen ones."""
    from contourpy import contour_generator

    rows, columns = grid.values.shape
    if min(rows, columns) < 2:
        return ""
    x = grid.x0 + (np.arange(columns) + 0.5) * grid.cell
    y = grid.y0 + (np.arange(rows) + 0.5) * grid.cell
    generator = contour_generator(x, y, np.ma.masked_invalid(grid.values))
    lines = [np.asarray(line) for level in levels for line in generator.lines(level)]
    return f'<path class="contour" d="{"".join(path_data(plane, line) for line in lines if len(line) > 4)}"/>'


def _n(value: float) -> str:
    """Two decimals are a fiftieth of a pixel."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".").replace("-0.00", "0") or "0"
