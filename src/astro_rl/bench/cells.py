"""Units of work: typed records that name what they need. Equal work is one cell, whichever tables want it.

    data ──▶ fit (ψ, dynamics, planner) ──▶ variant, reshaped ─┐
      │                                                        ├──▶ augmented ──▶ training, measurement
      └────▶ rival's fit ──────────────────────────────────────┘

A cell's key is a readable name and a hash of everything that decides its result, what it needs included. Two tables
that want the same arm find it under the same key; another setting gives another key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from astro_rl.tasks import get_task

Items = tuple[tuple[str, Any], ...]
"""Settings by path, in alphabetical order: a mapping that can be hashed."""
LearnerName = Literal["iql", "fql", "bc", "td3bc", "rebrac"]


def items(settings: Mapping[str, Any]) -> Items:
    """Nested settings become paths, so that both spellings give one key."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{path}": inner for path, inner in items(value)}
        else:
            flat[name] = tuple(value) if isinstance(value, list) else value
    return tuple(sorted(flat.items()))


@dataclass(frozen=True)
class DataCell:
    """A dataset: a file that lies there, or one that is made, or fetched."""

    kind: ClassVar[str] = "data"
    dataset: str
    episodes: int | None = None
    """Of a made dataset; None: the published number."""
    seed: int = 0
    given: str | None = None
    """A file that is taken as it is. Its name and size count, not its place: a fit refuses other data by itself."""

    @property
    def needs(self) -> tuple[Cell, ...]:
        return ()

    @property
    def name(self) -> str:
        return self.dataset


@dataclass(frozen=True)
class FitCell:
    """ASTRO fitted to a dataset: one ψ, one dynamics model, one planner."""

    kind: ClassVar[str] = "fit"
    data: DataCell
    task: str
    """Says where x and y stand. All goals of a dataset share one fit."""
    preset: str
    settings: Items = ()
    shape: tuple[int, int, int] | None = None
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.data,)

    @property
    def name(self) -> str:
        return f"{self.data.name}-astro"


@dataclass(frozen=True)
class VariantCell:
    """An ablation: what differs from the base fit is fitted, ψ and whatever else does not differ is shared."""

    kind: ClassVar[str] = "variant"
    base: FitCell
    variant: str

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.base,)

    @property
    def name(self) -> str:
        return f"{self.base.data.name}-{self.variant}"


@dataclass(frozen=True)
class ReshapedCell:
    """The base fit with chains of another shape; ψ is shared, and the diffusion models where their horizon stays."""

    kind: ClassVar[str] = "reshaped"
    base: FitCell
    change: Literal["pieces", "horizon", "mask_ratio"]
    value: str
    absolute: bool = False
    """Whether a horizon is so many states, or stands to the base's as it stands to the paper's 160."""

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.base,)

    @property
    def name(self) -> str:
        return f"{self.base.data.name}-{self.change}-{self.value.replace('/', 'to')}"


@dataclass(frozen=True)
class RivalCell:
    """Another method fitted to a dataset."""

    kind: ClassVar[str] = "rival"
    data: DataCell
    task: str
    method: str
    preset: str
    settings: Items = ()
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.data,)

    @property
    def name(self) -> str:
        return f"{self.data.name}-{self.method}"


@dataclass(frozen=True)
class SimulatedCell:
    """A control: the base's own chains, completed by the simulator. Nothing is fitted."""

    kind: ClassVar[str] = "control"
    base: FitCell

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.base,)

    @property
    def name(self) -> str:
        return f"{self.base.data.name}-simulated"


ModelCell = FitCell | VariantCell | ReshapedCell | RivalCell | SimulatedCell


@dataclass(frozen=True)
class AugmentCell:
    """Augmented data of one arm, shared by all goals, learners and seeds."""

    kind: ClassVar[str] = "augment"
    model: ModelCell
    amount: float = 1.0
    """Transitions, in those of the dataset."""
    settings: Items = ()
    """Of generation; ASTRO's base fit alone takes any."""
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.model,)

    @property
    def data(self) -> DataCell:
        return data_of(self.model)

    @property
    def name(self) -> str:
        changed = "".join(f"-{path.split('.')[-1]}-{value}" for path, value in self.settings)
        return f"{self.model.name}{changed}-x{self.amount:g}"


@dataclass(frozen=True)
class TrainCell:
    """One learner on one arm's data for a group of seeds: a row of raw scores."""

    kind: ClassVar[str] = "train"
    data: DataCell
    task: str
    arm: str
    learner: LearnerName
    preset: str
    updates: int
    seeds: tuple[int, ...]
    episodes: int
    settings: Items = ()
    augmented: AugmentCell | None = None
    share: float = 0.5
    """Of a batch, from augmented data."""
    take: float | None = None
    """Of the augmented data no more than so much, in transitions of the dataset."""

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.data,) if self.augmented is None else (self.data, self.augmented)

    @property
    def name(self) -> str:
        first, last = self.seeds[0], self.seeds[-1]
        return f"{get_task(self.task).name}-{self.arm}-{self.learner}-s{first}to{last}".replace("=", "-")


@dataclass(frozen=True)
class GeometryCell:
    """What targets one selection rule picks, and how the paths there turn (table `td_geom`)."""

    kind: ClassVar[str] = "geometry"
    base: FitCell
    rule: str
    pairs: int = 2_000
    """Of a source and its target."""
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.base,)

    @property
    def name(self) -> str:
        return f"{self.base.data.name}-geometry-{self.rule}"


@dataclass(frozen=True)
class CompletionCell:
    """Errors of completing real held-out sequences, and with `augmented` what the simulator says of new ones."""

    kind: ClassVar[str] = "completion"
    model: ModelCell
    arm: str
    sequences: int = 256
    augmented: AugmentCell | None = None
    rows: int = 1_000
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.model,) if self.augmented is None else (self.model, self.augmented)

    @property
    def name(self) -> str:
        return f"{self.model.name}-completion"


@dataclass(frozen=True)
class SelectionCell:
    """How long finding ten chains takes at one threshold and one chain length."""

    kind: ClassVar[str] = "selection"
    base: FitCell
    arm: str
    threshold: float | None = None
    pieces: int | None = None
    batches: int = 20
    seconds: float = 30.0
    """A setting is given up after so long."""
    seed: int = 0

    @property
    def needs(self) -> tuple[Cell, ...]:
        return (self.base,)

    @property
    def name(self) -> str:
        return f"{self.base.data.name}-selection-{self.arm}".replace("=", "-")


Cell = DataCell | ModelCell | AugmentCell | TrainCell | GeometryCell | CompletionCell | SelectionCell
LEAVES = (TrainCell, GeometryCell, CompletionCell, SelectionCell)
"""Cells whose results stand in a table; the others are stages they need."""


def described(cell: Cell) -> dict[str, Any]:
    """Everything that decides the cell's result, in JSON's terms."""
    told: dict[str, Any] = {"kind": cell.kind}
    for name, value in vars(cell).items():
        told[name] = described(value) if isinstance(value, Cell) else value
    if isinstance(cell, DataCell) and cell.given is not None:
        file = Path(cell.given)
        told["given"] = f"{file.name}, {file.stat().st_size} bytes" if file.is_file() else file.name
    return json.loads(json.dumps(told))


def key_of(cell: Cell) -> str:
    """A folder's name: for people, and a hash that keeps apart what they would confuse."""
    told = json.dumps(described(cell), sort_keys=True).encode()
    return f"{cell.kind}-{cell.name}-{hashlib.sha256(told).hexdigest()[:10]}"


def data_of(cell: Cell) -> DataCell:
    """The dataset at the bottom of it."""
    while not isinstance(cell, DataCell):
        cell = cell.needs[0]
    return cell


def in_order(wanted: Iterable[Cell]) -> list[Cell]:
    """All that is wanted and all that it needs, each once, what is needed first."""

    def walk(cell: Cell) -> Iterator[Cell]:
        for needed in cell.needs:
            yield from walk(needed)
        yield cell

    return list(dict.fromkeys(part for cell in wanted for part in walk(cell)))
