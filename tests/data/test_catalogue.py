"""The catalogue against OGBench itself, and against what it promises its readers."""

from __future__ import annotations

import pytest

from astro_rl.data.catalogue import KNOWN, RECIPES, d4rl_file_name, known_dataset
from astro_rl.errors import UnavailableError


def test_every_environment_exists_in_ogbench() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    pytest.importorskip("ogbench")
    import ogbench  # noqa: F401 (registers the environments)

    for recipe in RECIPES.values():
        assert recipe.env_id in gymnasium.registry, recipe.dataset


def test_names_are_environment_and_kind() -> None:
    for name, recipe in RECIPES.items():
        assert name == recipe.dataset == f"{recipe.env_id.removesuffix('-v0')}-{recipe.kind}-v0"


@pytest.mark.parametrize(
    ("name", "rows", "trajectories"),
    [
        ("pointmaze-medium-stitch-v0", 1_005_000, 5000),
        ("antmaze-giant-navigate-v0", 1_000_500, 500),
        ("antmaze-large-explore-v0", 5_010_000, 10000),
        ("humanoidmaze-giant-stitch-v0", 4_010_000, 10000),
        ("antsoccer-medium-stitch-v0", 4_008_000, 8000),
        ("cube-quadruple-play-v0", 5_005_000, 5000),
        ("scene-noisy-v0", 1_001_000, 1000),
    ],
)
def test_sizes_are_the_published_ones(name: str, rows: int, trajectories: int) -> None:
    known = KNOWN[name]
    assert (known.rows[0], known.trajectories[0]) == (rows, trajectories)
    assert known.trajectories[1] == trajectories // 10
    assert known.files == (f"{name}.npz", f"{name}-val.npz")


def test_what_cannot_be_made_says_why() -> None:
    for known in KNOWN.values():
        assert known.makeable == (known.why_not_makeable is None)
    assert KNOWN["antmaze-teleport-explore-v0"].makeable and KNOWN["scene-play-v0"].makeable
    assert "expert" in str(KNOWN["humanoidmaze-large-stitch-v0"].why_not_makeable)
    assert not KNOWN["antsoccer-arena-stitch-v0"].makeable and not KNOWN["antmaze-umaze-v2"].makeable


def test_the_papers_datasets_are_there() -> None:
    names = ("umaze", "umaze-diverse", "medium-play", "medium-diverse", "large-play", "large-diverse")
    assert all(f"antmaze-{name}-v2" in KNOWN for name in names)
    assert len({d4rl_file_name(f"antmaze-{name}-v2") for name in names}) == 6


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(UnavailableError, match="pointmaze-medium-stitch-v0"):
        known_dataset("pointmaze-medium-stich-v0")
    with pytest.raises(UnavailableError, match="'antmaze-large-stitch-v0'"):
        known_dataset("visual-antmaze-large-stitch-v0")
    with pytest.raises(UnavailableError, match="image"):
        known_dataset("powderworld-easy-play-v0")
    with pytest.raises(UnavailableError, match="minari download D4RL/antmaze/umaze-v1"):
        known_dataset("D4RL/antmaze/umaze-v1")
