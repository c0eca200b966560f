"""Fitted models on disk: weights in safetensors, everything else in one JSON file. Nothing is unpickled.

models.json               shape, pace, limits, normaliser, settings: written last, never there without the rest
temporal.safetensors      ψ
dynamics.safetensors      the moving averages of both diffusion models
planner.safetensors
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from astro_rl.augment.limits import RealLimits
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings
from astro_rl.data.manifest import package_version
from astro_rl.data.normaliser import Normaliser
from astro_rl.errors import DataError
from astro_rl.run.files import read_json, write_json
from astro_rl.run.weights import load_weights, save_weights
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.model import TemporalModel

DESCRIPTION, FORMAT, FORMAT_VERSION = "models.json", "astro-rl models", 1


def save_models(models: FittedModels, folder: str | Path) -> Path:
    """Each file appears whole or not at all; the description last."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for name, network in models.networks().items():
        save_weights(path / f"{name}.safetensors", network)
    write_json(
        path / DESCRIPTION,
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": f"astro-rl {package_version()}",
            "source_digest": models.source_digest,
            "models_digest": models.digest(),
            "seed": models.seed,
            "shape": asdict(models.shape),
            "why": models.why,
            "horizon": models.dynamics.horizon,
            "phase": models.planner.phase,
            "spread": list(models.dynamics.spread),
            "observation_dim": models.dynamics.observation_dim,
            "action_dim": models.dynamics.action_dim,
            "discount": models.temporal.discount,
            "gauge": asdict(models.gauge),
            "limits": models.limits.as_json(),
            "normaliser": models.normaliser._asdict(),
            "settings": models.settings.as_json(),
            **({"seeds": dict(models.seeds)} if models.seeds else {}),
        },
    )
    return path


def load_models(folder: str | Path) -> FittedModels:
    """What `save_models` wrote, or a fit's folder, which holds such a folder."""
    path = _place(Path(folder))
    saved = read_json(path / DESCRIPTION)
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise DataError("This file describes no fitted models.", file=path / DESCRIPTION)
    if saved.get("format_version") != FORMAT_VERSION:
        raise DataError(
            "The models were saved by another version of astro-rl.",
            file=path / DESCRIPTION,
            found=f"format version {saved.get('format_version')}, {saved.get('written_by')}",
            expected=f"format version {FORMAT_VERSION}",
            fix="fit again, or use the version that wrote them",
        )
    try:
        models, digest = _filled(saved, path), saved["models_digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            "The description of the models is damaged.", file=path / DESCRIPTION, found=repr(error)
        ) from None
    if models.digest() != digest:
        raise DataError(
            "The weights are not those of the description.",
            file=path,
            found=f"weights with digest {models.digest()[:16]}…",
            expected=f"{str(digest)[:16]}…",
            fix="save or fit the models again",
        )
    return models


def _filled(saved: dict[str, Any], path: Path) -> FittedModels:
    settings = AstroSettings.from_json(saved["settings"])
    shape = ChainShape(**saved["shape"])
    normaliser = Normaliser(**{name: np.asarray(v, np.float32) for name, v in saved["normaliser"].items()})
    learner = settings.temporal.build(saved["discount"])
    dynamics = settings.dynamics.build(
        saved["horizon"], saved["observation_dim"], saved["action_dim"], tuple(saved["spread"])
    )
    planner = settings.planner.build(dynamics, shape, saved["phase"])
    key = jax.random.key(0)

    def weights(name: str, template: Any) -> Any:
        return load_weights(path / f"{name}.safetensors", template)

    encoder = jax.eval_shape(lambda: learner.init(key, saved["observation_dim"])).encoder
    return FittedModels(
        source_digest=saved["source_digest"],
        shape=shape,
        normaliser=normaliser,
        temporal=TemporalModel(learner, weights("temporal", encoder), normaliser),
        gauge=Gauge(**saved["gauge"]),
        dynamics=dynamics,
        dynamics_network=weights("dynamics", jax.eval_shape(lambda: dynamics.init(key)).average),
        planner=planner,
        planner_network=weights("planner", jax.eval_shape(lambda: planner.init(key)).average),
        limits=RealLimits.from_json(saved["limits"]),
        settings=settings,
        seed=saved["seed"],
        why=saved["why"],
        seeds=saved.get("seeds", {}),
    )


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
