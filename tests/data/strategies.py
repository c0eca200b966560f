"""Datasets drawn at random for property tests: any lengths, types, flags, end rows and extra columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from astro_rl.data import Dataset, from_arrays

FLOATS = (np.float32, np.float64)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `from_arrays`. The call itself is the test's: run-time type checks draw from `random`,
    which hypothesis refuses inside a strategy."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(2, 9), min_size=1, max_size=6))
    rows = sum(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ends = offsets[1:] - 1
    obs_type, act_type, reward_type = (draw(st.sampled_from(FLOATS)) for _ in range(3))
    terminated, truncated = rng.random((2, rows)) < draw(st.sampled_from([0.0, 0.2]))
    terminated[ends] = truncated[ends] = False
    extras = {}
    if draw(st.booleans()):
        extras["qpos"] = rng.normal(size=(rows, 3)).astype(draw(st.sampled_from(FLOATS)))
    if draw(st.booleans()):
        extras["button_states"] = rng.integers(-3, 3, size=(rows, 2))
    if draw(st.booleans()):
        extras["goal/image"] = rng.integers(0, 255, size=(rows, 2, 2)).astype(np.uint8)
    return {
        "observations": rng.normal(scale=100, size=(rows, draw(st.integers(1, 4)))).astype(obs_type),
        "actions": rng.uniform(-1, 1, size=(rows, draw(st.integers(1, 3)))).astype(act_type),
        "offsets": offsets,
        "rewards": rng.normal(size=rows).astype(reward_type) if draw(st.booleans()) else None,
        "terminated": terminated,
        "truncated": truncated if draw(st.booleans()) else None,
        "extras": extras,
        "info": {"source": "drawn", "lineage": {"seed": 3}} if draw(st.booleans()) else None,
    }


def assert_same(found: Dataset, expected: Dataset) -> None:
    """Equal to the last bit: names, types, shapes, values and order of columns."""
    assert list(found.columns()) == list(expected.columns())
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    for name, column in expected.columns().items():
        other = found.columns()[name]
        assert (other.dtype, other.shape) == (column.dtype, column.shape), name
        assert other.tobytes() == column.tobytes(), name
    assert found.digest() == expected.digest()


def small(rewards: bool = True, lengths: tuple[int, ...] = (3, 4, 2)) -> Dataset:
    """Trajectories of so many transitions, whose numbers tell where they come from."""
    rows = sum(lengths) + len(lengths)
    return from_arrays(
        np.arange(rows * 2, dtype=np.float32).reshape(rows, 2),
        np.linspace(-1, 1, rows, dtype=np.float32)[:, None],
        ends=np.cumsum([length + 1 for length in lengths]),
        rewards=np.arange(rows, dtype=np.float32) if rewards else None,
    )


def write_columns(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """An `.npz` file as anybody writes one. Archives take arrays by keyword, which type checkers mistrust."""
    save: Any = np.savez_compressed
    save(path, **columns)
