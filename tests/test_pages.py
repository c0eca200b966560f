"""What pages tell people to type works: commands parse, Python runs, names exist, links lead somewhere."""

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import astro_rl
from astro_rl.augment.settings import STAGES
from astro_rl.cli.main import parse

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = (
    "docs/runs.md",
    "docs/report.md",
    "docs/bench.md",
    "docs/evaluation.md",
    "docs/tasks.md",
    "docs/making-datasets.md",
    "docs/measuring.md",
    "docs/method/temporal.md",
    "docs/method/chains.md",
    "docs/method/dynamics.md",
    "docs/method/planner.md",
    "docs/method/augmentation.md",
    "docs/method/diffstitch.md",
    "docs/method/ablations.md",
    "docs/method/synther.md",
)
"""Pages whose Python takes seconds. Other blocks would train for minutes; their names are checked below."""
SMALLER = {
    "episodes=200": "episodes=2",
    "3_000": "1_000",
    # Compiling is what takes time: one chunk of one size a stage, and a planner that looks once.
    '{"dynamics.steps": 100}': str(
        {f"{stage}.{name}": 25 for stage in STAGES for name in ("steps", "log_every")}
        | {"planner.correction": False, "planner.regularisation": 0, "planner.feedback.kind": "none"}
    ),
}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """Whole command lines: those of code blocks, and those in running text. Placeholders are left out."""
    text = page.read_text()
    lines = [line for block in blocks(page, "[a-z]*") for line in block.splitlines()]
    found = [line for line in lines if line.startswith("astro-rl ")] + re.findall(
        r"`(astro-rl [^`\n]+)`", text
    )
    return [line for line in found if not re.search(r"…|\.\.\.|\b[A-Z]{2,}\b", line)]


COMMANDS = [pytest.param(line, id=f"{page.stem}: {line[:60]}") for page in PAGES for line in commands(page)]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_on_pages_are_commands(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    if not any(word.startswith("-") for word in words) and len(words) <= 2 and words[0] != "tasks":
        words.append("--help")  # a command's name alone, as prose mentions it
    try:
        parse(words)
    except SystemExit as stop:
        assert stop.code in (0, None), line


@pytest.mark.parametrize("page", RUN)
def test_python_on_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / page, "python")
    assert found
    for block in found:
        for large, small in SMALLER.items():
            block = block.replace(large, small)
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_on_pages_names_what_is_there(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "astro_rl"
            ):
                assert hasattr(astro_rl, node.attr), f"astro_rl.{node.attr}"
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("astro_rl."):
                called: Any = astro_rl
                for name in ast.unparse(node.func).split(".")[1:]:
                    called = getattr(called, name)
                parameters = inspect.signature(called).parameters.values()
                if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
                    continue
                known = {parameter.name for parameter in parameters}
                given = {keyword.arg for keyword in node.keywords}
                assert given <= known, f"{ast.unparse(node.func)} takes no {given - known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing
