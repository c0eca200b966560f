"""`astro-rl bench`: the paper's tables as experiment matrices, and tables from raw records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, subcommand

from astro_rl.cli.output import bar, print_json, print_table
from astro_rl.cli.train import parse_settings
from astro_rl.errors import ConfigError

Names = tuple[str, ...]
BenchPresetName = Literal["tiny", "cpu", "paper"]
Given = Annotated[tuple[str, ...], tyro.conf.arg(metavar="DATASET=FILE")]
PartSettings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="PART.NAME=VALUE")]


@dataclass(frozen=True)
class _Matrix:
    """What all tables have in common."""

    out: Path
    """The folder for all of it. Made if it is not there; continued if it is. Tables may share one."""
    preset: BenchPresetName = "cpu"
    """tiny (seconds, to see it work), cpu (two cores, hours to days), paper (the paper's sizes)."""
    tasks: Names = ()
    """Tasks (astro-rl tasks lists them). Default: the preset's."""
    learners: Names = ()
    """Learners. Default: iql and fql for table1 and amount, fql for the others."""
    arms: Names = ()
    """Data settings or rows of the table. Default: the paper's."""
    seeds: int | None = None
    """Training seeds. More of them later add cells and repeat none."""
    updates: int | None = None
    """Updates of each learner, the same for all arms."""
    episodes: int | None = None
    """Evaluation episodes a seed."""
    amount: float | None = None
    """Augmented transitions, in those of the dataset."""
    data: Given = ()
    """Datasets that lie there. Others are made, or fetched where they cannot be."""
    set: PartSettings = ()
    """Method settings that differ from the preset, for example --set astro.dynamics.steps=50000."""
    learner_set: PartSettings = ()
    """Learner settings that differ from the preset, for example --learner-set fql.alpha=3 hidden=[64,64]."""
    workers: int | None = None
    """Processes that step environments. Default: one a core."""
    dry_run: bool = False
    """Print the cells, what each needs and how long it takes, and do nothing."""
    tables_only: bool = False
    """Rebuild the tables from the records that are there, and do nothing else."""
    json: bool = False
    """Print what was done as JSON."""


SCORES = ("scores", "statistics", "overall", "averages", "regimes")
PRINTED = {
    "table1": SCORES,
    "ablation": SCORES,
    "geometry": ("geometry",),
    "completion": ("completion",),
    "selection": ("sweep-threshold", "sweep-pieces"),
    "horizon": ("horizon",),
    "amount": ("sweep-amount", "sweep-share"),
}
"""A command's own tables, of all that its folder holds."""


def run_table(table: str, given: _Matrix) -> int:
    """All of a table's cells, then the tables of the folder."""
    from astro_rl.bench.matrix import matrix_for
    from astro_rl.bench.presets import Choice
    from astro_rl.bench.runner import run_matrix
    from astro_rl.run.devices import use_all_cores

    if given.tables_only:
        return show((given.out,), given.out / "tables", given.json, table)
    choice = Choice(
        tasks=given.tasks,
        learners=given.learners,
        arms=given.arms,
        seeds=given.seeds,
        updates=given.updates,
        episodes=given.episodes,
        amount=given.amount,
        data=files_of(given.data),
        method_settings=by_part(given.set, "set", whole=False),
        learner_settings=by_part(given.learner_set, "learner-set", whole=True),
    )
    matrix = matrix_for(table, given.preset, choice)
    use_all_cores()
    if given.dry_run:
        return dry_run(matrix, given.out, given.json)
    say = (lambda text: None) if given.json else print
    outcome = run_matrix(matrix, given.out, bar=bar, say=say, workers=given.workers)
    show((given.out,), given.out / "tables", given.json, table, {"cells": dict(outcome.status)})
    bad = outcome.count("failed") + outcome.count("blocked")
    if bad and not given.json:
        print(
            f"{bad} of {len(outcome.status)} cells failed or were left out; the same command tries them again"
        )
    return 1 if bad else 0


def dry_run(matrix: Any, out: Path, as_json: bool) -> int:
    from astro_rl.bench.cells import key_of
    from astro_rl.bench.estimate import GPU_ASSUMPTION, estimate
    from astro_rl.bench.runner import pending, status_of

    left = pending(matrix, out)
    costs = estimate(left, say=(lambda text: None) if as_json else print)
    totals = {
        "here": sum(cost.here for cost in costs.values()),
        "gpu": sum(cost.gpu for cost in costs.values()),
    }
    if as_json:
        cells = [
            {
                "key": key_of(cell),
                "status": status_of(cell, out),
                "needs": [key_of(need) for need in cell.needs],
                "seconds_here": round(costs[key_of(cell)].here, 1) if key_of(cell) in costs else 0.0,
                "seconds_gpu": round(costs[key_of(cell)].gpu, 1) if key_of(cell) in costs else 0.0,
            }
            for cell in matrix.cells
        ]
        print_json({"table": matrix.table, "cells": cells, "seconds": totals, "gpu": GPU_ASSUMPTION})
        return 0
    numbers = {key_of(cell): number for number, cell in enumerate(matrix.cells, start=1)}
    rows = []
    for cell in matrix.cells:
        cost = costs.get(key_of(cell))
        rows.append(
            (
                numbers[key_of(cell)],
                key_of(cell),
                " ".join(str(numbers[key_of(need)]) for need in cell.needs),
                status_of(cell, out),
                "" if cost is None else duration(cost.here),
                "" if cost is None else duration(cost.gpu),
                "" if cost is None else cost.what,
            )
        )
    print_table(
        f"{matrix.table}, {matrix.preset.name}",
        ("", "cell", "needs", "status", "here", "GPU", "what"),
        rows,
    )
    print(
        f"{len(left)} of {len(rows)} cells to do: {duration(totals['here'])} here, {duration(totals['gpu'])} on a GPU"
    )
    print(
        "Here: arithmetic counted, speed measured on a few updates under the load of now; compiling is not in it."
    )
    print(GPU_ASSUMPTION)
    return 0


def show(
    places: tuple[Path, ...],
    out: Path | None,
    as_json: bool,
    only: str | None = None,
    extra: dict[str, Any] | None = None,
) -> int:
    """Tables of all that has been recorded: all are written, those of one command printed."""
    from astro_rl.bench.records import read
    from astro_rl.bench.render import markdown, write
    from astro_rl.bench.tables import tables_of

    tables = tables_of(read(places))
    written = [] if out is None else write(tables, out)
    if only is not None:
        tables = [table for table in tables if table.name in (*PRINTED[only], "failed")]
    if as_json:
        told = {
            table.name: {"header": list(table.header), "rows": [list(row) for row in table.rows]}
            for table in tables
        }
        print_json({**(extra or {}), "tables": told, "files": [str(path) for path in written]})
        return 0
    if not tables:
        print("nothing has been recorded yet")
    for table in tables:
        if out is None:
            print(markdown(table))
        else:
            print_table(table.title, table.header, table.rows)
    if written:
        print(f"as Markdown, CSV and LaTeX in {out}")
    return 0


def files_of(given: Names) -> dict[str, str]:
    found = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not equals or not file:
            raise ConfigError(
                "A dataset and its file were expected.", field="data", found=pair, expected="NAME=FILE"
            )
        if not Path(file).exists():
            raise ConfigError("There is no such file.", field="data", file=file)
        found[name] = file
    return found


def by_part(given: Names, field: str, *, whole: bool) -> dict[str, dict[str, Any]]:
    """`fql.alpha=3` belongs to fql. A name alone belongs to all parts where there is such a thing, else to ASTRO."""
    known = ("iql", "fql", "bc", "td3bc", "rebrac") if whole else ("astro", "diffstitch", "synther")
    found: dict[str, dict[str, Any]] = {}
    for name, value in parse_settings(given).items():
        part, _, rest = name.partition(".")
        if part in known and not rest:
            raise ConfigError("A setting of this part was expected.", field=field, found=name)
        owner = part if part in known else ("" if whole else "astro")
        found.setdefault(owner, {})[rest if part in known else name] = value
    return found


def duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"


@dataclass(frozen=True)
class Table1(_Matrix):
    """Scores of original, ASTRO, DiffStitch and SynthER data under IQL and FQL (the paper's table 1)."""

    def run(self) -> int:
        return run_table("table1", self)


@dataclass(frozen=True)
class Ablation(_Matrix):
    """Scores of ASTRO's ablations under FQL (table 2); --arms names ours too."""

    def run(self) -> int:
        return run_table("ablation", self)


@dataclass(frozen=True)
class Geometry(_Matrix):
    """How paths turn at targets that different rules select (table 3). Trains no learner."""

    def run(self) -> int:
        return run_table("geometry", self)


@dataclass(frozen=True)
class Completion(_Matrix):
    """Errors of completing held-out sequences, and dynamics violations (table 4). Trains no learner."""

    def run(self) -> int:
        return run_table("completion", self)


@dataclass(frozen=True)
class Selection(_Matrix):
    """Filter threshold and chain length: scores and search times (table 6 a, b)."""

    def run(self) -> int:
        return run_table("selection", self)


@dataclass(frozen=True)
class Horizon(_Matrix):
    """Horizon and mask ratio: completion errors (table 6 c, d). Trains no learner."""

    def run(self) -> int:
        return run_table("horizon", self)


@dataclass(frozen=True)
class Amount(_Matrix):
    """Amount of augmented data and its share of a batch: scores. Not in the paper, which gives neither."""

    def run(self) -> int:
        return run_table("amount", self)


@dataclass(frozen=True)
class Show:
    """Tables from raw records alone: folders of astro-rl bench, or files of JSON lines as benchmarks.helps writes."""

    places: Positional[tuple[Path, ...]]
    """Folders and files, put together."""
    out: Path | None = None
    """A folder for the tables as Markdown, CSV and LaTeX. Default: print Markdown."""
    json: bool = False
    """Print the tables as JSON."""

    def run(self) -> int:
        if not self.places:
            raise ConfigError("Nothing was named.", field="places", expected="folders or files of records")
        return show(self.places, self.out, self.json)


@dataclass(frozen=True)
class Bench:
    """The paper's tables as experiment matrices, each with --dry-run; the same command continues what was stopped."""

    command: Annotated[
        Annotated[Table1, subcommand("table1", prefix_name=False)]
        | Annotated[Ablation, subcommand("ablation", prefix_name=False)]
        | Annotated[Geometry, subcommand("geometry", prefix_name=False)]
        | Annotated[Completion, subcommand("completion", prefix_name=False)]
        | Annotated[Selection, subcommand("selection", prefix_name=False)]
        | Annotated[Horizon, subcommand("horizon", prefix_name=False)]
        | Annotated[Amount, subcommand("amount", prefix_name=False)]
        | Annotated[Show, subcommand("show", prefix_name=False)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        return self.command.run()
