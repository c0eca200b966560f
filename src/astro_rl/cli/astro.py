"""`astro-rl fit` and `astro-rl augment`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from astro_rl.cli.output import bar, print_json, print_table
from astro_rl.cli.train import parse_settings
from astro_rl.errors import ConfigError

if TYPE_CHECKING:
    from astro_rl.data import Dataset

FitPreset = Literal["auto", "tiny", "cpu", "paper"]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")]


@dataclass(frozen=True)
class Fit:
    """Fit ASTRO to a dataset (temporal distances, chain shape, dynamics model, stitch planner), or a rival method.

    The same command continues a fit that was stopped. Presets: tiny (seconds, to look around), cpu (two cores, up to
    an hour), paper (an accelerator, hours), auto (cpu, or paper where there is an accelerator).
    """

    data: Positional[Path]
    """The dataset: a file or store in any format that `astro-rl data inspect` reads."""
    out: Path
    """The fit's folder. Made if it is not there; continued if it is."""
    task: str | None = None
    """The task the data belongs to: says where x and y stand. Not needed."""
    method: str = "astro"
    """What is fitted: astro, or a rival to compare it with, synther or diffstitch. augment sees which it was."""
    preset: FitPreset = "auto"
    set: Settings = ()
    """Settings that differ from the preset, for example --set dynamics.steps=50000 generate.mode=rollout."""
    shape: tuple[int, int, int] | None = None
    """Pieces of a chain, states in a piece (l), masked states behind each (M). Default: read off the data."""
    seed: int = 0
    """Same seed, same weights."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        if self.method != "astro":
            from astro_rl.cli.methods import fit_rival

            return fit_rival(self)
        from dataclasses import asdict

        from astro_rl.astro import Astro
        from astro_rl.data import load

        stitcher = Astro.fit(
            load(self.data),
            preset=self.preset,
            task=self.task,
            shape=self.shape,
            settings=parse_settings(self.set),
            seed=self.seed,
            out=self.out,
            bar=bar,
        )
        models = stitcher.models
        if self.json:
            print_json(
                {
                    "folder": str(self.out),
                    "shape": asdict(models.shape),
                    "why": models.why,
                    "slowness": models.gauge.slowness,
                    "discount": models.temporal.discount,
                    "limits": models.limits.as_json(),
                    "models_digest": models.digest(),
                }
            )
            return 0
        limits = models.limits
        rows = [
            ("chain", models.why),
            ("pace", f"{models.gauge.slowness:.2f} data steps a learned step"),
            (
                "δ of real windows",
                f"median {limits.at('deviation', 0.5):.3g}, 99 % {limits.at('deviation', 0.99):.3g}",
            ),
            ("their step error", f"median {limits.at('step_error', 0.5):.3g} typical steps"),
            ("their junctions", f"median {limits.at('jump', 0.5):.3g} typical steps apart"),
        ]
        print_table(None, ("", ""), rows)
        print(
            f"everything lies in {self.out}; next: astro-rl augment {self.out} {self.data} --transitions N --out FILE"
        )
        return 0


@dataclass(frozen=True)
class Augment:
    """Make augmented data from a fit: stitched trajectories, each state and action checked, with lineage. A fit of
    another method makes that method's data.

    The same command continues where it was stopped, and returns at once if its file is there.
    """

    fit: Positional[Path]
    """A folder that `astro-rl fit` has finished."""
    data: Positional[Path]
    """The dataset that was fitted."""
    transitions: int
    """How many new transitions, at least; trajectories stay whole."""
    out: Path
    """The file. Its suffix decides the format: .astro store, .npz OGBench, .hdf5 plain HDF5; or see --format."""
    task: str | None = None
    """The task whose rewards the new data gets. Without one they come from a model of the dataset's own, if it has
    any."""
    format: Literal["store", "ogbench", "d4rl", "minari", "plain-npz", "plain-hdf5"] | None = None
    """The format, where the suffix does not say it."""
    set: Settings = ()
    """Settings that differ from the fit's, for example --set search.threshold=4 sampling.plan_steps=20."""
    seed: int = 0
    """Same seed, same bytes."""
    rounds: int = 1
    """Above 1: chains of later rounds come from the dataset and what rounds before have added. ASTRO's alone."""
    overwrite: bool = False
    """Replace another file at the destination."""
    json: bool = False
    """Print the account as JSON."""

    def run(self) -> int:
        from astro_rl.astro import Astro
        from astro_rl.data import load
        from astro_rl.run.models import method_of

        if self.fit.is_file():
            raise ConfigError(
                "First the fit's folder, then the dataset.",
                found=f"{self.fit} is a file",
                fix="astro-rl augment FIT DATA --transitions N --out FILE",
            )
        if method_of(self.fit) != "astro":
            from astro_rl.cli.methods import augment_rival

            return self.tell(augment_rival(self))
        stitcher = Astro.load(self.fit, load(self.data), task=self.task)
        made = stitcher.augment(
            self.transitions,
            out=self.out,
            format=self.format,
            overwrite=self.overwrite,
            settings=parse_settings(self.set),
            seed=self.seed,
            rounds=self.rounds,
            bar=bar,
        )
        return self.tell(made)

    def tell(self, made: Dataset) -> int:
        told = dict(made.info.get("lineage", {}))
        account = {name: told[name] for name in ("chains", "completions") if name in told}
        if self.json:
            sizes = {"trajectories": len(made), "transitions": made.n_transitions}
            print_json({"file": str(self.out), **sizes, **account})
            return 0
        print(f"{len(made):,} trajectories, {made.n_transitions:,} transitions in {self.out}")
        print_accounts(account)
        return 0


def print_accounts(account: dict) -> None:
    """Proposals, and what became of them."""
    rows = []
    for what, counts in account.items():
        if not counts["proposed"]:
            continue  # a method without chains
        rows.append((what, "proposed", f"{counts['proposed']:,}"))
        rows.append(("", "kept", f"{counts['kept']:,}"))
        if counts["cut"]:
            rows.append(("", "of these without their junction", f"{counts['cut']:,}"))
        rows += [("", f"rejected: {reason}", f"{count:,}") for reason, count in counts["rejected"].items()]
    if rows:
        print_table(None, ("", "", "number"), rows)
