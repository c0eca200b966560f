"""`astro-rl data`: inspect, make, fetch, convert, merge and list datasets."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, subcommand

from astro_rl.cli.output import bar, print_json, print_table
from astro_rl.cli.train import parse_settings
from astro_rl.errors import ConfigError

FormatName = Literal["store", "ogbench", "d4rl", "minari", "plain-npz", "plain-hdf5"]
ReadOptions = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")]


@dataclass(frozen=True)
class Inspect:
    """Say what a dataset holds: lengths, ranges, rewards, successes, teleports, idling, constant and equal columns."""

    file: Positional[Path]
    """A file, a Minari folder or a store."""
    task: tuple[str, ...] = ()
    """Tasks whose successes to count. Default: those of the dataset's own name, if the table knows it."""
    format: FormatName | None = None
    """How to read the file. Default: told from its content."""
    read: ReadOptions = ()
    """Options for reading, for example --read layout=rows close_last=true (docs/data-format.md lists them)."""
    verify: bool = False
    """Recompute a store's digest from every byte."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from astro_rl.data import load, verify_store
        from astro_rl.data.inspection import inspect_dataset
        from astro_rl.tasks import get_task, tasks_of_dataset

        if self.verify:
            with bar("verifying", 1, "rows") as report:
                verify_store(self.file, progress=report)
        dataset = load(self.file, format=self.format, **parse_settings(self.read))
        named = [get_task(name) for name in self.task] or tasks_of_dataset(
            self.file.stem.removesuffix("-val")
        )
        fitting = [task for task in named if task.observation_dim == dataset.observation_dim]
        if len(fitting) < len(self.task):
            odd = next(task for task in named if task not in fitting)
            raise ConfigError(
                f"The dataset does not belong to the task {odd.name}.",
                file=self.file,
                found=f"observations of {dataset.observation_dim} numbers",
                expected=f"{odd.observation_dim}",
            )
        with bar("inspecting", dataset.n_rows, "rows") as report:
            found = inspect_dataset(
                dataset,
                task_successes={task.name: task.rewards.success for task in fitting},
                position_columns=fitting[0].xy_indices if fitting else None,
                progress=report,
            )
        if self.json:
            print(found.to_json())
            return 0
        print_table(str(self.file), ("", ""), found.table())
        print_table(None, ("column", "low", "high", "mean", "std"), found.ranges())
        if found.reward_histogram is not None:
            edges, counts = found.reward_histogram.edges, found.reward_histogram.counts
            names = (
                [f"{edge:g}" for edge in edges]
                if len(edges) == len(counts)
                else [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
            )
            print_table(
                None, ("reward", "transitions"), list(zip(names, map("{:,}".format, counts), strict=True))
            )
        return 0


@dataclass(frozen=True)
class Make:
    """Make an OGBench dataset by simulation, with OGBench's own environments and scripted controllers.

    Nothing is downloaded. Any number of episodes, seeded, in parallel; the same command continues after an
    interruption.
    """

    name: Positional[str]
    """A dataset's name, such as antmaze-medium-stitch-v0 (astro-rl data list)."""
    out: Path = Path("data")
    """The folder for NAME.npz and NAME-val.npz."""
    episodes: int | None = None
    """Training episodes. Default: the published number."""
    val_episodes: int | None = None
    """Validation episodes. Default: a tenth of the training episodes."""
    seed: int = 0
    """The files' bytes follow from name, numbers and seed."""
    workers: int | None = None
    """Processes. Default: one a core."""
    format: Literal["ogbench", "store"] = "ogbench"
    """How to write it."""
    overwrite: bool = False
    """Replace files that are there already."""

    def run(self) -> int:
        from astro_rl.collect import make_dataset

        with bar(f"making {self.name}", self.episodes or 1, "episodes") as report:
            train, val = make_dataset(
                self.name,
                out=self.out,
                episodes=self.episodes,
                val_episodes=self.val_episodes,
                seed=self.seed,
                workers=self.workers,
                format=self.format,
                overwrite=self.overwrite,
                progress=report,
            )
        print(train)
        print(val)
        return 0


@dataclass(frozen=True)
class Fetch:
    """Download a dataset: official host first, then mirrors; resumed, verified, never half there."""

    name: Positional[str]
    """A dataset's name, such as humanoidmaze-medium-stitch-v0."""
    out: Path = Path("data")
    """The folder for the files."""
    any_size: bool = False
    """Accept files with other numbers of rows than were published."""

    def run(self) -> int:
        from astro_rl.data.fetch import fetch

        with bar(f"fetching {self.name}", 1, "bytes") as report:
            files = fetch(self.name, self.out, any_size=self.any_size, progress=report)
        for file in files:
            print(file)
        return 0


@dataclass(frozen=True)
class Convert:
    """Read a dataset in one format and write it in another. Into a store memory does not grow with the data."""

    source: Positional[Path]
    """The dataset to read."""
    destination: Positional[Path]
    """Where to write it: NAME.astro is a store, NAME.npz an OGBench file, NAME.hdf5 plain HDF5."""
    source_format: FormatName | None = None
    """How to read. Default: told from the content."""
    format: FormatName | None = None
    """How to write. Default: told from the destination's suffix."""
    drop_short: bool = False
    """Leave out trajectories without a transition instead of refusing the data."""
    actions_outside: Literal["refuse", "clip", "rescale"] = "refuse"
    """What to do with actions outside [-1, 1]."""
    expand_limit_gib: float | None = None
    """Refuse archives that would expand past this."""
    observation_keys: tuple[str, ...] = ()
    """Minari dictionary observations: which keys to join, in order."""
    read: ReadOptions = ()
    """Other options for reading, for example --read layout=rows dones_mean=truncated 'fields={"actions": "u"}'
    (docs/data-format.md lists them)."""
    overwrite: bool = False
    """Replace the destination if it is there already."""

    def run(self) -> int:
        from astro_rl.data import convert

        options: dict[str, Any] = parse_settings(self.read)
        if self.drop_short:
            options["drop_short"] = True
        if self.actions_outside != "refuse":
            options["actions_outside"] = self.actions_outside
        if self.expand_limit_gib is not None:
            options["expand_limit_bytes"] = int(self.expand_limit_gib * 2**30)
        if self.observation_keys:
            options["observation_keys"] = self.observation_keys
        convert(
            self.source,
            self.destination,
            source_format=self.source_format,
            format=self.format,
            overwrite=self.overwrite,
            read_options=options,
        )
        print(self.destination)
        return 0


@dataclass(frozen=True)
class Merge:
    """Put datasets into one, such as recorded and augmented data, for training code that reads one file.

    Columns that only some of them have are left out, and named.
    """

    sources: Positional[tuple[Path, ...]]
    """The datasets, in order."""
    out: Path
    """Where to write: NAME.astro is a store, NAME.npz an OGBench file, NAME.hdf5 plain HDF5."""
    task: str | None = None
    """Give all of them this task's rewards and ends."""
    format: FormatName | None = None
    """How to write. Default: told from the destination's suffix."""
    overwrite: bool = False
    """Replace the destination if it is there already."""

    def run(self) -> int:
        from astro_rl.data import load, save
        from astro_rl.data.join import merged
        from astro_rl.tasks import get_task, relabel

        datasets = [load(path) for path in self.sources]
        if self.task is not None:
            task = get_task(self.task)
            datasets = [relabel(dataset, task) for dataset in datasets]
        whole, dropped = merged(datasets)
        save(whole, self.out, format=self.format, overwrite=self.overwrite)
        print(f"{self.out}: {whole.n_trajectories:,} trajectories, {whole.n_transitions:,} transitions")
        if dropped:
            print(f"left out, not in all of them: {', '.join(dropped)}")
        return 0


@dataclass(frozen=True)
class List:
    """List the datasets known by name, and how each is to be had."""

    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from astro_rl.data.catalogue import KNOWN

        rows = []
        for known in KNOWN.values():
            recipe = known.recipe
            made = recipe is not None and recipe.makeable
            rows.append(
                {
                    "name": known.name,
                    "suite": known.suite,
                    "rows": known.rows[0] if known.rows else None,
                    "make": made,
                    "fetch": bool(known.remote_files),
                    "why_not_made": None if made or recipe is None else recipe.why_not,
                }
            )
        if self.json:
            print_json(rows)
            return 0
        table = [
            (
                r["name"],
                f"{r['rows']:,}" if r["rows"] else "",
                "make" if r["make"] else "",
                "fetch" if r["fetch"] else "by hand",
            )
            for r in rows
        ]
        print_table(None, ("dataset", "rows", "astro-rl data", "astro-rl data"), table)
        return 0


@dataclass(frozen=True)
class Data:
    """Datasets: inspect, make, fetch, convert, merge, list."""

    command: Annotated[
        Annotated[Inspect, subcommand("inspect", prefix_name=False)]
        | Annotated[Make, subcommand("make", prefix_name=False)]
        | Annotated[Fetch, subcommand("fetch", prefix_name=False)]
        | Annotated[Convert, subcommand("convert", prefix_name=False)]
        | Annotated[Merge, subcommand("merge", prefix_name=False)]
        | Annotated[List, subcommand("list", prefix_name=False)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        return self.command.run()
