"""What a method that augments datasets is: fitted to one, it proposes batches without end.

    Augmenter  ── fit(dataset) ──▶  FittedAugmenter  ── propose(dataset) ──▶  Proposer  ── batch(0), batch(1), …

Files are `run.methods`' affair: a fitted method says what its networks and its description are, and can be made again
from them (`Method.restore` in `registry`). Batch k depends on models, data, task, settings, seed and k alone, so that
batches can be made again after a kill, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from astro_rl.augment.fitting import Bar, Keeper, no_bar
from astro_rl.augment.generate import GeneratedBatch
from astro_rl.data.schema import Dataset
from astro_rl.tasks.task import Task

ReadWeights = Callable[[str, Any], Any]
"""(name of a network, template in its structure) to the network with its saved weights."""


@runtime_checkable
class Proposer(Protocol):
    """Endless batches of augmented data, each with the account of what was proposed, kept and rejected.

    `batch(k).dataset` is None where nothing passed. It has the columns `source_trajectory` and `source_step` (−1 where
    generated), besides others of the method's own; every batch has the same columns. Methods without chains leave that
    account empty, and `starts` with no rows.
    """

    def batch(self, number: int) -> GeneratedBatch: ...

    @property
    def give_up_after(self) -> int:
        """Batches in a row that may keep nothing."""
        ...

    @property
    def reward_quality(self) -> Mapping[str, float] | None:
        """How well a learned reward model does on data that it has not seen; None where there is none."""
        ...

    @property
    def cures(self) -> Mapping[str, str]:
        """What to change, by the reason that dominates the rejections: the fix of the error where nothing passes."""
        ...


@runtime_checkable
class FittedAugmenter(Protocol):
    """A method that has seen its dataset. It holds no data: `propose` is given it again."""

    @property
    def method(self) -> str:
        """Its name in `registry.METHODS`."""
        ...

    @property
    def source_digest(self) -> str:
        """`augment.lineage.source_digest` of the dataset that it was fitted to."""
        ...

    def digest(self) -> str:
        """SHA-256 over all weights (`augment.models.weights_digest`)."""
        ...

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> Proposer: ...

    def lineage(self) -> dict[str, Any]:
        """All that decides batches besides weights, source, task and seed, as JSON has it. An entry `columns` names the
        extra columns of the data."""
        ...

    def networks(self) -> Mapping[str, Any]:
        """All weights, by the names of the files they are saved in."""
        ...

    def description(self) -> dict[str, Any]:
        """What `restore` needs besides the weights, as JSON has it."""
        ...


@runtime_checkable
class Augmenter(Protocol):
    """A method with its settings, before it has seen data."""

    @property
    def method(self) -> str: ...

    def as_json(self) -> dict[str, Any]:
        """All that decides the fit besides data, task and seed."""
        ...

    def fit(
        self,
        dataset: Dataset,
        *,
        task: Task | None = None,
        seed: int = 0,
        keeper: Keeper | None = None,
        bar: Bar = no_bar,
    ) -> FittedAugmenter: ...
