"""The paper's tables as sets of cells.

table1       tasks × data settings × learners                    tab:astro
ablation     tasks × variants of ASTRO, FQL                      tab:astro_ablation
geometry     selection rules                                     tab:td_geom
completion   variants of the planner                             tab:dyna_mse
selection    filter threshold, chain length: scores and seconds  tab:ablation-all (a), (b)
horizon      L and M/l: completion errors                        tab:ablation-all (c), (d)
amount       augmented data and its share of a batch             not in the paper, which gives neither
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from astro_rl.agents.presets import learner_for
from astro_rl.agents.settings import near_match
from astro_rl.augment.settings import settings_for
from astro_rl.augmenters.registry import augmenter_for
from astro_rl.augmenters.variants import VARIANTS
from astro_rl.bench import paper
from astro_rl.bench.cells import (
    AugmentCell,
    Cell,
    CompletionCell,
    DataCell,
    FitCell,
    GeometryCell,
    ModelCell,
    ReshapedCell,
    RivalCell,
    SelectionCell,
    SimulatedCell,
    TrainCell,
    VariantCell,
    in_order,
    items,
)
from astro_rl.bench.presets import TABLES, BenchPreset, Choice, preset_for
from astro_rl.errors import ConfigError
from astro_rl.tasks import Task, get_task, tasks_of_dataset

RIVALS = ("diffstitch", "synther")
SIMULATED = "simulated"
"""The control whose gaps the simulator drives."""
RULES = ("pre-euc", "original", "astro", "rand")
"""Rows of the geometry table; the paper has the first three."""
COMPLETION_ARMS = ("si", "mb", "reg-only", "sc-only", "astro")
THRESHOLDS, PIECES = ("5", "3", "2"), ("3", "5", "7")
HORIZONS, RATIOS = ("120", "160", "200"), ("1/3", "1/1", "3/1")
AMOUNTS, SHARES = (0.1, 0.3, 1.0, 2.0), (0.25, 0.5, 0.75, 1.0)
DEFAULT_THRESHOLD, DEFAULT_PIECES = "3", "5"
DEFAULT_ARMS: dict[str, tuple[str, ...]] = {
    "table1": paper.ARMS,
    "ablation": paper.ABLATION_ARMS,
    "geometry": RULES,
    "completion": COMPLETION_ARMS,
    "selection": (
        "original",
        *(f"threshold={value}" for value in THRESHOLDS),
        *(f"pieces={value}" for value in PIECES),
    ),
    "horizon": (*(f"horizon={value}" for value in HORIZONS), *(f"mask_ratio={value}" for value in RATIOS)),
    "amount": (
        "original",
        *(f"amount={value:g}" for value in AMOUNTS),
        *(f"share={value:g}" for value in SHARES),
    ),
}
DEFAULT_LEARNERS = {"table1": ("iql", "fql"), "amount": ("iql", "fql")}
LEARNERS = ("iql", "fql", "bc", "td3bc", "rebrac")


@dataclass(frozen=True)
class Matrix:
    """One table's work."""

    table: str
    preset: BenchPreset
    leaves: tuple[Cell, ...]

    @property
    def cells(self) -> list[Cell]:
        """With all that they need, in an order in which they can be worked through."""
        return in_order(self.leaves)


def matrix_for(table: str, preset: str = "cpu", choice: Choice | None = None) -> Matrix:
    """A table's cells. Names that mean nothing are refused here, before any work."""
    if table not in TABLES:
        raise ConfigError(
            f"No table is called {table!r}.",
            found=table,
            expected=", ".join(TABLES),
            fix=near_match(table, TABLES),
        )
    wanted = choice or Choice()
    builder = _Builder(table, preset_for(preset, wanted), wanted)
    return Matrix(table, builder.preset, tuple(dict.fromkeys(builder.leaves())))


def known_arms(table: str) -> tuple[str, ...]:
    """What `arms` may name for a table."""
    if table in ("table1", "ablation"):
        return tuple(dict.fromkeys((*DEFAULT_ARMS[table], *paper.ARMS, *VARIANTS, SIMULATED)))
    if table == "completion":
        return tuple(dict.fromkeys((*DEFAULT_ARMS[table], *VARIANTS)))
    return DEFAULT_ARMS[table]


class _Builder:
    """Cells of one table under one preset and one caller's choice."""

    def __init__(self, table: str, preset: BenchPreset, choice: Choice) -> None:
        self.table, self.preset, self.choice = table, preset, choice
        self.tasks = [get_task(name) for name in preset.tasks_of(table)]
        self.arms = choice.arms or DEFAULT_ARMS[table]
        self.learners: tuple[Any, ...] = choice.learners or DEFAULT_LEARNERS.get(table, ("fql",))
        self._refuse_unknown("arm", choice.arms, known_arms(table))
        self._refuse_unknown("learner", self.learners, LEARNERS)
        self._refuse_strange_settings()

    def leaves(self) -> Iterator[Cell]:
        for task in self.tasks:
            for arm in self.arms:
                yield from self._of_arm(task, arm)

    def _of_arm(self, task: Task, arm: str) -> Iterator[Cell]:
        name, _, value = arm.partition("=")
        base = self.fit(task)
        if self.table == "geometry":
            yield GeometryCell(base, arm, self.preset.pairs)
        elif self.table == "completion":
            yield self._completion(self.model(task, arm), arm)
        elif self.table == "horizon":
            absolute = self.preset.shape == "task"
            change: Literal["horizon", "mask_ratio"] = "horizon" if name == "horizon" else "mask_ratio"
            yield CompletionCell(ReshapedCell(base, change, value, absolute), arm, self.preset.sequences)
        elif self.table == "selection":
            if arm != "original":
                yield self._timed(base, arm, name, value)
            for learner in self.learners:
                yield from self._trained(task, *self._selected(task, base, arm, name, value), learner)
        elif self.table == "amount":
            for learner in self.learners:
                yield from self._mixed(task, base, arm, name, value, learner)
        else:
            augmented = None if arm == "original" else self.augmented(self.model(task, arm))
            for learner in self.learners:
                yield from self._trained(task, arm, augmented, learner)

    def data(self, task: Task) -> DataCell:
        given = self.choice.data.get(task.dataset)
        return DataCell(task.dataset, None if given else self.preset.data_episodes, given=given)

    def fit(self, task: Task) -> FitCell:
        """All goals of a dataset share it, under the name of the first."""
        shape = self.preset.shape
        first = tasks_of_dataset(task.dataset)[0]
        return FitCell(
            self.data(task),
            first.name,
            self.preset.methods,
            items(self.preset.method_settings.get("astro", {})),
            None if shape == "auto" else self._published(task) if shape == "task" else shape,
        )

    def model(self, task: Task, arm: str) -> ModelCell:
        if arm == "astro":
            return self.fit(task)
        if arm in RIVALS:
            first = tasks_of_dataset(task.dataset)[0]
            settings = items(self.preset.method_settings.get(arm, {}))
            return RivalCell(self.data(task), first.name, arm, self.preset.methods, settings)
        return SimulatedCell(self.fit(task)) if arm == SIMULATED else VariantCell(self.fit(task), arm)

    def augmented(self, model: ModelCell, **changes: Any) -> AugmentCell:
        return AugmentCell(model, **{"amount": self.preset.amount, **changes})

    def _completion(self, model: ModelCell, arm: str) -> CompletionCell:
        few = self.augmented(model, amount=self.preset.violation_amount)
        return CompletionCell(model, arm, self.preset.sequences, few, self.preset.rows)

    def _timed(self, base: FitCell, arm: str, name: str, value: str) -> SelectionCell:
        limits = {"batches": self.preset.selection_batches, "seconds": self.preset.selection_seconds}
        if name == "threshold":
            return SelectionCell(base, arm, threshold=self._threshold(value), **limits)  # pyright: ignore[reportArgumentType]
        return SelectionCell(base, arm, pieces=int(value), **limits)  # pyright: ignore[reportArgumentType]

    def _selected(
        self, task: Task, base: FitCell, arm: str, name: str, value: str
    ) -> tuple[str, AugmentCell | None]:
        """The paper's defaults are ASTRO itself: the same cells as in the other tables."""
        if arm == "original":
            return arm, None
        if (name, value) in (("threshold", DEFAULT_THRESHOLD), ("pieces", str(self._pieces(base)))):
            return "astro", self.augmented(base)
        if name == "threshold":
            changed = items({"search.threshold": self._threshold(value)})
            return arm, self.augmented(base, settings=changed)
        return arm, self.augmented(ReshapedCell(base, "pieces", value))

    def _threshold(self, value: str) -> float:
        """In proportion where the preset's own is not the paper's 3 (tiny's models pass no filter as tight)."""
        own = self.preset.method_settings.get("astro", {}).get("generate.search.threshold")
        return float(value) if own is None else float(value) * own / float(DEFAULT_THRESHOLD)

    def _pieces(self, base: FitCell) -> int:
        return int(DEFAULT_PIECES) if base.shape is None else base.shape[0]

    def _mixed(
        self, task: Task, base: FitCell, arm: str, name: str, value: str, learner: Any
    ) -> Iterator[TrainCell]:
        if arm == "original":
            yield from self._trained(task, arm, None, learner)
        elif name == "share":
            same = float(value) == self.preset.share
            label = "astro" if same else arm
            yield from self._trained(task, label, self.augmented(base), learner, share=float(value))
        else:
            amount = float(value) * self.preset.amount
            own, most = self.augmented(base), self.preset.amount
            if amount == most:
                yield from self._trained(task, "astro", own, learner)
            elif amount < most:
                yield from self._trained(task, arm, own, learner, take=amount)
            else:
                yield from self._trained(task, arm, self.augmented(base, amount=amount), learner)

    def _trained(
        self, task: Task, arm: str, augmented: AugmentCell | None, learner: Any, **changes: Any
    ) -> Iterator[TrainCell]:
        """One cell a group of seeds; updates, seeds and evaluation are the same whatever the arm."""
        preset = self.preset
        share = {} if augmented is None else {"share": changes.pop("share", preset.share)}
        for first in range(0, preset.seeds, preset.seeds_at_once):
            yield TrainCell(
                self.data(task),
                task.name,
                arm,
                learner,
                preset.learner,
                preset.updates,
                tuple(range(first, min(first + preset.seeds_at_once, preset.seeds))),
                preset.episodes,
                items(self._learner_settings(learner)),
                augmented,
                **share,
                **changes,
            )

    def _learner_settings(self, learner: str) -> dict[str, Any]:
        own = self.preset.learner_settings
        return {**own.get("", {}), **own.get(learner, {})}

    def _published(self, task: Task) -> tuple[int, int, int]:
        pieces = task.horizon // (task.segment + task.mask)
        return pieces, task.segment, task.mask

    def _refuse_unknown(self, what: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"The table {self.table} has no {what} {name!r}.",
                    field=f"{what}s",
                    found=name,
                    expected=", ".join(known),
                    fix=near_match(name, known),
                )

    def _refuse_strange_settings(self) -> None:
        """What would be refused in the middle of a night is refused now."""
        settings_for(self.preset.methods, self.preset.method_settings.get("astro", {}))
        for method in self.choice.method_settings:
            self._refuse_unknown("method", (method,), ("astro", *RIVALS))
        for method in set(RIVALS) & set(self.arms):
            augmenter_for(method, self.preset.methods, self.preset.method_settings.get(method, {}))
        for learner in self.choice.learner_settings:
            if learner:
                self._refuse_unknown("learner", (learner,), LEARNERS)
        for task in self.tasks:
            for learner in self.learners:
                learner_for(learner, preset=self.preset.learner, task=task, **self._learner_settings(learner))
