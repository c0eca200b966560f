"""What augmented data says of its own making: which method, what became of every proposal, from what it comes.

Every method writes the same lineage (`run`): scalars, mappings of settings, and accounts of proposals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astro_rl.report.story import Account

METHODS = {
    "original": "original",
    "astro": "ASTRO",
    "synther": "SynthER",
    "diffstitch": "DiffStitch",
    "rand": "Rand",
    "pre-euc": "Pre+Euc",
    "mb": "MB",
    "si": "SI",
    "reg-only": "ASTRO, L_reg only",
    "sc-only": "ASTRO, L_sc only",
}
"""How a method is called on a page; others keep their own name."""
TITLES = {
    ("synther", "completions"): "Generated transitions",
    ("diffstitch", "chains"): "Pairs",
}
COMMON_TITLES = {"chains": "Chains", "completions": "Completed gaps"}
CUT = "{:,} of the kept ones end before their junction: the step to the recorded state would be longer than real ones."
MOST_SETTINGS = 24
"""Of one mapping on a page. Larger ones stand in the data."""


def method_name(name: str) -> str:
    return METHODS.get(name, name)


def method_of(lineage: Mapping[str, Any]) -> str:
    """`astro` where nothing is said: data from before there were others."""
    return str(lineage.get("method", "astro"))


def accounts_of(lineage: Mapping[str, Any]) -> tuple[Account, ...]:
    """Every account in a lineage that has something proposed. What is cut is kept, without its junction."""
    method = method_of(lineage)
    found = []
    for name, each in lineage.items():
        if not _is_account(each) or not each["proposed"]:
            continue
        rejected = {str(reason): int(count) for reason, count in each.get("rejected", {}).items()}
        cut = int(each.get("cut", 0))
        found.append(
            Account(
                TITLES.get((method, name)) or COMMON_TITLES.get(name, name),
                int(each["proposed"]),
                int(each["proposed"]) - sum(rejected.values()),
                rejected,
                CUT.format(cut) if cut else "",
            )
        )
    return tuple(found)


def lineage_texts(lineage: Mapping[str, Any]) -> dict[str, str]:
    """Versions, hashes, seeds, and the settings that are few enough to read. Accounts have a section of their own."""
    texts: dict[str, str] = {}
    for name, value in lineage.items():
        shown = str(name).replace("_", " ")
        if isinstance(value, Mapping):
            if _is_account(value):
                continue
            flat = _scalars(value)
            if len(flat) > MOST_SETTINGS:
                texts[shown] = f"{len(flat)} settings; they stand in the data's own lineage"
            elif flat:
                texts[shown] = ", ".join(f"{part} {each}" for part, each in flat.items())
        elif isinstance(value, str | int | float) and value != "":
            texts[shown] = str(value)
    return texts


def _is_account(value: Any) -> bool:
    return isinstance(value, Mapping) and "proposed" in value


def _scalars(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Texts and numbers of nested mappings, by their paths."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _scalars(value, f"{prefix}{name}.")
        elif isinstance(value, float):
            found[f"{prefix}{name}"] = f"{value:.4g}"
        elif isinstance(value, str | int) and value != "":
            found[f"{prefix}{name}"] = str(value)
    return found
