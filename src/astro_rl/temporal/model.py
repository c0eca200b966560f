"""A fitted ψ with the normaliser it was fitted under: what the rest of the pipeline asks for distances in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from astro_rl.data.atomic import new_file
from astro_rl.data.columns import Chunks, Column, map_npy, write_npy
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError, TrainingError
from astro_rl.temporal.encoder import Encoder
from astro_rl.temporal.learning import TemporalData, TemporalLearner
from astro_rl.temporal.steps import is_saturated, steps_from_distance

CHUNK_ROWS = 1 << 14
"""Rows that are encoded at once: large enough to keep all cores busy, small enough to stay in cache."""

Progress = Callable[[int, int], None]


def temporal_data(dataset: Dataset, normaliser: Normaliser) -> TemporalData:
    """The dataset as the learner wants it: normalised, on the device, with where each row's trajectory ends."""
    observations = np.empty(dataset.observations.shape, np.float32)
    for start in range(0, dataset.n_rows, CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        observations[part] = normaliser.normalise(np.asarray(dataset.observations[part]))
    return TemporalData(
        jnp.asarray(observations),
        jnp.asarray(dataset.transition_rows(), jnp.int32),
        jnp.asarray(np.repeat(dataset.end_rows, np.diff(dataset.offsets)), jnp.int32),
    )


@dataclass(frozen=True, eq=False)
class TemporalModel:
    """ψ after training. Observations go in as the dataset has them; the model normalises them itself."""

    learner: TemporalLearner
    encoder: Encoder
    """Members stacked on the first axis."""
    normaliser: Normaliser

    @property
    def discount(self) -> float:
        return self.learner.discount

    @property
    def latent_dim(self) -> int:
        """Numbers a row takes in the latent table: every member's."""
        return self.learner.members * self.learner.latent

    def encode(
        self,
        observations: Float[np.ndarray, "rows obs"],
        *,
        out: Path | None = None,
        progress: Progress | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Float[np.ndarray, "rows latent"]:
        """ψ of every row. Members stand side by side, divided by √members, so that the Euclidean distance of two
        rows is the root mean square of the members' distances.

        With `out` the table is a `.npy` file that appears whole or not at all, and comes back memory-mapped: only
        a chunk of it is ever in memory.
        """
        rows, width = observations.shape
        if width != len(self.normaliser.mean):
            raise DataError(
                "The temporal distances were fitted on observations of another size.",
                field="observations",
                found=f"{width} numbers an observation",
                expected=f"{len(self.normaliser.mean)}",
                fix="fit a model on this dataset",
            )
        column = Column(
            np.dtype(np.float32),
            (rows, self.latent_dim),
            lambda: self._encoded(observations, progress, max(1, min(chunk_rows, rows))),
        )
        if out is None:
            return column.read()
        with new_file(out, overwrite=True, needed_bytes=column.nbytes) as partial:
            write_npy(partial, column)
        return map_npy(out, column.dtype, column.shape)

    def _encoded(self, observations: np.ndarray, progress: Progress | None, chunk_rows: int) -> Chunks:
        rows = len(observations)
        for start in range(0, rows, chunk_rows):
            chunk = np.asarray(observations[start : start + chunk_rows])
            inputs = np.zeros((chunk_rows, chunk.shape[1]), np.float32)
            # The last chunk is filled up with zeros: one shape, one compilation.
            inputs[: len(chunk)] = self.normaliser.normalise(chunk)
            latents = np.asarray(_side_by_side(self.encoder, jnp.asarray(inputs)))[: len(chunk)]
            if not np.isfinite(latents).all():
                row = start + int(np.flatnonzero(~np.isfinite(latents).all(axis=1))[0])
                raise TrainingError(
                    "The temporal distances give numbers that are not finite.",
                    found=f"row {row}",
                    fix="look for observations of huge scale (`astro-rl data inspect`), or lower the learning rate",
                )
            yield latents
            if progress is not None:
                progress(start + len(chunk), rows)

    def distance(
        self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]
    ) -> Float[np.ndarray, "batch"]:
        """d(a, b), eq. (2): as the loss learns it, discounted."""
        return np.linalg.norm(self.encode(a) - self.encode(b), axis=-1)

    def steps(
        self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]
    ) -> Float[np.ndarray, "batch"]:
        """Steps that the best policy needs from a to b. Pairs too far apart to tell are clamped; `saturated`
        counts them."""
        return np.asarray(steps_from_distance(jnp.asarray(self.distance(a, b)), self.discount))

    def saturated(self, a: Float[np.ndarray, "batch obs"], b: Float[np.ndarray, "batch obs"]) -> float:
        """Share of the pairs whose distance says only "far"."""
        return float(np.mean(np.asarray(is_saturated(jnp.asarray(self.distance(a, b)), self.discount))))


@jax.jit
def _side_by_side(encoder: Encoder, x: Float[Array, "rows obs"]) -> Float[Array, "rows latent"]:
    members = jax.vmap(lambda member: member(x))(encoder)
    return jnp.moveaxis(members, 0, 1).reshape(len(x), -1) / jnp.sqrt(len(members))
