"""Numerics know nothing of the command line, of loggers, of progress bars or of environments."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "astro_rl"
NUMERICS = (
    "data",
    "tasks",
    "nets",
    "agents",
    "training",
    "temporal",
    "stitch",
    "dynamics",
    "diffusion",
    "planner",
    "augment",
    "augmenters",
    "stateplan",
)
FORBIDDEN_ROOMS = ("cli", "run", "envs", "collect", "evaluate", "progress")
FORBIDDEN_PACKAGES = (
    "tyro",
    "rich",
    "logging",
    "gymnasium",
    "ogbench",
    "mujoco",
    "gymnasium_robotics",
    "tqdm",
    "wandb",
)


def imports_of(path: Path) -> set[str]:
    """Every module a file imports, inside functions too, with relative imports made absolute."""
    package = ["astro_rl", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.update([module, *(f"{module}.{alias.name}" for alias in node.names)])
    return found


def numeric_files() -> list[Path]:
    return sorted(path for room in NUMERICS for path in (PACKAGE / room).rglob("*.py"))


@pytest.mark.parametrize("path", numeric_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_numerics_import_no_command_line_logger_or_environment(path: Path) -> None:
    for module in imports_of(path):
        parts = module.split(".")
        assert parts[0] not in FORBIDDEN_PACKAGES, f"{path.name} imports {module}"
        assert not (parts[0] == "astro_rl" and parts[1:2] and parts[1] in FORBIDDEN_ROOMS), (
            f"imports {module}"
        )


def test_measuring_knows_nothing_of_pages() -> None:
    for path in (PACKAGE / "quality").rglob("*.py"):
        offenders = [m for m in imports_of(path) if m.startswith(("astro_rl.report", "astro_rl.bench"))]
        assert not offenders, f"{path} imports {offenders}"


def test_the_check_sees_what_files_import() -> None:
    probe = PACKAGE / "data" / "schema.py"
    assert "astro_rl.data.digest" in imports_of(probe)
    assert len(numeric_files()) > 20


def test_only_the_command_line_imports_the_command_line() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "cli") or path == PACKAGE / "__main__.py":
            continue
        offenders = [m for m in imports_of(path) if m.startswith("astro_rl.cli")]
        assert not offenders, f"{path} imports {offenders}"
