"""Where augmented data comes from: hashes of its source and models, and training's refusal of a stranger's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astro_rl.augment.finish import LINEAGE_COLUMNS
from astro_rl.data.digest import digest_columns
from astro_rl.data.manifest import package_version
from astro_rl.data.schema import Dataset
from astro_rl.errors import DataError

FORMAT_VERSION = 1


def source_digest(dataset: Dataset) -> str:
    """SHA-256 over observations, actions and offsets alone: relabelling for a task does not change it."""
    return digest_columns(
        {"observations": dataset.observations, "actions": dataset.actions, "offsets": dataset.offsets}
    )


def lineage(
    *, source: str, models: str, settings: Mapping[str, Any], task: str | None, seed: int, rounds: int
) -> dict[str, Any]:
    """What decides augmented data; with the code's version it is enough to make it again. `settings`: a method's own
    (`FittedAugmenter.lineage`); it may name other columns."""
    return {
        "format_version": FORMAT_VERSION,
        "written_by": f"astro-rl {package_version()}",
        "columns": list(LINEAGE_COLUMNS),
        "source_digest": source,
        "models_digest": models,
        "task": task,
        "seed": seed,
        "rounds": rounds,
        **settings,
    }


def require_same_source(dataset: Dataset, digest: str, *, what: str, fix: str) -> None:
    """Models and augmented data belong to one dataset: mixed with another one they would teach transitions that
    join nothing."""
    found = source_digest(dataset)
    if found != digest:
        raise DataError(
            f"{what} belongs to another dataset.",
            field="observations, actions, offsets",
            found=f"a dataset with digest {found[:16]}…",
            expected=f"{digest[:16]}…",
            fix=fix,
        )


def require_augmented_from(augmented: Dataset, dataset: Dataset) -> None:
    """Passes augmented data without lineage, as other programs write it."""
    record = augmented.info.get("lineage")
    if isinstance(record, Mapping) and isinstance(record.get("source_digest"), str):
        require_same_source(
            dataset,
            record["source_digest"],
            what="The augmented data",
            fix="name the dataset that it was made from, augment this one, or take any source (--any-source)",
        )
