"""Matrices: the paper's cells and no others, shared work once, every arm under the same conditions."""

from collections import Counter
from pathlib import Path

import pytest

from astro_rl.bench.cells import (
    AugmentCell,
    DataCell,
    FitCell,
    RivalCell,
    SimulatedCell,
    TrainCell,
    VariantCell,
    in_order,
    key_of,
)
from astro_rl.bench.matrix import matrix_for
from astro_rl.bench.presets import TABLES, Choice
from astro_rl.errors import ConfigError
from astro_rl.tasks import get_task, paper_tasks


def kinds(cells: list) -> Counter:
    return Counter(type(cell) for cell in cells)


def test_the_papers_table_has_14_tasks_4_data_settings_2_learners_8_seeds() -> None:
    matrix = matrix_for("table1", "paper")
    trained = [cell for cell in matrix.leaves if isinstance(cell, TrainCell)]
    assert len(trained) == 14 * 4 * 2 == len(matrix.leaves)
    assert {(cell.task, cell.arm, cell.learner) for cell in trained} == {
        (task.name, arm, learner)
        for task in paper_tasks()
        for arm in ("original", "astro", "diffstitch", "synther")
        for learner in ("iql", "fql")
    }
    assert {(cell.updates, cell.seeds, cell.preset) for cell in trained} == {
        (1_000_000, tuple(range(8)), "paper")
    }
    count = kinds(matrix.cells)
    assert count[DataCell] == count[FitCell] == 14, "one ψ and one dynamics model a dataset"
    assert count[RivalCell] == 28 and count[AugmentCell] == 42, (
        "one augmented dataset an arm, for both learners"
    )


def test_the_papers_chains_are_those_of_its_horizon_table() -> None:
    fits = [cell for cell in matrix_for("table1", "paper").cells if isinstance(cell, FitCell)]
    for cell in fits:
        assert cell.shape is not None
        pieces, segment, mask = cell.shape
        task = get_task(cell.task)
        assert pieces == 5 and segment == mask and pieces * (segment + mask) == task.horizon


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("preset", ["tiny", "cpu", "paper"])
def test_in_every_matrix_what_is_needed_comes_first_and_keys_are_single(table: str, preset: str) -> None:
    cells = matrix_for(table, preset).cells
    keys = [key_of(cell) for cell in cells]
    assert len(set(keys)) == len(keys) > 2
    assert all("/" not in key and "=" not in key for key in keys), "keys are folders' names"
    for place, cell in enumerate(cells):
        assert all(need in cells[:place] for need in cell.needs)


def test_tables_share_their_cells() -> None:
    choice = Choice(tasks=("antmaze-large-stitch",))
    first = set(map(key_of, matrix_for("table1", "paper", choice).cells))
    for table, at_least in (("ablation", 5), ("selection", 5), ("amount", 5), ("geometry", 2)):
        shared = first & set(map(key_of, matrix_for(table, "paper", choice).cells))
        assert len(shared) >= at_least, f"{table} shares {sorted(shared)}"


def test_goals_of_one_dataset_share_everything_but_training() -> None:
    choice = Choice(tasks=("pointmaze-medium-stitch-task1", "pointmaze-medium-stitch-task2"))
    count = kinds(matrix_for("table1", "cpu", choice).cells)
    assert (count[DataCell], count[FitCell], count[AugmentCell]) == (1, 1, 3)
    assert count[TrainCell] == 2 * 2 * 4


def test_more_seeds_add_cells_and_repeat_none() -> None:
    four, six = (
        set(map(key_of, matrix_for("table1", "cpu", Choice(seeds=seeds)).leaves)) for seeds in (4, 6)
    )
    assert four < six and len(six) == 2 * len(four)


def test_arms_differ_in_their_data_alone() -> None:
    for table in ("table1", "ablation", "selection", "amount"):
        trained = [cell for cell in matrix_for(table, "cpu").leaves if isinstance(cell, TrainCell)]
        by_place: dict = {}
        for cell in trained:
            conditions = (cell.updates, cell.seeds, cell.episodes, cell.preset, cell.settings)
            by_place.setdefault((cell.task, cell.learner), set()).add(conditions)
        assert all(len(found) == 1 for found in by_place.values())


def test_amounts_below_the_usual_are_taken_from_it() -> None:
    matrix = matrix_for("amount", "cpu", Choice(learners=("iql",)))
    trained = {cell.arm: cell for cell in matrix.leaves if isinstance(cell, TrainCell)}
    assert set(trained) >= {"original", "astro", "amount=0.1", "amount=2", "share=0.25", "share=1"}
    usual = trained["astro"].augmented
    assert trained["amount=0.1"].augmented == usual == trained["share=1"].augmented
    assert trained["amount=0.1"].take == pytest.approx(0.03) and trained["share=1"].share == 1.0
    assert trained["amount=2"].augmented != usual
    assert kinds(matrix.cells)[AugmentCell] == 2


def test_the_papers_defaults_are_astro_itself() -> None:
    arms = {cell.arm for cell in matrix_for("selection", "paper").leaves if isinstance(cell, TrainCell)}
    assert arms == {"original", "astro", "threshold=5", "threshold=2", "pieces=3", "pieces=7"}


def test_our_ablations_can_be_named() -> None:
    choice = Choice(arms=("literal", "argmin", "regenerated", "simulated"))
    assert kinds(matrix_for("ablation", "cpu", choice).cells)[SimulatedCell] == 1
    variants = [
        cell.variant for cell in matrix_for("ablation", "cpu", choice).cells if isinstance(cell, VariantCell)
    ]
    assert variants == ["literal", "argmin", "regenerated"]


@pytest.mark.parametrize(
    ("table", "choice", "named"),
    [
        ("table3", Choice(), "table1"),
        ("table1", Choice(arms=("astroo",)), "astro"),
        ("geometry", Choice(arms=("diffstitch",)), "pre-euc"),
        ("table1", Choice(learners=("iqll",)), "iql"),
        ("table1", Choice(tasks=("antmaze-huge",)), "No task"),
        ("table1", Choice(seeds=0), "seeds"),
        ("table1", Choice(method_settings={"astro": {"dynamics.stepz": 3}}), "dynamics.steps"),
        ("table1", Choice(method_settings={"synther": {"stepz": 3}}), "step"),
        ("table1", Choice(learner_settings={"fql": {"alpah": 3}}), "alpha"),
    ],
)
def test_what_means_nothing_is_refused_before_any_work(table: str, choice: Choice, named: str) -> None:
    with pytest.raises(Exception, match=named) as caught:
        matrix_for(table, "cpu", choice)
    assert isinstance(caught.value, ConfigError) or "No task" in str(caught.value)


def test_a_key_changes_with_everything_that_decides_the_result() -> None:
    data = DataCell("pointmaze-medium-stitch-v0", 12)
    task = get_task("pointmaze-medium-stitch").name
    fit = FitCell(data, task, "tiny", (("dynamics.steps", 20),))
    others = [
        FitCell(DataCell(data.dataset, 13), task, "tiny", fit.settings),
        FitCell(data, task, "tiny", (("dynamics.steps", 21),)),
        FitCell(data, task, "tiny", fit.settings, shape=(2, 6, 6)),
        FitCell(data, task, "tiny", fit.settings, seed=1),
    ]
    keys = {key_of(AugmentCell(one)) for one in [fit, *others]}
    assert len(keys) == 5, "what a cell needs is part of it"
    assert key_of(AugmentCell(fit)) == key_of(AugmentCell(FitCell(data, task, "tiny", fit.settings)))
    assert in_order([AugmentCell(fit), fit]) == [data, fit, AugmentCell(fit)]


def test_settings_by_path_and_nested_are_one_cell() -> None:
    by_path, nested = (
        matrix_for("geometry", "cpu", Choice(method_settings={"astro": settings}))
        for settings in (
            {"dynamics.net.width": 64, "temporal.hidden": (8, 8)},
            {"temporal": {"hidden": [8, 8]}, "dynamics": {"net": {"width": 64}}},
        )
    )
    assert by_path.cells == nested.cells


def test_a_given_file_may_move(tmp_path: Path) -> None:
    keys = []
    for folder, content in (("a", b"rows"), ("b", b"rows"), ("c", b"more rows")):
        file = tmp_path / folder / "pointmaze-medium-stitch-v0.npz"
        file.parent.mkdir()
        file.write_bytes(content)
        choice = Choice(data={"pointmaze-medium-stitch-v0": str(file)})
        (data,) = (c for c in matrix_for("geometry", "tiny", choice).cells if isinstance(c, DataCell))
        assert data.episodes is None, "what is given is not made smaller"
        keys.append(key_of(data))
    assert keys[0] == keys[1] != keys[2]
