import json
import platform
import subprocess
from pathlib import Path

import jax
import numpy as np

from astro_rl.run import fingerprint as module
from astro_rl.run.fingerprint import differences, fingerprint, flatten, package_commit


def test_versions_and_devices_are_those_of_this_machine() -> None:
    found = fingerprint()
    assert found["packages"]["jax"] == jax.__version__ and found["packages"]["numpy"] == np.__version__
    assert sum(device["count"] for device in found["devices"]) == jax.device_count()
    assert json.loads(json.dumps(found)) == found


def test_it_names_no_host_no_user_and_no_path() -> None:
    text = json.dumps(fingerprint())
    node = platform.node()
    assert not node or node not in text
    assert str(Path.home()) not in text and str(Path(module.__file__).parents[3]) not in text
    assert not [
        value for value in flatten(fingerprint()).values() if isinstance(value, str) and value[:1] in "/~"
    ]


def checkout(folder: Path) -> Path:
    package = folder / "src" / "astro_rl"
    package.mkdir(parents=True)
    (package / "code.py").write_text("x = 1\n")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return package


def test_the_commit_of_a_checkout_and_whether_it_was_changed(tmp_path: Path) -> None:
    package = checkout(tmp_path)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert package_commit(package) == {"hash": head.stdout.strip(), "modified": False}
    (package / "code.py").write_text("x = 2\n")
    changed = package_commit(package)
    assert changed is not None and changed["modified"]


def test_a_copy_installed_inside_another_repository_has_no_commit(tmp_path: Path) -> None:
    checkout(tmp_path)
    installed = tmp_path / ".venv" / "lib" / "astro_rl"
    installed.mkdir(parents=True)
    assert package_commit(installed) is None


def test_differences_are_told_in_words() -> None:
    then = {"python": "3.11", "packages": {"jax": "1", "numpy": "2"}}
    assert differences(then, {"python": "3.11", "packages": {"jax": "2"}}) == [
        "packages.jax: 1 before, 2 now",
        "packages.numpy: 2 before, None now",
    ]
