"""Where augmented data comes from: hashes of its source and models, and training's refusal of a stranger's."""

from __future__ import annotations

from astro_rl.data.digest import digest_columns
from astro_rl.data.schema import Dataset


def source_digest(dataset: Dataset) -> str:
    """SHA-256 over observations, actions and offsets alone: relabelling for a task does not change it."""
    return digest_columns(
        {"observations": dataset.observations, "actions": dataset.actions, "offsets": dataset.offsets}
    )
