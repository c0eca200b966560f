"""The command line is a promise: commands, options, their types and defaults change on purpose or not at all.

After a change that is meant: `python -m tests.cli.test_surface` writes the surface anew.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from astro_rl.cli.main import Command

FROZEN = Path(__file__).with_name("surface.txt")


def commands_in(kind: Any, prefix: str) -> Iterator[tuple[str, type]]:
    """Every command of a union of dataclasses, by its full name; groups of commands are descended into."""
    for member in get_args(kind):
        record, *notes = get_args(member) if get_origin(member) is Annotated else (member,)
        name = " ".join([prefix, *(note.name for note in notes if getattr(note, "name", None))])
        hints = get_type_hints(record, include_extras=True)
        group = hints.get("command")
        if group is not None:
            union = get_args(group)[0] if get_origin(group) is Annotated else group
            assert get_origin(union) in (Union, UnionType)
            yield from commands_in(union, name)
        else:
            yield name, record


def surface() -> str:
    lines = []
    for name, record in sorted(commands_in(Command, "astro-rl"), key=lambda pair: pair[0]):
        lines.append(name)
        for field in dataclasses.fields(record):
            default = "required" if field.default is dataclasses.MISSING else repr(field.default)
            lines.append(f"  {field.name}: {field.type} = {default}")
    return "\n".join(lines) + "\n"


def test_the_command_line_is_what_was_frozen() -> None:
    assert surface() == FROZEN.read_text(), "if this is meant: python -m tests.cli.test_surface"


def test_every_command_and_option_says_what_it_is_for() -> None:
    import inspect

    for name, record in commands_in(Command, "astro-rl"):
        assert record.__doc__, name
        assert not record.__doc__.startswith(record.__name__ + "("), f"{name} has no docstring of its own"
        # With the options that a group of commands shares.
        records = [base for base in record.__mro__ if dataclasses.is_dataclass(base)]
        source = "".join(map(inspect.getsource, records))
        for field in dataclasses.fields(record):
            documented = source.split(f"    {field.name}:", 1)[1].split("\n", 1)[1].lstrip()
            assert documented.startswith('"""') or field.name in OBVIOUS, (
                f"{name}: {field.name} is not explained"
            )


OBVIOUS = {"learner", "preset"}

if __name__ == "__main__":
    FROZEN.write_text(surface())
