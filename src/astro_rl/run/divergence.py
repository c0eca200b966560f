"""A loss that is no longer a number stops the run, with the first metric and seed that show it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from astro_rl.errors import TrainingError


def require_finite(metrics: Mapping[str, np.ndarray], seeds: tuple[int, ...], step: int) -> None:
    for name, values in metrics.items():
        bad = ~np.isfinite(values)
        if bad.any():
            raise TrainingError(
                "Training diverged: a quantity is no longer finite.",
                field=name,
                found=f"{values[bad][0]} for seed {seeds[int(np.argmax(bad))]}, in the updates up to step {step}",
                fix="lower the learning rate (--set learning_rate=1e-4), check the scale of rewards and observations "
                "(astro-rl data inspect), or switch layer norm on for the value; the last checkpoint is kept",
            )
