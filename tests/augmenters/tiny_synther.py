"""The smallest fit of SynthER, the same shapes for every test that needs one."""

from typing import Any

from astro_rl.augmenters.registry import augmenter_for
from astro_rl.augmenters.synther.fit import FittedSynther
from astro_rl.data import Dataset
from astro_rl.run.methods import fit_method

SYNTHER_SIZES: dict[str, Any] = {
    "denoiser.steps": 60,
    "denoiser.log_every": 20,
    "denoiser.mlp.width": 16,
    "denoiser.mlp.depth": 1,
    "sampling.steps": 4,
    "batch": 128,
    "at_once": 64,
}


def fit_synther(dataset: Dataset, settings: dict[str, Any] | None = None, **options: Any) -> FittedSynther:
    augmenter = augmenter_for("synther", "tiny", {**SYNTHER_SIZES, **(settings or {})})
    fitted = fit_method(dataset, augmenter, **options)
    assert isinstance(fitted, FittedSynther)
    return fitted
