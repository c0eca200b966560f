"""All methods by name: their settings, their presets, and how each is made, before a fit and from a saved one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from astro_rl.agents.settings import near_match
from astro_rl.augment.settings import PRESETS as ASTRO_PRESETS
from astro_rl.augment.settings import AstroSettings, changed
from astro_rl.augmenters.astro import ASTRO, AstroAugmenter, adjusted_astro, restore_astro
from astro_rl.augmenters.base import Augmenter, FittedAugmenter, ReadWeights
from astro_rl.augmenters.diffstitch.method import (
    DIFFSTITCH,
    DiffStitch,
    adjusted_diffstitch,
    restore_diffstitch,
)
from astro_rl.augmenters.diffstitch.settings import PRESETS as DIFFSTITCH_PRESETS
from astro_rl.augmenters.diffstitch.settings import DiffStitchSettings
from astro_rl.augmenters.states import PRESETS as STATES_PRESETS
from astro_rl.augmenters.states import STATES, AstroStates, StatesSettings, restore_states
from astro_rl.augmenters.synther.fit import SYNTHER, SyntherAugmenter, adjusted, restore_synther
from astro_rl.augmenters.synther.settings import PRESETS as SYNTHER_PRESETS
from astro_rl.augmenters.synther.settings import SyntherSettings
from astro_rl.errors import ConfigError
from astro_rl.stitch.geometry import ChainShape


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    title: str
    settings: type
    """A frozen dataclass whose defaults hold where a preset says nothing."""
    presets: Mapping[str, Mapping[str, Any]]
    """tiny (seconds), cpu (two cores), paper: what each changes."""
    build: Callable[[Any], Augmenter]
    """From settings."""
    restore: Callable[[Mapping[str, Any], ReadWeights], FittedAugmenter]
    """From a saved description, which has the source's digest as well, and the weights."""
    adjust: Callable[[Any, Mapping[str, Any]], FittedAugmenter] | None = None
    """The same fit with other settings of generating. None: those of the fit stand."""


METHODS: dict[str, Method] = {
    ASTRO: Method("ASTRO", AstroSettings, ASTRO_PRESETS, AstroAugmenter, restore_astro, adjusted_astro),
    DIFFSTITCH: Method(
        "DiffStitch",
        DiffStitchSettings,
        DIFFSTITCH_PRESETS,
        DiffStitch,
        restore_diffstitch,
        adjusted_diffstitch,
    ),
    SYNTHER: Method("SynthER", SyntherSettings, SYNTHER_PRESETS, SyntherAugmenter, restore_synther, adjusted),
    STATES: Method("ASTRO with SI", StatesSettings, STATES_PRESETS, AstroStates, restore_states),
}


def augmenter_for(
    name: str,
    preset: str = "auto",
    settings: Mapping[str, Any] | None = None,
    *,
    shape: ChainShape | None = None,
) -> Augmenter:
    """A method with a preset's settings and `settings` by path (`{"net.width": 64}`) or nested. `auto` is `cpu`, or
    `paper` where there is an accelerator. `shape` is ASTRO's alone."""
    method = method_named(name)
    chosen = _with_machine(preset)
    if chosen not in method.presets:
        raise ConfigError(
            f"No preset is called {preset!r}.",
            field="preset",
            found=preset,
            expected=", ".join(["auto", *method.presets]),
            fix=near_match(preset, ["auto", *method.presets]),
        )
    resolved = changed(changed(method.settings(), method.presets[chosen]), settings or {})
    if name == ASTRO:
        return AstroAugmenter(resolved, shape)
    if shape is not None:
        raise ConfigError(
            "Only ASTRO makes chains of pieces and gaps.",
            field="shape",
            found=f"method {name}, shape {shape.pieces} {shape.segment} {shape.mask}",
            fix="leave the shape out",
        )
    return method.build(resolved)


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise ConfigError(
            f"No method is called {name!r}.",
            field="method",
            found=name,
            expected=", ".join(METHODS),
            fix=near_match(name, METHODS),
        )
    return METHODS[name]


def _with_machine(preset: str) -> str:
    if preset != "auto":
        return preset
    import jax

    return "cpu" if jax.default_backend() == "cpu" else "paper"
