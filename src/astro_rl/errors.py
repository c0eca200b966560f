"""Errors a user can act on: what is wrong, where, what was found, what was expected, and what to do."""

from __future__ import annotations

from pathlib import Path


class AstroError(Exception):
    """A user's mistake or an outside fault, told in one message. The command line prints it without a traceback.

    Every part is optional but the first, and each has its place in the text, so that no message forgets to say
    which file and which field it is about.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        field: str | None = None,
        found: object = None,
        expected: object = None,
        fix: str | None = None,
    ) -> None:
        self.what, self.file, self.field = what, None if file is None else str(file), field
        self.found, self.expected, self.fix = found, expected, fix
        lines = [what]
        if file is not None:
            lines.append(f"  file:     {file}")
        if field is not None:
            lines.append(f"  field:    {field}")
        if found is not None:
            lines.append(f"  found:    {found}")
        if expected is not None:
            lines.append(f"  expected: {expected}")
        if fix is not None:
            lines.append(f"  fix:      {fix}")
        super().__init__("\n".join(lines))


class DataError(AstroError):
    """A dataset, or a file that should hold one, is not what it has to be."""


class ConfigError(AstroError):
    """A setting is unknown, contradicts another one, or would have no effect."""


class MissingDependency(AstroError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed.",
            fix=f"pip install 'astro-rl[{extra}]'",
        )


class TrainingError(AstroError):
    """Training cannot go on, for example because a loss is no longer finite."""


class UnavailableError(AstroError):
    """What was asked for cannot be done for this task, and the message says why."""
