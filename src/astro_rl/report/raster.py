"""Numbers over a plane as pictures: places binned into squares, squares coloured, pixels packed into a PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from astro_rl.report.story import PlaceMap

CLIPPED = 0.5
"""Percent of squares at either end that share the end's colour, so that a few odd ones do not bleach the rest."""

Colours = UInt8[np.ndarray, "256 3"]


@dataclass(frozen=True, eq=False)
class Grid:
    """Means of squares; NaN where nothing was seen. Row 0 is the lowest y."""

    x0: float
    y0: float
    cell: float
    values: Float[np.ndarray, "rows columns"]


@dataclass(frozen=True)
class Scale:
    low: float
    high: float

    def level(self, values: np.ndarray) -> np.ndarray:
        """0 at the low end, 1 at the high one, clipped."""
        width = self.high - self.low
        return np.clip((values - self.low) / width, 0, 1) if width > 0 else np.full_like(values, 0.5)


def grid_of(places: PlaceMap) -> Grid:
    """The mean of all values whose place lies in a square. Squares lie at multiples of their side."""
    at = np.floor(np.asarray(places.xy, np.float64) / places.cell).astype(np.int64)
    first = at.min(axis=0)
    columns, rows = at.max(axis=0) - first + 1
    flat = (at[:, 1] - first[1]) * columns + at[:, 0] - first[0]
    counts = np.bincount(flat, minlength=rows * columns)
    sums = np.bincount(flat, np.asarray(places.values, np.float64), minlength=rows * columns)
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    x0, y0 = first * places.cell
    return Grid(float(x0), float(y0), places.cell, means.reshape(rows, columns))


def shared_scale(*grids: Grid) -> Scale:
    """One scale for several grids, by percentiles of all their squares."""
    seen = np.concatenate([grid.values[np.isfinite(grid.values)] for grid in grids])
    low, high = np.percentile(seen, [CLIPPED, 100 - CLIPPED])
    return Scale(float(low), float(high))


def symmetric_scale(grid: Grid) -> Scale:
    """The same reach either side of 0."""
    seen = np.abs(grid.values[np.isfinite(grid.values)])
    reach = float(np.percentile(seen, 100 - 2 * CLIPPED))
    return Scale(-reach, reach)


def sequential(name: str = "viridis") -> Colours:
    """A map of matplotlib's that rises evenly in lightness, and so survives colour blindness and grey printing."""
    from matplotlib import colormaps

    return (colormaps[name](np.arange(256))[:, :3] * 255).round().astype(np.uint8)


def diverging(middle: tuple[int, int, int]) -> Colours:
    """Orange below, blue above, both told apart by every common colour vision; `middle` is the page's own ground."""
    stops = np.array([(140, 60, 0), (230, 120, 20), middle, (60, 140, 215), (0, 60, 140)], float)
    if sum(middle) < 3 * 128:
        stops[[0, 1, 3, 4]] = [(255, 200, 130), (200, 105, 20), (40, 120, 190), (150, 215, 255)]
    at = np.linspace(0, 4, 256)
    return (
        np.stack([np.interp(at, range(5), stops[:, band]) for band in range(3)], 1).round().astype(np.uint8)
    )


def picture(grid: Grid, scale: Scale, colours: Colours) -> str:
    """A data URI: a pixel a square, transparent where nothing was seen."""
    values = grid.values[::-1]
    seen = np.isfinite(values)
    index = (scale.level(np.where(seen, values, scale.low)) * 255).round().astype(np.int64)
    pixels = np.dstack([colours[index], np.where(seen, 255, 0).astype(np.uint8)])
    pixels[~seen] = 0
    return data_uri(pixels)


def bar(colours: Colours) -> str:
    """The colours from left to right, as a data URI."""
    return data_uri(np.dstack([colours[None], np.full((1, 256), 255, np.uint8)]))


def data_uri(pixels: UInt8[np.ndarray, "rows columns 4"]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: UInt8[np.ndarray, "rows columns 4"]) -> bytes:
    """A PNG that holds pixels and nothing else, so that the same pixels are the same bytes."""
    rows, columns, _ = pixels.shape
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
