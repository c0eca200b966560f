"""Tables of results: kept as JSON, shown with what is missing, and written by the command line."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astro_rl.bench.records import Measurement, Records, read
from astro_rl.cli.main import main
from astro_rl.errors import DataError
from astro_rl.report.bench_tables import stories_of
from astro_rl.report.of_bench import report_bench, save_table
from astro_rl.report.static_parts import save_table_figures
from astro_rl.report.table_charts import chart_range, decimals, figure_text
from astro_rl.report.table_page import best_columns, coverage, table_page
from astro_rl.report.table_story import Cell, Row, TableStory
from tests.bench.scored import line, written
from tests.report.evidence_stories import results_table
from tests.report.stories import EVIL
from tests.report.test_page import outline


def geometry_table() -> TableStory:
    """Columns that are no rivals, each in a unit of its own."""
    rows = (
        Row("ours", {"turn": Cell(0.42, 0.1, paper=1.253), "violations": Cell(5.25, low=4.0, high=6.5)}),
        Row("random", {"turn": Cell(1.5, 0.2), "violations": Cell(note="not run")}),
    )
    return TableStory("Geometry", ("turn", "violations"), rows, unit="", better=None, panels="columns")


def test_a_table_survives_its_file() -> None:
    for story in (results_table(), geometry_table()):
        assert TableStory.from_json(json.loads(json.dumps(story.as_json()))) == story


def test_damaged_and_strange_tables_are_refused() -> None:
    saved = results_table().as_json()
    with pytest.raises(DataError, match="no table"):
        TableStory.from_json({"format": "something"})
    with pytest.raises(DataError, match="another version"):
        TableStory.from_json({**saved, "format_version": 99})
    with pytest.raises(DataError, match="damaged"):
        TableStory.from_json({**saved, "rows": [{"name": "a"}]})
    with pytest.raises(DataError, match="cells of no column"):
        replace(results_table(), columns=("Original", "ASTRO"))
    with pytest.raises(DataError, match="baseline is no column"):
        replace(results_table(), baseline="BC")


def test_everything_in_a_table_is_on_its_page() -> None:
    text = table_page(results_table())
    found = outline(text)
    assert found.figures == ["table", "intervals"]
    assert {"table", "intervals", "more-0", "notes", "repeat"} <= set(found.names)
    assert "<b>59.2</b> ± 2.5" in text
    for words in ("56.2 to 62.2", "IQM 59.8", "1 never learned", "paper 60.0", "+9.25", "astro-rl bench"):
        assert words in text
    assert EVIL not in text
    assert text == table_page(results_table())


def test_what_is_missing_is_counted() -> None:
    assert coverage(results_table()) == "23 of 24 cells have a figure, 1 failed; 8 seeds a cell."
    assert coverage(geometry_table()) == "3 of 4 cells have a figure."


def test_the_best_of_a_row_needs_a_rival() -> None:
    table = results_table()
    assert best_columns(table.rows[0], table) == {"ASTRO"}
    assert best_columns(table.rows[0], replace(table, better="lower")) == {"DiffStitch"}
    assert best_columns(Row("one", {"ASTRO": Cell(3.0)}), table) == set()
    assert best_columns(geometry_table().rows[0], geometry_table()) == set()


def test_scales_hold_all_that_is_drawn() -> None:
    assert chart_range([Cell(50.0, low=40.0, high=60.0)], "%") == (0.0, 100.0)
    assert chart_range([Cell(3.0, std=1.0, paper=7.5)], "%") == (0.0, 10.0)
    assert chart_range([Cell(-3.0, low=-4.5, high=1.0)], "") == (-5.0, 5.0)


def test_columns_in_units_of_their_own_have_decimals_of_their_own() -> None:
    assert decimals([Cell(0.0123), Cell(0.0456)]) == 4
    assert decimals([Cell(412.0)]) == 0
    assert figure_text(-0.0456, 3) == "−0.046"
    text = table_page(geometry_table())
    assert "<b>0.420</b> ± 0.100" in text
    assert "not run" in text
    assert "Column by column" in text


def test_a_benchs_folder_becomes_pages_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_table(results_table(), tmp_path, "table1")
    save_table(geometry_table(), tmp_path / "tables", "geometry")
    assert main(["report", str(tmp_path), "--figures", str(tmp_path / "figures")]) == 0
    pages = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert pages == ["geometry.html", "table1.html"]
    drawn = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert drawn == ["geometry.pdf", "geometry.png", "table1.pdf", "table1.png"]
    assert "page: " in capsys.readouterr().out


def records(*lines: dict[str, Any]) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        return read([written(Path(folder) / "records.jsonl", list(lines))])


def test_scores_of_a_bench_stand_beside_the_papers_with_intervals_of_the_mean() -> None:
    """Of two seeds at 0 and 100 the bootstrap's means are 0, 50, 50, 100."""
    half = [[True, True], [False, False]]
    found = stories_of(records(line("original", half), line("astro", [[True, True]] * 2)))
    story = found["scores"]
    (row,) = story.rows
    assert story.columns == ("original", "ASTRO")
    original, ours = row.cells["original"], row.cells["ASTRO"]
    assert (original.mean, original.std, original.low, original.high) == (50.0, 50.0, 0.0, 100.0)
    assert (ours.mean, ours.low, ours.seeds, ours.never_learned) == (100.0, 100.0, 2, 0)
    assert row.group == "IQL"
    assert {table.title for table in story.more} >= {"All tasks at once", "The paper's two averages"}
    assert "2 evaluation episodes a seed." in story.notes
    assert "100 updates, tiny" in story.caption
    outline(table_page(story))


def test_measurements_of_a_bench_are_pages_of_their_own() -> None:
    moments = {"mean": 0.5, "std": 0.25, "median": 0.5, "count": 4}
    shapes = dict.fromkeys(("turn", "turn_sum", "curvature", "straightness"), moments)
    shares = {"behind_wall": 0.25, "out_of_reach": 0.0, "never_joined": 1.0, "pairs": 4}
    completion = {"action_mse": 0.1, "state_mse": 0.7, "known_mse": None, "violation_real": 1.5}
    found = stories_of(
        Records(
            measurements=(
                Measurement(
                    "geometry", "antmaze-large", "astro", {"steps": shapes, "pieces": shapes, **shares}
                ),
                Measurement("completion", "antmaze-large", "si", completion),
            )
        )
    )
    assert set(found) == {"geometry", "completion"}
    cells = found["geometry"].rows[0].cells
    assert cells["|Δθ| of steps, rad"].paper == 1.253
    assert (cells["Targets behind a wall, %"].mean, cells["Support breakout, %"].mean) == (25.0, 100.0)
    (row,) = found["completion"].rows
    assert row.cells["τˢ MSE"] == Cell(0.7, paper=0.954)
    assert row.cells["τˢₘ MSE"].mean is None
    assert row.note == "violations of real data 1.5 %"
    for story in found.values():
        outline(table_page(story))


def test_a_benchs_records_become_pages(tmp_path: Path) -> None:
    written(tmp_path / "records.jsonl", [line("original", [[True]]), line("threshold=5", [[False]])])
    pages = {path.stem: path.read_text() for path in report_bench(tmp_path)}
    assert set(pages) == {"scores", "settings"}
    assert "threshold=5" not in pages["scores"]
    assert "Filter threshold" in pages["settings"]
    assert outline(pages["settings"]).figures == []


def test_a_bench_without_tables_and_a_folder_that_is_none_end_in_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cells").mkdir()
    with pytest.raises(DataError, match="no table"):
        report_bench(tmp_path)
    assert main(["report", str(tmp_path)]) == 1
    assert main(["report", str(tmp_path / "nowhere")]) == 1
    told = capsys.readouterr().err
    assert "There is no such run." in told
    assert "Traceback" not in told


def test_a_tables_figures_are_the_same_bytes(tmp_path: Path) -> None:
    one, two = (save_table_figures(geometry_table(), tmp_path / name, "table") for name in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    bare = TableStory("Nothing", ("a",), (Row("x", {"a": Cell(note="not run")}),))
    assert save_table_figures(bare, tmp_path, "none") == []
    assert outline(table_page(bare)).figures == ["table"]
