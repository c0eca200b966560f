"""Tables of results: kept as JSON, shown with what is missing, and written by the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from astro_rl.cli.main import main
from astro_rl.errors import DataError
from astro_rl.report.of_bench import report_bench, save_table
from astro_rl.report.static_parts import save_table_figures
from astro_rl.report.table_charts import chart_range, decimals, figure_text
from astro_rl.report.table_page import best_columns, coverage, table_page
from astro_rl.report.table_story import Cell, Row, TableStory
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
