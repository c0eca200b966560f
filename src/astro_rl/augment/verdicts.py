"""The last check: each completion is kept, cut at its junction, or rejected with a reason."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from astro_rl.augment.check import Errors
from astro_rl.augment.limits import RealLimits
from astro_rl.augment.options import GenerateSettings

KEPT, CUT, DEVIATES, MISSTEPS, NOT_FINITE = range(5)

REASONS = {
    DEVIATES: "deviation above that of real windows",
    MISSTEPS: "step error above that of real windows",
    NOT_FINITE: "not finite",
}


def judge(errors: Errors, limits: RealLimits, settings: GenerateSettings) -> Int[np.ndarray, "jobs"]:
    """One verdict a completion. CUT is `anchored`'s alone: what was generated stays, the junction goes."""
    verdict = np.full(len(errors.deviation), KEPT)
    if settings.mode == "anchored":
        jump, jump_xy = largest_jumps(limits, settings)
        apart = errors.jump > jump
        if jump_xy is not None:
            apart |= errors.jump_xy > jump_xy
        verdict[apart] = CUT
    verdict[errors.step_error > limits.at("step_error", settings.step_quantile)] = MISSTEPS
    if not settings.completion.polish:
        # Known states are held in a polished gap: all that is left of δ is the jump, which has been judged.
        verdict[errors.deviation > limits.at("deviation", settings.deviation_quantile)] = DEVIATES
    verdict[~np.isfinite(errors.deviation)] = NOT_FINITE
    return verdict


def largest_jumps(limits: RealLimits, settings: GenerateSettings) -> tuple[float, float | None]:
    """What a junction may miss by, over all dimensions and in the plane, where there is one."""

    def bounded(name: str) -> float:
        return min(max(limits.at(name, settings.jump_quantile), settings.jump_least), settings.jump_most)

    return bounded("jump"), None if limits.jump_xy is None else bounded("jump_xy")
