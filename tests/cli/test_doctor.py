import json
import sys
from importlib import metadata
from typing import Any

import jax
import pytest

from astro_rl.cli import doctor


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    pytest.importorskip("ogbench")
    return doctor.collect_report()


def test_a_working_machine_has_no_problems(report: dict[str, Any]) -> None:
    assert [item["ok"] for item in report["checks"]] == [True, True]
    assert report["problems"] == []
    assert report["packages"]["jax"] == jax.__version__
    assert len(report["devices"]) == jax.device_count()
    assert json.loads(json.dumps(report)) == report


def test_people_read_the_same(report: dict[str, Any]) -> None:
    text = doctor.render(report)
    assert "No problems found." in text and "ok      a compiled function runs" in text
    assert all(version in text for version in report["packages"].values() if version)
    assert all(extra["fix"] in text for extra in report["extras"].values() if extra["fix"])


def installed(
    monkeypatch: pytest.MonkeyPatch, packages: dict[str, str], requires: dict[str, list[str]]
) -> None:
    """A machine with these packages and requirements and nothing else."""

    def version(name: str) -> str:
        if name not in packages:
            raise metadata.PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(metadata, "requires", lambda name: requires.get(name))


def test_extras_name_what_is_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        monkeypatch,
        {"ogbench": "1.1.9", "mujoco": "4.0.0", "jax": "0.10.2", "minari": "0.5.10"},
        {
            "astro-rl": [
                "numpy>=2.0",
                "ogbench>=1.2.2; extra == 'ogbench'",
                'mujoco>=3.2; extra == "ogbench"',
                "gymnasium>=1.0; extra == 'ogbench'",
                "minari>=0.5.3; extra == 'minari'",
                "jax[cuda12]>=0.10; extra == 'cuda'",
            ],
            "jax": ["jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == 'cuda12'", "numpy>=2"],
        },
    )
    extras = doctor.missing_extras()
    assert extras["ogbench"] == {
        "missing": ["gymnasium", "ogbench>=1.2.2 (here: 1.1.9)"],
        "fix": "pip install 'astro-rl[ogbench]'",
    }
    assert extras["minari"] == {"missing": [], "fix": None}
    assert extras["cuda"]["missing"] == ["jax-cuda12-plugin"]


def test_a_missing_simulator_is_a_finding_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogbench", None)
    found = doctor.check("an environment builds", doctor._build_and_step)
    assert not found["ok"]
    (problem,) = doctor.problems_of([found], ["cpu:0"])
    assert "ogbench" in problem["what"] and problem["fix"] == "pip install 'astro-rl[ogbench]'"
    text = doctor.render({**REPORT, "checks": [found], "problems": [problem]})
    assert "FAILED" in text and "fix: pip install 'astro-rl[ogbench]'" in text and "1 to mend." in text


def test_an_idle_gpu_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "nvidia_present", lambda: True)
    assert doctor.problems_of([], ["gpu:0 (NVIDIA A100)"]) == []
    (problem,) = doctor.problems_of([], ["cpu:0 (cpu)"])
    assert problem["fix"] == "pip install 'astro-rl[cuda]'"


REPORT: dict[str, Any] = {
    "astro_rl": "0.1.0",
    "commit": {"hash": "0123456789abcdef", "modified": True},
    "python": "3.11.7",
    "system": "Linux x86_64",
    "cpu": "model",
    "cores": 2,
    "memory_gib": None,
    "packages": {"jax": "0.10.2", "ogbench": None},
    "devices": [],
    "gl": {"MUJOCO_GL": None, "libraries": [], "display": False},
    "extras": {},
    "checks": [],
    "problems": [],
}
