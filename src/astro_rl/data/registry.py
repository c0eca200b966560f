"""Every format under one name, told apart by content. Modules are imported when first needed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from astro_rl.data.checks import closest
from astro_rl.data.columns import Progress
from astro_rl.data.schema import Dataset
from astro_rl.data.store import convert_to_store
from astro_rl.errors import ConfigError, DataError


@dataclass(frozen=True)
class Format:
    """A module with `recognises(path)`, `read(path, **options)` and `write(dataset, path, **options)`."""

    name: str
    module: str
    suffixes: tuple[str, ...] = ()
    """Destinations with these suffixes are written in this format when none is named."""

    def recognises(self, path: Path) -> bool:
        return self._module().recognises(path)

    def read(self, path: Path, **options: Any) -> Dataset:
        reader = self._module().read
        self._refuse_unknown(reader, options, "read")
        return reader(path, **options)

    def write(self, dataset: Dataset, path: Path, **options: Any) -> None:
        writer = self._module().write
        self._refuse_unknown(writer, options, "write")
        writer(dataset, path, **options)

    def reads_into_a_space(self) -> bool:
        """Whether the reader can land its columns on disk instead of in memory."""
        return "space" in _named_options(self._module().read)

    def accepts(self, option: str, to: str = "read") -> bool:
        function = getattr(self._module(), to)
        return option in _named_options(function) or _takes_any(function)

    def _module(self) -> Any:
        return importlib.import_module(self.module)

    def _refuse_unknown(self, function: Callable[..., Any], options: dict[str, Any], doing: str) -> None:
        known = _named_options(function)
        if _takes_any(function):
            return
        for option in options:
            if option not in known:
                near = closest(known, [option])
                raise ConfigError(
                    f"The format {self.name!r} has no option {option!r} to {doing} with.",
                    expected=", ".join(sorted(known - {"space"})) or "no options",
                    fix=f"did you mean {near!r}?" if near else None,
                )


def _named_options(function: Callable[..., Any]) -> set[str]:
    kinds = inspect.signature(function).parameters
    return {name for name, parameter in kinds.items() if parameter.kind is parameter.KEYWORD_ONLY}


def _takes_any(function: Callable[..., Any]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


FORMATS: tuple[Format, ...] = (
    Format("store", "astro_rl.data.formats.store", (".astro",)),
    Format("minari", "astro_rl.data.formats.minari"),
    Format("ogbench", "astro_rl.data.formats.ogbench", (".npz",)),
    Format("d4rl", "astro_rl.data.formats.d4rl"),
    Format("plain-npz", "astro_rl.data.formats.plain_npz"),
    Format("plain-hdf5", "astro_rl.data.formats.plain_hdf5", (".hdf5", ".h5")),
)
"""In the order in which they are asked whether they recognise a file: the strict before the lenient."""


def read_options() -> set[str]:
    """The names of all options that some format's reader takes."""
    return set().union(*(_named_options(format._module().read) for format in FORMATS)) - {"space", "progress"}


def format_named(name: str) -> Format:
    for format in FORMATS:
        if format.name == name:
            return format
    names = [format.name for format in FORMATS]
    near = closest(names, [name])
    raise ConfigError(
        f"There is no format {name!r}.",
        expected=", ".join(names),
        fix=f"did you mean {near!r}?" if near else None,
    )


def format_of(path: Path) -> Format:
    """The format of what is at `path`, told from its content; its suffix is not looked at."""
    if not path.exists():
        raise _not_there(path)
    for format in FORMATS:
        if format.recognises(path):
            return format
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.suffix in (".npz", ".hdf5", ".h5", ".astro"))
        raise DataError(
            "The folder is not a dataset.",
            file=path,
            found=f"a folder with {', '.join(inside[:5])}" if inside else "a folder without any dataset",
            expected="a store (with manifest.json) or a Minari dataset (with data/main_data.hdf5)",
            fix=f"give the file: {path / inside[0]}" if inside else None,
        )
    with path.open("rb") as file:
        start = file.read(8)
    raise DataError(
        "The file is in no known format.",
        file=path,
        found=_looks_like(start, path),
        expected="an .npz archive, an HDF5 file or a store",
        fix="np.savez(path, observations=…, actions=…, …) writes a file that can be read",
    )


def _looks_like(start: bytes, path: Path) -> str:
    if not start:
        return "an empty file"
    if start.startswith(b"\x93NUMPY"):
        return "one .npy array, where several columns are needed"
    if start[:1] == b"\x80" or path.suffix in (".pkl", ".pickle", ".pt", ".pth"):
        return "a pickle, which is never loaded because that runs code"
    return f"a file that starts with {start!r}"


def _not_there(path: Path) -> DataError:
    near = None
    if path.parent.is_dir():
        near = closest(
            (p.name for p in path.parent.iterdir() if not p.name.startswith(".")), [path.name], 0.8
        )
    return DataError(
        "There is no such file.",
        file=path,
        fix=f"did you mean {path.with_name(near)}?"
        if near
        else "astro-rl data make or data fetch gets datasets",
    )


def load(path: str | Path, *, format: str | None = None, **options: Any) -> Dataset:
    """The dataset at `path`. A store is memory-mapped; everything else is read, checked and held in memory.

    The format is told from the content unless it is named. Options are those of the format's reader, for most
    of them `expand_limit_bytes`, `drop_short`, `actions_outside` and `action_range`.
    """
    path = Path(path)
    chosen = format_named(format) if format is not None else format_of(path)
    if not path.exists():
        raise _not_there(path)
    try:
        return chosen.read(path, **options)
    except MemoryError as error:
        raise DataError(
            "The dataset does not fit in memory.",
            file=path,
            fix=f"use a memory-mapped store: astro-rl data convert {path.name} {path.stem}.astro",
        ) from error


def save(
    dataset: Dataset, path: str | Path, *, format: str | None = None, overwrite: bool = False, **options: Any
) -> None:
    """Write the dataset. Unless named, the suffix decides: .astro store, .npz OGBench, .hdf5 plain HDF5."""
    path = Path(path)
    chosen = format_named(format) if format is not None else _format_for(path)
    chosen.write(dataset, path, overwrite=overwrite, **options)


def require_format(path: Path, format: str | None = None) -> None:
    """Refuses a destination that could not be written to once there is something to write."""
    chosen = format_named(format) if format is not None else _format_for(path)
    if chosen.name == "ogbench" and path.suffix != ".npz":
        raise ConfigError(
            "OGBench finds validation data by the name NAME-val.npz, so the file has to be NAME.npz.",
            found=path.name,
            expected="a name that ends in .npz",
        )


def _format_for(path: Path) -> Format:
    for format in FORMATS:
        if path.suffix in format.suffixes:
            return format
    raise ConfigError(
        "The destination's suffix does not say which format to write.",
        found=repr(path.suffix),
        expected=", ".join(suffix for format in FORMATS for suffix in format.suffixes),
        fix=f'name it: format="store", or one of {", ".join(f.name for f in FORMATS)}',
    )


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    source_format: str | None = None,
    format: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    read_options: dict[str, Any] | None = None,
    write_options: dict[str, Any] | None = None,
) -> None:
    """Read one file and write another. Into a store, and out of one, memory does not grow with the data."""
    source, destination = Path(source), Path(destination)
    reading = format_named(source_format) if source_format is not None else format_of(source)
    writing = format_named(format) if format is not None else _format_for(destination)
    if source.exists() and destination.exists() and source.resolve() == destination.resolve():
        raise DataError("Source and destination are the same.", file=source, fix="give another destination")
    options, told = dict(read_options or {}), dict(write_options or {})
    if writing.name == "store" and reading.reads_into_a_space() and not told:
        convert_to_store(
            lambda space: reading.read(source, space=space, **options),
            destination,
            overwrite=overwrite,
            progress=progress,
        )
        return
    dataset = load(source, format=reading.name, **options)
    if progress is not None and writing.accepts("progress", "write"):
        told["progress"] = progress
    save(dataset, destination, format=writing.name, overwrite=overwrite, **told)
