"""ASTRO's ablations by name: what each changes, and the fit of one that takes the rest from a base.

Tables 2 and 4 of the paper, appendix D, and our own. A variant is settings by path, another shape of chain, or another
completer; everything else is the base's, to the weight (`augment.sharing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from astro_rl.agents.settings import near_match
from astro_rl.augment.fitting import Bar, Keeper, fit, no_bar
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import AstroSettings, Stage, changed
from astro_rl.augmenters.astro import FittedAstro
from astro_rl.augmenters.base import FittedAugmenter
from astro_rl.augmenters.states import AstroStates, StatesSettings, plan_like
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.stateplan.settings import StatePlanSettings
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks.task import Task

Reshape = Callable[[ChainShape], ChainShape]


def _same(shape: ChainShape) -> ChainShape:
    return shape


@dataclass(frozen=True)
class Variant:
    """What differs from the base."""

    what: str
    """In words, for tables."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of `AstroSettings`, by path."""
    reshaped: Reshape = _same
    states_first: bool = False
    """Completed by a state planner with inverse dynamics (`augmenters.states`)."""


def _mask_share(mask: int, segment: int) -> Reshape:
    """M : l as given, l + M as before, so that L stays."""

    def reshaped(shape: ChainShape) -> ChainShape:
        own, rest = divmod(shape.period * mask, mask + segment)
        if rest:
            raise ConfigError(
                "l + M cannot be divided so.",
                field="shape",
                found=f"l + M = {shape.period}, M : l = {mask} : {segment}",
                expected=f"a multiple of {mask + segment}",
                fix="fit the base with another shape",
            )
        return ChainShape(shape.pieces, shape.period - own, own)

    return reshaped


VARIANTS: dict[str, Variant] = {
    "astro": Variant("ASTRO itself"),
    # Tables 2 and 4.
    "rand": Variant("targets drawn uniformly", {"generate.selection": "random"}),
    "pre-euc": Variant("target nearest to an imitated continuation", {"generate.selection": "euclidean"}),
    "mb": Variant(
        "planner without feedback, L_reg and refinement: a sequence model and the dynamics model",
        {
            "planner.feedback.kind": "none",
            "planner.correction": False,
            "planner.regularisation": 0.0,
            "generate.sampling.refine": 0,
        },
    ),
    "si": Variant("states by a state planner, actions by inverse dynamics", states_first=True),
    "reg-only": Variant(
        "L_reg without feedback and correction",
        {"planner.feedback.kind": "none", "planner.correction": False},
    ),
    "sc-only": Variant("L_sc without L_reg", {"planner.regularisation": 0.0}),
    # Appendix D, (d). Thresholds, lengths and horizons are families, below.
    "mask-third": Variant("M : l = 1 : 3, the same L", reshaped=_mask_share(1, 3)),
    "mask-triple": Variant("M : l = 3 : 1, the same L", reshaped=_mask_share(3, 1)),
    # Ours.
    "argmin": Variant(
        "eq. (6) as it stands: the one target nearest to M", {"generate.search.rule": "argmin"}
    ),
    "literal": Variant("raw distances, as the paper has them", {"calibration": "literal"}),
    "rollout": Variant("the whole chain from its first state", {"generate.mode": "rollout"}),
    "anchored": Variant("gap by gap from real states", {"generate.mode": "anchored"}),
    "steps-delta": Variant("δ of every step", {"planner.feedback.kind": "steps"}),
    "residual-delta": Variant("the residual behind δ", {"planner.feedback.kind": "residual"}),
    "full-delta": Variant("δ over all states in training", {"planner.feedback.over": "full"}),
    "no-refine": Variant("no steps downhill on δ when sampling", {"generate.sampling.refine": 0}),
    "regenerated": Variant(
        "real windows masked and completed: no new connection", {"generate.chains": "regenerated"}
    ),
}
"""The one table. `simulated`, the control that knows the simulator, is `quality.simulated_augmenter`'s."""


def _threshold(value: float) -> Variant:
    return Variant(f"Δ_thresh {value:g}", {"generate.search.threshold": float(value)})


def _pieces(value: float) -> Variant:
    return Variant(
        f"{value:g} pieces, l and M as they are",
        reshaped=lambda shape: ChainShape(int(value), shape.segment, shape.mask),
    )


def _horizon(value: float) -> Variant:
    def reshaped(shape: ChainShape) -> ChainShape:
        segment, rest = divmod(int(value) * shape.segment, shape.horizon)
        mask, other = divmod(int(value) * shape.mask, shape.horizon)
        if rest or other:
            raise ConfigError(
                "l and M are no whole numbers of states at this horizon.",
                field="shape",
                found=f"L = {value:g}, {shape.pieces} pieces, M : l = {shape.mask} : {shape.segment}",
                expected=f"a multiple of {shape.pieces} times the smallest l + M of this ratio",
            )
        return ChainShape(shape.pieces, segment, mask)

    return Variant(f"L = {value:g}, as many pieces, M : l as it is", reshaped=reshaped)


FAMILIES: dict[str, Callable[[float], Variant]] = {
    "threshold": _threshold,
    "pieces": _pieces,
    "horizon": _horizon,
}
"""Names with a number: threshold-2, pieces-7, horizon-120 (appendix D, a to c)."""
WHOLE = ("pieces", "horizon")

APPENDIX_D: dict[str, tuple[str, ...]] = {
    "threshold": ("threshold-5", "threshold-3", "threshold-2"),
    "pieces": ("pieces-3", "pieces-5", "pieces-7"),
    "horizon": ("horizon-120", "horizon-160", "horizon-200"),
    "mask": ("mask-third", "astro", "mask-triple"),
}
"""Table `ablation-all`, a to d, on a base of the paper's 5 · (18 + 18)."""


def variant_named(name: str) -> Variant:
    if name in VARIANTS:
        return VARIANTS[name]
    family, _, value = name.rpartition("-")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if family in FAMILIES and number > 0 and (number.is_integer() or family not in WHOLE):
        return FAMILIES[family](number)
    known = [*VARIANTS, *(f"{family}-N" for family in FAMILIES)]
    raise ConfigError(
        f"No variant is called {name!r}.",
        field="variant",
        found=name,
        expected=", ".join(known),
        fix=near_match(name, known),
    )


def settings_of(name: str, settings: AstroSettings, shape: ChainShape) -> tuple[AstroSettings, ChainShape]:
    """The variant's, from the base's. A variant of the table that changes nothing of this base is refused."""
    variant = variant_named(name)
    own, form = changed(settings, variant.changes), variant.reshaped(shape)
    unchanged = (own, form) == (settings, shape) and not variant.states_first
    if unchanged and name != "astro" and name in VARIANTS:
        raise ConfigError(
            f"The base is already what {name!r} would make of it.",
            field="variant",
            found=", ".join(f"{path} = {value!r}" for path, value in variant.changes.items()),
        )
    return own, form


def variant_of(
    base: FittedModels,
    name: str,
    dataset: Dataset,
    *,
    task: Task | None = None,
    seed: int | None = None,
    any_seed: Collection[Stage] = (),
    latents: Float[np.ndarray, "rows latent"] | None = None,
    plan: StatePlanSettings | None = None,
    keeper: Keeper | None = None,
    bar: Bar = no_bar,
) -> FittedAugmenter:
    """The ablation `name` of a fit: what it changes is fitted, all else is the base's.

    `seed`: the base's own unless given; another one shares only the stages in `any_seed`. `latents`: the base's table,
    which serves every variant with its ψ. `plan`: sizes of SI's two models; those of the base's dynamics model unless
    given.
    """
    settings, shape = settings_of(name, base.settings, base.shape)
    own = base.seed if seed is None else seed
    models = fit(
        dataset,
        settings,
        shape=shape,
        task=task,
        seed=own,
        base=base,
        any_seed=any_seed,
        keeper=keeper,
        bar=bar,
    )
    table = latents if models.temporal is base.temporal else None
    if not variant_named(name).states_first:
        return FittedAstro(models, table)
    states = AstroStates(StatesSettings(settings, plan or plan_like(settings)), models)
    return replace(states.fit(dataset, task=task, seed=own, keeper=keeper, bar=bar), latents=table)
