"""A picture of a dataset's fragments beside what a learner thinks of every place they visit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.data.schema import Dataset

FRAGMENTS, STATES = 60, 20_000


def save_value_map(
    path: Path,
    dataset: Dataset,
    values: Float[np.ndarray, "rows"],
    xy: tuple[int, int],
    *,
    title: str,
    rows: np.ndarray,
) -> None:
    """Left: some fragments, each in its own colour. Right: states at `rows`, coloured by their values."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    chosen = np.linspace(0, len(dataset) - 1, min(FRAGMENTS, len(dataset))).round().astype(int)
    places = np.asarray(dataset.observations[rows])[:, list(xy)]
    left.scatter(*places.T, s=1, color="0.9", linewidths=0, rasterized=True)
    for number in chosen:
        track = np.asarray(dataset[int(number)].observations)[:, list(xy)]
        left.plot(*track.T, linewidth=0.9, alpha=0.8)
    left.set_title(f"{len(chosen)} of {len(dataset):,} fragments")
    shown = right.scatter(*places.T, s=2, c=values, cmap="viridis", linewidths=0, rasterized=True)
    right.set_title("what the learner expects from each place")
    figure.colorbar(shown, ax=right, label="value")
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.set_xlabel("x")
    left.set_ylabel("y")
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def value_map_of_policy(path: Path, policy: Any, dataset: Dataset, xy: tuple[int, int], title: str) -> None:
    """The picture for the first seed of a trained policy."""
    import jax
    import jax.numpy as jnp

    rows = np.linspace(0, dataset.n_rows - 1, min(STATES, dataset.n_rows)).round().astype(np.int64)
    state = jax.tree.map(lambda leaf: leaf[0], policy.states)
    observations = jnp.asarray(np.asarray(dataset.observations[rows]), jnp.float32)
    values = np.asarray(jax.jit(policy.learner.value)(state, observations))
    save_value_map(path, dataset, values, xy, title=title, rows=rows)
