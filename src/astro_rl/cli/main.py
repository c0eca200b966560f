"""The command line: parse, call, print. Decisions live in the rooms behind it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from astro_rl.cli.astro import Augment, Fit
from astro_rl.cli.bench import Bench
from astro_rl.cli.data import Data
from astro_rl.cli.diagnose import Doctor
from astro_rl.cli.measure import Measure
from astro_rl.cli.output import command_for_options
from astro_rl.cli.quickstart import Quickstart
from astro_rl.cli.report import Report
from astro_rl.cli.run import Run
from astro_rl.cli.tasks import Tasks
from astro_rl.cli.train import Evaluate, Train
from astro_rl.errors import AstroError

DESCRIPTION = "Trajectory stitching for offline RL: longer, dynamics-consistent data from fragments."
CONFIG = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff)


@dataclass(frozen=True)
class Version:
    """Print the version."""

    def run(self) -> int:
        from importlib.metadata import version

        print(version("astro-rl"))
        return 0


Command = (
    Annotated[Data, subcommand("data", prefix_name=False)]
    | Annotated[Tasks, subcommand("tasks", prefix_name=False)]
    | Annotated[Fit, subcommand("fit", prefix_name=False)]
    | Annotated[Augment, subcommand("augment", prefix_name=False)]
    | Annotated[Run, subcommand("run", prefix_name=False)]
    | Annotated[Measure, subcommand("measure", prefix_name=False)]
    | Annotated[Report, subcommand("report", prefix_name=False)]
    | Annotated[Train, subcommand("train", prefix_name=False)]
    | Annotated[Evaluate, subcommand("evaluate", prefix_name=False)]
    | Annotated[Bench, subcommand("bench", prefix_name=False)]
    | Annotated[Quickstart, subcommand("quickstart", prefix_name=False)]
    | Annotated[Doctor, subcommand("doctor", prefix_name=False)]
    | Annotated[Version, subcommand("version", prefix_name=False)]
)


def parse(arguments: Sequence[str]) -> Any:
    return tyro.cli(Command, prog="astro-rl", description=DESCRIPTION, args=arguments, config=CONFIG)  # type: ignore[call-overload]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. A user's mistake ends in one message and status 1, an interruption in status 130."""
    command = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return command.run()
    except AstroError as error:
        here = command_for_options(error)
        print("\n".join(filter(None, (f"error: {error}", here))), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command continues what can be continued", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; that is its right.
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1


def describe_os_error(error: OSError) -> str:
    where = f"\n  file:     {error.filename}" if error.filename else ""
    return f"The operating system refused: {error.strerror or error}.{where}"


if __name__ == "__main__":
    raise SystemExit(main())
