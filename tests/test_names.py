"""No undefined names. Linters cannot be asked directly: jaxtyping's one-word shapes look like undefined names
to them."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def undefined_names(*paths: str) -> list[str]:
    """Ruff's F821 without what stands inside a string, as a shape such as Float[Array, "batch"] does."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821",
        "--output-format",
        "json",
    ]
    found = json.loads(subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True).stdout)
    real = []
    for finding in found:
        start = finding["location"]
        line = Path(finding["filename"]).read_text().splitlines()[start["row"] - 1]
        inside_a_string = line[: start["column"] - 1].count('"') % 2 == 1
        if not inside_a_string:
            real.append(f"{finding['filename']}:{start['row']}: {finding['message']}")
    return real


def test_every_name_is_defined() -> None:
    assert undefined_names("src", "tests") == []


def test_a_missing_import_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text("def f(x: Float['batch']) -> None:\n    return numpy.zeros(3)\n")
    assert any("numpy" in name for name in undefined_names(str(tmp_path)))
