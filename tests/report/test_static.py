"""Figures for papers: one file a figure and format, the same bytes each time."""

from pathlib import Path

from astro_rl.report.static import figures, save_figures
from tests.report.evidence_stories import evidence_story
from tests.report.stories import bare_story, full_story

NAMES = {
    "fragments", "distance", "chain-1", "chain-2", "stitched-1", "stitched-2", "stitched-3", "values-iql", "scores-iql",
}  # fmt: skip


def test_each_figure_is_there_in_each_format(tmp_path: Path) -> None:
    written = save_figures(full_story(), tmp_path)
    assert {path.name for path in written} == {f"{name}.{kind}" for name in NAMES for kind in ("png", "pdf")}
    assert all(path.read_bytes()[:4] in (b"\x89PNG", b"%PDF") for path in written)
    assert min(path.stat().st_size for path in written) > 2_000


def test_further_parts_have_figures_of_their_own() -> None:
    assert {name for name, _ in figures(evidence_story())} - NAMES == {
        "pair-1", "pair-2", "pair-3", "chosen-pairs", "selection-geometry", "metrics", "film",
        "curve-1-iql-value-probe-mean", "curve-3-fit--planner-loss",
        "curve-2-iql-critic-loss-a-b--c----script--script-bad",
    }  # fmt: skip


def test_figures_of_the_same_story_are_the_same_bytes(tmp_path: Path) -> None:
    one, two = (save_figures(full_story(), tmp_path / name) for name in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_a_story_without_figures_writes_nothing(tmp_path: Path) -> None:
    assert save_figures(bare_story(), tmp_path) == []
