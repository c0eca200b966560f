"""What people call the fields of a dataset. One table, used for `.npz`, HDF5 and dictionaries alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from astro_rl.data.checks import closest
from astro_rl.errors import ConfigError, DataError

SPELLINGS: dict[str, tuple[str, ...]] = {
    "observations": ("observations", "observation", "obs", "states", "state"),
    "next_observations": ("next_observations", "next_observation", "next_obs", "next_states", "next_state"),
    "actions": ("actions", "action", "acts", "act"),
    "rewards": ("rewards", "reward", "rews", "rew"),
    "terminated": ("terminated", "terminations", "termination", "terminals", "terminal"),
    "truncated": ("truncated", "truncations", "truncation", "timeouts", "timeout"),
    "dones": ("dones", "done"),
    "offsets": ("offsets",),
    "ends": ("episode_ends", "traj_ends", "trajectory_ends"),
    "starts": ("episode_starts", "traj_starts", "trajectory_starts"),
    "ids": (
        "episode_ids", "episode_id", "episode_index",
        "trajectory_ids", "trajectory_id", "traj_ids", "traj_id",
    ),
}  # fmt: skip
"""Our name for a field, and the spellings it is found under. `docs/data-format.md` has the same table.

`dones` is no spelling of `terminated`: it is an end for a reason that is not said, and which of the two it is
decides what a learner believes the last state is worth.
"""

SEGMENTATION = ("offsets", "ends", "starts", "ids")
MISSPELT = 0.85
"""How alike a field's name and a known spelling are before the one is taken for a slip of the other."""


def find_fields(
    present: Iterable[str], fields: Mapping[str, str] | None, source: str | Path | None
) -> dict[str, str]:
    """For each field that is there, the name it has there; `fields` says so where the table cannot."""
    present, chosen = list(present), dict(fields or {})
    for field, name in chosen.items():
        if field not in SPELLINGS:
            near = closest(SPELLINGS, [field])
            raise ConfigError(
                f"There is no field {field!r} to choose.",
                expected=", ".join(SPELLINGS),
                fix=f"did you mean {near!r}?"
                if near
                else "other columns are carried along under their own names",
            )
        if name not in present:
            raise DataError(
                f"The field chosen for {field!r} is not there.",
                file=source,
                field=name,
                found=", ".join(sorted(present)),
            )
    for field, spellings in SPELLINGS.items():
        if field in chosen:
            continue
        names = [name for name in spellings if name in present and name not in chosen.values()]
        if len(names) > 1:
            raise DataError(
                f"Several fields may be the {field}.",
                file=source,
                field=field,
                found=" and ".join(names),
                expected="one of them",
                fix=f"choose: fields={{{field!r}: {names[0]!r}}}",
            )
        if names:
            chosen[field] = names[0]
    segmented = [field for field in SEGMENTATION if field in chosen]
    if len(segmented) > 1:
        raise DataError(
            "Trajectories are told apart in more than one way.",
            file=source,
            found=" and ".join(chosen[field] for field in segmented),
            expected="one of them",
            fix="leave the others out of the file",
        )
    _refuse_misspelt(present, chosen, source)
    return chosen


def _refuse_misspelt(present: list[str], chosen: Mapping[str, str], source: str | Path | None) -> None:
    """A slip in an optional field's name would lose it without a word."""
    spare = [name for name in present if name not in chosen.values()]
    for field in ("next_observations", "rewards", "terminated", "truncated", "dones"):
        if field in chosen:
            continue
        near = closest(spare, SPELLINGS[field], MISSPELT)
        if near is not None:
            raise DataError(
                "A field is spelt in a way that is almost a known one.",
                file=source,
                field=near,
                expected=" or ".join(SPELLINGS[field]),
                fix=f"rename it, or choose it with fields={{{field!r}: {near!r}}}",
            )
