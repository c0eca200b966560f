"""What the paper computes from its tables, computed again: where it holds, and where it does not."""

import math
from statistics import fmean

import pytest

from astro_rl.bench import paper
from astro_rl.bench.averages import (
    group_of,
    mean_of_cells,
    mean_of_groups,
    paper_pairs,
    regime_averages,
)
from astro_rl.tasks import get_task, paper_tasks

PAIRS = paper_pairs()


def test_its_first_average_is_over_tasks_and_learners() -> None:
    """“+32.7 % (+9.68)”: eight tasks × two learners, 29.59 → 39.28."""
    found = mean_of_cells(PAIRS, "astro")
    assert found is not None and found.cells == 16
    assert found.before == pytest.approx(29.59, abs=0.005) and found.after == pytest.approx(39.28, abs=0.006)
    assert found.gain == pytest.approx(9.68, abs=0.005) and found.percent == pytest.approx(32.7, abs=0.05)


@pytest.mark.parametrize(
    ("learner", "before", "after", "percent"), [("iql", 36.08, 45.52, 26.2), ("fql", 55.52, 65.71, 18.4)]
)
def test_its_second_average_is_over_three_groups(
    learner: str, before: float, after: float, percent: float
) -> None:
    found = mean_of_groups(PAIRS, "astro", learner)
    assert found is not None and found.cells == 3
    assert (found.before, found.after) == pytest.approx((before, after), abs=0.005)
    assert found.percent == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize("group", ["maze", "manipulation"])
@pytest.mark.parametrize("learner", ["iql", "fql"])
def test_its_group_averages_are_means_of_its_cells(group: str, learner: str) -> None:
    for arm in paper.ARMS:
        cells = [
            one.value
            for one in paper.FIGURES
            if one.table == "astro"
            and (one.learner, one.column) == (learner, arm)
            and one.row not in ("maze", "manipulation", "d4rl", "total")
            and group_of(one.row) == group
        ]
        assert fmean(cells) == pytest.approx(paper.value("astro", group, arm, learner), abs=0.05)


def test_its_ablation_averages_are_means_of_its_rows() -> None:
    for arm in paper.ABLATION_ARMS:
        rows = [
            one.value
            for one in paper.FIGURES
            if one.table == "astro_ablation" and one.column == arm and one.row != "average"
        ]
        assert len(rows) == 4
        assert fmean(rows) == pytest.approx(paper.value("astro_ablation", "average", arm, "fql"), abs=0.005)


@pytest.mark.parametrize("regime", paper.REGIMES, ids=lambda one: f"{one.learner} {one.name}")
def test_its_regimes_are_means_over_these_rows(regime: paper.Regime) -> None:
    """SynthER's FQL gain from 20 to 80 is printed as 2.07 and is 2.05."""
    for arm, printed in regime.after.items():
        pairs = [PAIRS[row, regime.learner, arm] for row in regime.rows]
        before, after = (fmean(side) for side in zip(*pairs, strict=True))
        odd = (regime.learner, regime.name, arm) == ("fql", "moderate", "synther")
        if regime.before is None:
            assert after - before == pytest.approx(printed, abs=0.025 if odd else 0.006)
        else:
            assert (before, after) == pytest.approx((regime.before, printed), abs=0.005)


def test_four_of_its_cells_fall_into_a_regime_and_are_left_out() -> None:
    left_out = set()
    for learner in ("iql", "fql"):
        counted = {row for one in paper.REGIMES if one.learner == learner for row in one.rows}
        tasks = {task for task, by, arm in PAIRS if by == learner and arm == "astro"}
        left_out |= {(learner, task.split("-stitch")[0].split("-play")[0]) for task in tasks - counted}
    assert left_out == {
        ("iql", "antmaze-giant"),
        ("iql", "cube-double"),
        ("iql", "humanoidmaze-medium"),
        ("fql", "humanoidmaze-large"),
    }
    (low, *_) = regime_averages(PAIRS, "astro", "iql")
    assert low.cells == 4 and low.gain == pytest.approx(5.3), "with all four tasks, half of the printed 10.55"


def test_where_it_contradicts_itself() -> None:
    largest = paper.figure("td_geom", "pre-euc", "direction_change")
    assert largest is not None and largest.value > math.pi
    before, _ = paper.MEAN_Q["iql"]
    assert before < -1 / (1 - get_task("antmaze-large-stitch").discount)
    assert paper.value("ablation-all", "threshold=3", "seconds") == 4.5
    assert paper.value("ablation-all", "pieces=5", "seconds") == 6.5
    assert paper.value("ablation-all", "horizon=160", "state_mse") == paper.value(
        "dyna_mse", "astro", "state_mse"
    )
    assert get_task("antmaze-large-stitch").horizon == 180
    gains = [(after - before) for before, after in paper.MEAN_Q.values()]
    assert fmean([gains[0] - 3.82, gains[1] - 0.43]) == pytest.approx(9.70), "printed as 9.71"


def test_the_task_table_has_its_hyperparameters() -> None:
    rows = {one.row for one in paper.FIGURES if one.table == "iql-fql-hparams"}
    for row in rows:
        task = get_task(row)
        for column in ("iql_alpha", "fql_alpha", "discount"):
            printed = paper.value("iql-fql-hparams", row, column)
            if printed is not None:
                assert getattr(task, column) == printed, (row, column)
        assert task.horizon == paper.value("horizon-settings", row, "horizon")
    assert {get_task(row).dataset for row in rows} <= {task.dataset for task in paper_tasks()}


def test_table_four_gives_the_percentages_of_the_text() -> None:
    action = [paper.value("dyna_mse", arm, "action_mse") or 0 for arm in ("si", "mb")]
    violation = [paper.value("dyna_mse", arm, "violation") or 0 for arm in ("si", "mb")]
    assert 1 - action[1] / action[0] == pytest.approx(0.376, abs=0.0005)
    assert 1 - violation[1] / violation[0] == pytest.approx(0.293, abs=0.0005)
