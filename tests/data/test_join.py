"""One dataset of several: what all have, in order, whole trajectories."""

from pathlib import Path

import numpy as np
import pytest

from astro_rl.cli.main import main
from astro_rl.data import Dataset, from_arrays, load, save
from astro_rl.data.join import joined, merged
from astro_rl.errors import DataError


def part(first: float, extras: tuple[str, ...] = (), dims: int = 2, rewards: bool = True) -> Dataset:
    rows = 7
    return from_arrays(
        np.full((rows, dims), first, np.float32) + np.arange(rows, dtype=np.float32)[:, None],
        np.zeros((rows, 1), np.float32),
        offsets=[0, 3, rows],
        rewards=np.full(rows, first, np.float32) if rewards else None,
        extras={name: np.full(rows, first, np.float32) for name in extras},
    )


def test_what_only_some_have_is_left_out_and_named() -> None:
    whole, dropped = merged([part(0, ("weight", "mood")), part(50, ("weight",), rewards=False)])
    assert dropped == ("mood", "rewards")
    assert whole.rewards is None and set(whole.extras) == {"weight"}
    assert whole.offsets.tolist() == [0, 3, 7, 10, 14]
    assert whole.observations[:, 0].tolist() == [*range(7), *range(50, 57)]
    assert whole.info["merged"] == [{"trajectories": 2, "transitions": 5}] * 2


def test_joining_insists_on_the_same_columns() -> None:
    with pytest.raises(DataError, match="mood"):
        joined([part(0), part(1, ("mood",))])


def test_other_environments_are_refused() -> None:
    with pytest.raises(DataError, match=r"(?s)different environments.*observations.*2 and 3"):
        merged([part(0), part(0, dims=3)])


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(part(0), tmp_path / "a.npz")
    save(part(5, ("weight",)), tmp_path / "b.astro")
    out = tmp_path / "c.npz"
    assert main(["data", "merge", str(tmp_path / "a.npz"), str(tmp_path / "b.astro"), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "4 trajectories, 10 transitions" in told and "left out, not in all of them: weight" in told
    assert load(out).n_transitions == 10
    assert main(["data", "merge", str(tmp_path / "a.npz"), "--out", str(out)]) == 1
    assert "overwrite" in capsys.readouterr().err
