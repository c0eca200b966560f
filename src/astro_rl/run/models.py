"""Fitted methods on disk: weights in safetensors, everything else in one JSON file. Nothing is unpickled.

models.json             what the method needs besides weights: written last, never there without the rest
NAME.safetensors        a network each; ASTRO's are temporal (ψ), dynamics and planner (their moving averages)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from astro_rl.augment.models import FittedModels
from astro_rl.augmenters.astro import ASTRO, FittedAstro
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.augmenters.registry import METHODS
from astro_rl.data.manifest import package_version
from astro_rl.errors import DataError
from astro_rl.run.files import read_json, write_json
from astro_rl.run.weights import load_weights, save_weights

DESCRIPTION, FORMAT, FORMAT_VERSION = "models.json", "astro-rl models", 1


def save_fitted(fitted: FittedAugmenter, folder: str | Path) -> Path:
    """Each file appears whole or not at all; the description last."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for name, network in fitted.networks().items():
        save_weights(path / f"{name}.safetensors", network)
    # Descriptions of before there were other methods name none; ASTRO's stay as they are.
    method = {} if fitted.method == ASTRO else {"method": fitted.method}
    write_json(
        path / DESCRIPTION,
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": f"astro-rl {package_version()}",
            **method,
            "source_digest": fitted.source_digest,
            "models_digest": fitted.digest(),
            **fitted.description(),
        },
    )
    return path


def load_fitted(folder: str | Path) -> FittedAugmenter:
    """What `save_fitted` wrote, or a fit's folder, which holds such a folder."""
    path = _place(Path(folder))
    saved = read_json(path / DESCRIPTION)
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise DataError("This file describes no fitted models.", file=path / DESCRIPTION)
    if saved.get("format_version") != FORMAT_VERSION or saved.get("method", ASTRO) not in METHODS:
        raise DataError(
            "The models were saved by another version of astro-rl.",
            file=path / DESCRIPTION,
            found=f"format version {saved.get('format_version')}, method {saved.get('method', ASTRO)}, "
            f"{saved.get('written_by')}",
            expected=f"format version {FORMAT_VERSION}, method {' or '.join(METHODS)}",
            fix="fit again, or use the version that wrote them",
        )

    def weights(name: str, template: Any) -> Any:
        return load_weights(path / f"{name}.safetensors", template)

    try:
        fitted = METHODS[saved.get("method", ASTRO)].restore(saved, weights)
        digest = saved["models_digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            "The description of the models is damaged.", file=path / DESCRIPTION, found=repr(error)
        ) from None
    if fitted.digest() != digest:
        raise DataError(
            "The weights are not those of the description.",
            file=path,
            found=f"weights with digest {fitted.digest()[:16]}…",
            expected=f"{str(digest)[:16]}…",
            fix="save or fit the models again",
        )
    return fitted


def save_models(models: FittedModels, folder: str | Path) -> Path:
    """ASTRO's models."""
    return save_fitted(FittedAstro(models), folder)


def load_models(folder: str | Path) -> FittedModels:
    """ASTRO's models: another method's are refused."""
    fitted = load_fitted(folder)
    if not isinstance(fitted, FittedAstro):
        raise DataError(
            "These are the models of another method than ASTRO.",
            file=folder,
            found=fitted.method,
            fix="astro-rl augment takes fits of every method; run.methods.load_method does in Python",
        )
    return fitted.models


def method_of(folder: str | Path) -> str:
    """Which method a finished fit is of, without reading its weights."""
    saved = read_json(_place(Path(folder)) / DESCRIPTION)
    return str(saved.get("method", ASTRO)) if isinstance(saved, dict) else ASTRO


def _place(path: Path) -> Path:
    for place in (path, path / "models"):
        if (place / DESCRIPTION).is_file():
            return place
    unfinished = (path / "config.json").exists()
    raise DataError(
        "The fit in this folder has not finished." if unfinished else "There are no fitted models here.",
        file=path,
        expected=f"{DESCRIPTION} and weights, as astro-rl fit leaves them",
        fix="run the same astro-rl fit command again: it continues"
        if unfinished
        else "astro-rl fit DATA --out FOLDER",
    )
