"""docs/tasks.md shows the table as it is."""

import re
from pathlib import Path

from astro_rl.tasks import all_tasks
from astro_rl.tasks.page import REWRITE, generated_part, rewrite, tables

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"


def test_the_page_shows_the_table_as_it_is() -> None:
    assert generated_part(PAGE) == tables(), f"docs/tasks.md is out of date: {REWRITE}"


def test_rewriting_keeps_the_prose(tmp_path: Path) -> None:
    copy = tmp_path / "tasks.md"
    stale = PAGE.read_text(encoding="utf-8").replace("| 180 |", "| 181 |")
    copy.write_text(stale, encoding="utf-8")
    rewrite(copy)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8") != stale


def test_every_default_task_has_a_row_in_the_first_two_tables() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \|", tables(), flags=re.MULTILINE)
    for task in all_tasks():
        if task.is_default_goal:
            assert rows.count(task.dataset.removesuffix("-v0")) >= 2


def test_the_example_on_the_page_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert getattr(names["task"], "name", None) == "antmaze-umaze-v2"
