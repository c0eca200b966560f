"""What all figures for papers share: sizes, colours, a maze's ground, how they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from astro_rl.data.atomic import new_file
from astro_rl.report.plane import Plane
from astro_rl.report.story import RunStory

REAL, GENERATED, WALL, SOFT = "#005f9e", "#c8430a", "#ced4db", "#56616d"
ARMS = (SOFT, "#c8430a", "#00795c", "#8a3a86", "#7a5c00")
ARM_MARKS = ("o", "o", "s", "^", "D")
PIECES = (REAL, GENERATED, "#00795c", "#8a3a86", "#8f6a00", "#2b8cc4", "#444c56")
"""The page's colours in its light dress."""
COLUMN = 3.3
"""Width of a paper's column, in inches."""
FORMATS = ("png", "pdf")
UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""What a format calls its date: left out, so that the same figure is the same bytes."""


def save_figure(figure: Figure, folder: str | Path, name: str, formats: Sequence[str]) -> list[Path]:
    """`folder/NAME.png` and so on. Existing files are replaced."""
    written = []
    for kind in formats:
        path = Path(folder) / f"{name}.{kind}"
        with new_file(path, overwrite=True) as partial:
            figure.savefig(partial, format=kind, dpi=200, metadata=UNDATED.get(kind, {"Software": None}))
        written.append(path)
    return written


def new_figure(width: float, height: float) -> Figure:
    """Without pyplot, which would keep every figure and look for a display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def ground(axes: Axes, plane: Plane, story: RunStory) -> None:
    """The plane and its walls."""
    axes.set(xlim=(plane.x0, plane.x1), ylim=(plane.y0, plane.y1), xticks=[], yticks=[], aspect="equal")
    if story.walls is not None:
        size = story.walls.size
        squares = [Rectangle((float(x), float(y)), size, size) for x, y in story.walls.corners]
        axes.add_collection(PatchCollection(squares, facecolor=WALL, edgecolor="none"))
    for spine in axes.spines.values():
        spine.set_edgecolor(WALL)


def ends(axes: Axes, xy: np.ndarray) -> None:
    axes.plot(*xy[0], marker="o", markersize=5, markerfacecolor="white", markeredgecolor="black")
    axes.plot(*xy[-1], marker="s", markersize=4.5, color="black")


def bare(axes: Axes, *sides: str) -> None:
    for side in sides:
        axes.spines[side].set_visible(False)
