"""Environments by name: quiet, without leftovers, and with errors that help."""

import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pytest

from astro_rl.envs.build import is_d4rl, make_env
from astro_rl.errors import MissingDependency, UnavailableError


@pytest.mark.parametrize("env_id", ["antmaze-medium-v0", "cube-single-v0"])
def test_building_and_resetting_print_nothing(env_id: str) -> None:
    # In a process of its own: warnings about a missing display come once, when packages are first imported.
    code = (
        "from astro_rl.envs.build import make_env\n"
        "from astro_rl.envs.seeding import SeededEnv\n"
        f"env = SeededEnv(make_env({env_id!r}))\n"
        "env.reset(seed=0)\n"
        "env.step(env.action_space.sample())\n"
    )
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if "DeprecationWarning" not in line]
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert not [line for line in lines if "Warning" in line or "DISPLAY" in line], done.stderr


def test_mazes_leave_no_model_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = make_env("pointmaze-medium-v0")
    env.reset(seed=0)
    assert list(tmp_path.iterdir()) == []


def test_building_leaves_the_caller_s_generator_alone() -> None:
    np.random.seed(5)
    make_env("cube-single-v0")
    assert np.random.uniform() == np.random.RandomState(5).uniform()


def test_arguments_reach_the_environment() -> None:
    env = make_env("pointmaze-medium-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(env.action_space.sample())[3] for _ in range(3)] == [False, False, True]


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(UnavailableError, match="pointmaze-medium-v0"):
        make_env("pointmaze-medum-v0")
    with pytest.raises(UnavailableError, match="name no dataset type"):
        make_env("antmaze-medium-stitch-v0")


def test_without_ogbench_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogbench", None)
    with pytest.raises(MissingDependency, match=r"antmaze-large-v0(?s:.*)astro-rl\[ogbench\]"):
        make_env("antmaze-large-v0")


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("antmaze-umaze-v2", True),
        ("antmaze-umaze-diverse-v2", True),
        ("antmaze-medium-play-v2", True),
        ("antmaze-large-diverse-v0", True),
        ("antmaze-medium-v0", False),
        ("antmaze-large-v0", False),
        ("antmaze-giant-singletask-v0", False),
    ],
)
def test_d4rl_names_are_told_from_ogbench_names(env_id: str, expected: bool) -> None:
    assert is_d4rl(env_id) is expected


def test_d4rl_names_go_to_the_d4rl_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    stand_in = types.ModuleType("d4rl_antmaze")
    stand_in.make = lambda env_id, **kwargs: asked.append((env_id, kwargs))  # pyright: ignore
    monkeypatch.setitem(sys.modules, "astro_rl.envs.d4rl_antmaze", stand_in)
    make_env("antmaze-large-play-v2", max_episode_steps=7)
    assert asked == [("antmaze-large-play-v2", {"max_episode_steps": 7})]
