"""Tables: statistics against independent definitions, everything rebuilt from raw records, three formats."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from astro_rl.bench.records import Records, Scores, Setup, read
from astro_rl.bench.render import Table, as_csv, escaped, latex, markdown, write
from astro_rl.bench.summary import overall, summaries
from astro_rl.bench.tables import tables_of
from astro_rl.errors import DataError
from astro_rl.evaluate.statistics import interquartile_mean, interval, probability_of_improvement
from tests.bench.scored import TASK, line, written

RECORDED = Path(__file__).parents[2] / "docs" / "results" / "raw" / "helps.jsonl"
SETUP = Setup("pointmaze-medium-stitch-v0", "tiny", (), 100)
T, F = True, False


def scores(arm: str, values: list[float], task: str = TASK, learner: str = "iql") -> Scores:
    return Scores(task, learner, arm, SETUP, dict(enumerate(values)), 50)


def test_iqm_is_the_trimmed_mean_that_rliable_takes() -> None:
    """rliable: `scipy.stats.trim_mean(scores, proportiontocut=0.25, axis=None)`."""
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(0)
    for shape in ((8, 1), (8, 14), (5, 3), (3, 1)):
        drawn = generator.uniform(0, 100, shape)
        assert interquartile_mean(drawn) == pytest.approx(stats.trim_mean(drawn, 0.25, axis=None))


def test_the_interval_is_the_stratified_percentile_bootstrap_that_rliable_takes() -> None:
    """Written again: for each resample, each task draws its own seeds; percentiles 2.5 and 97.5 of the statistic."""
    stats = pytest.importorskip("scipy.stats")
    drawn = np.random.default_rng(1).normal([20, 50, 90], [5, 20, 3], (8, 3))
    found = interval(drawn, interquartile_mean, resamples=20_000)
    generator, values = np.random.default_rng(2), []
    for _ in range(4_000):
        columns = [generator.choice(drawn[:, task], 8, replace=True) for task in range(3)]
        values.append(stats.trim_mean(np.stack(columns), 0.25, axis=None))
    low, high = np.percentile(values, [2.5, 97.5])
    spread = high - low
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * spread)


def test_probability_of_improvement_is_the_one_that_rliable_takes() -> None:
    """rliable: mean over tasks of Mann and Whitney's U (ties count half) over the number of pairs."""
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(3)
    ours, theirs = generator.integers(0, 6, (8, 4)) * 20.0, generator.integers(0, 6, (5, 4)) * 20.0
    each = [
        stats.mannwhitneyu(ours[:, task], theirs[:, task], alternative="greater").statistic / 40
        for task in range(4)
    ]
    assert probability_of_improvement(ours, theirs, resamples=10).value == pytest.approx(np.mean(each))


def test_rliable_itself_agrees() -> None:
    pytest.importorskip("rliable")
    from rliable import library, metrics  # pyright: ignore[reportMissingImports]

    drawn = np.random.default_rng(4).uniform(0, 100, (8, 3))
    theirs = np.random.default_rng(5).uniform(0, 90, (8, 3))
    points, bounds = library.get_interval_estimates(
        {"ours": drawn}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=5_000
    )
    found = interval(drawn, interquartile_mean)
    assert found.value == pytest.approx(points["ours"][0])
    assert (found.low, found.high) == pytest.approx(tuple(bounds["ours"][:, 0]), abs=2.0)
    better = probability_of_improvement(drawn, theirs)
    assert better.value == pytest.approx(float(metrics.probability_of_improvement(drawn, theirs)))


def test_each_arm_is_held_against_the_same_seeds_of_the_original() -> None:
    original = scores("original", [0.0, 0.0, 100.0, 100.0])
    fewer = Scores(TASK, "iql", "astro", SETUP, {2: 100.0, 3: 80.0}, 50)
    first, second = summaries([original, fewer], resamples=200)
    assert first.improvement is None and first.summary.never_learned == 2
    assert second.difference is not None and second.difference.value == -10.0
    assert second.means == (100.0, 90.0), "not 50, the mean over seeds that the arm lacks"
    assert second.improvement is not None
    assert second.improvement.value == pytest.approx((3 + 2) / 8), "ties count half"


def test_over_tasks_only_seeds_that_all_tasks_have_count() -> None:
    other = "pointmaze-medium-stitch-singletask-task2-v0"
    found = overall(
        [
            scores("original", [0.0, 10.0, 99.0]),
            scores("original", [20.0, 30.0], other),
            scores("astro", [50.0, 60.0], other),
        ],
        resamples=200,
    )
    assert [(one.arm, one.seeds, one.mean) for one in found] == [("original", 2, 15.0), ("astro", 2, 55.0)]


def test_lines_of_one_arm_are_put_together_and_contradictions_refused(tmp_path: Path) -> None:
    first, second = line("original", [[T, F], [F, F]]), line("original", [[T, T]], seeds=[7])
    second["episodes"]["seeds"] = [7]
    (found,) = read([written(tmp_path / "a.jsonl", [first, second])]).scores
    assert dict(found.by_seed) == {0: 50.0, 1: 0.0, 7: 100.0} and found.episodes == 2
    contrary = line("original", [[T, T]])
    with pytest.raises(DataError, match=r"(?s)disagree about one seed.*line 3.*seed 0"):
        read([written(tmp_path / "b.jsonl", [first, second, contrary])])
    with pytest.raises(DataError, match="not those of its episodes"):
        read([written(tmp_path / "c.jsonl", [line("astro", [[T, F]], scores=[90.0])])])


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", "line 1"),
        ('{"task": "x"}', "lacks fields"),
        ('{"record": "poem", "values": {}}', "unknown kind"),
    ],
)
def test_what_is_no_record_is_refused_by_its_line(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / "odd.jsonl").write_text(content + "\n")
    with pytest.raises(DataError, match=named):
        read([tmp_path / "odd.jsonl"])
    with pytest.raises(DataError, match="no records here"):
        read([tmp_path / "nowhere.jsonl"])


def test_other_settings_make_another_row(tmp_path: Path) -> None:
    """Arms are compared under equal updates alone."""
    lines = [line("original", [[F, F]]), line("astro", [[T, T]], updates=200)]
    tables = {table.name: table for table in tables_of(read([written(tmp_path / "r.jsonl", lines)]))}
    assert len(tables["scores"].rows) == 2
    assert [row[7:9] for row in tables["statistics"].rows] == [(None, None), (None, None)]


def test_recorded_science_is_rebuilt_from_its_raw_records() -> None:
    """The table of docs/results/astro.md, from helps.jsonl, which another program wrote."""
    tables = {table.name: table for table in tables_of(read([RECORDED]))}
    page = (RECORDED.parents[1] / "astro.md").read_text()
    rows = tables["statistics"].rows
    assert len(rows) == 14
    for learner, task, data, seeds, mean, std, iqm, *_ in rows:
        goal = str(task).split("-")[-2]
        assert f"| {str(learner).lower()} | {goal} | {data} | {seeds} | {mean} ± {std} | {iqm} |" in page
    ours = {(row[1], row[2]): row[4] for row in tables["averages"].rows}
    assert ours["both", "astro"] == "28.38 → 53.81"
    regimes = {row[:3]: row for row in tables["regimes"].rows}
    assert regimes["20 to 80", "IQL", "astro"][-2:] == ("+12.30 (+34.0 %)", "+15.83")


def test_the_papers_scores_stand_beside_ours() -> None:
    task = "antmaze-large-stitch-singletask-task1-v0"
    found = [
        scores("original", [10.0], task, "fql"),
        scores("astro", [30.0], task, "fql"),
        scores("mb", [5.0], task, "fql"),
    ]
    tables = {table.name: table for table in tables_of(Records(tuple(found)))}
    assert tables["scores"].header[2:] == ("original", "astro", "mb")
    assert tables["scores"].rows[0][2:] == (
        "10.0 ± 0.0 (29.2)",
        "30.0 ± 0.0 (57.3)",
        "5.0 ± 0.0 (46.5)",
    )


def test_a_table_reads_the_same_in_all_formats(tmp_path: Path) -> None:
    table = Table("t", "Gain in %", ("a|b", "τˢₘ"), (("1 ± 2", None), ("x_y & z", "−3")), ("A note.",))
    assert r"| a\|b | τˢₘ |" in markdown(table) and "| 1 ± 2 | – |" in markdown(table)
    assert list(csv.reader(io.StringIO(as_csv(table)))) == [["a|b", "τˢₘ"], ["1 ± 2", ""], ["x_y & z", "−3"]]
    text = latex(table)
    assert r"x\_y \& z & $-$3 \\" in text and text.count(r"\\") == 3 and r"\caption{Gain in \%}" in text
    assert escaped("τˢₘ") == r"$\tau^s$$_m$"
    assert [path.name for path in write([table], tmp_path)] == ["tables.md", "t.md", "t.csv", "t.tex"]


def test_sweeps_take_the_default_setting_from_astros_own_arm(tmp_path: Path) -> None:
    lines = [
        line("original", [[F, F]]),
        line("astro", [[T, F]]),
        line("threshold=2", [[T, T]]),
        {
            "record": "selection",
            "data": "pointmaze-medium-stitch-v0",
            "arm": "threshold=2",
            "values": {"seconds": 0.5, "proposed": 200, "accepted": 20},
        },
    ]
    tables = {table.name: table for table in tables_of(read([written(tmp_path / "r.jsonl", lines)]))}
    rows = [row[2:] for row in tables["sweep-threshold"].rows]
    assert [(row[0], row[2], row[4]) for row in rows] == [
        ("none", "0.0 ± 0.0", None),
        ("2", "100.0 ± 0.0", "58.2"),
        ("3", "50.0 ± 0.0", "57.3"),
    ]
    assert rows[1][5:] == ("0.5", "20 of 200", "12.4")
    assert "sweep-pieces" not in tables
    assert len(tables["scores"].rows[0]) == 4, "arms of a sweep stay out of the tables of arms"


def test_measurements_stand_beside_the_papers(tmp_path: Path) -> None:
    values = {
        "action_mse": 0.2,
        "state_mse": 0.01,
        "known_mse": 0.02,
        "violation": 7.0,
        "violation_real": 1.0,
        "shape": {"pieces": 5, "segment": 18, "mask": 18},
    }
    lines = [
        {"record": "completion", "data": "d", "arm": "mb", "values": values},
        {"record": "completion", "data": "d", "arm": "horizon=120", "values": values},
    ]
    tables = {table.name: table for table in tables_of(read([written(tmp_path / "r.jsonl", lines)]))}
    assert tables["completion"].rows == (
        ("d", "mb", "0.2 (0.141)", "0.01 (0.782)", "0.02 (0.452)", "7 (12.3)", "1.0"),
    )
    assert tables["horizon"].rows[0][2:5] == ("120", "5 × (18 + 18)", "0.01")
    assert tables["horizon"].rows[0][-1] == "0.673"
    assert json.dumps(tables["horizon"].rows)
