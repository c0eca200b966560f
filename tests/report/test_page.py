"""The page as text: complete, self-contained, plain about what it can claim."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from astro_rl.errors import DataError
from astro_rl.report.page import page, write_page
from astro_rl.report.story import Account, Scores
from tests.report.stories import EVIL, bare_story, facts, full_story

VOID = {"meta", "link", "input", "img", "br"}


class Outline(HTMLParser):
    """Checks that elements close in order and collects anchors, references and figures."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.references: list[str] = []
        self.figures: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.names.append(str(value))
            elif name == "data-figure":
                self.figures.append(str(value))
            elif name in ("href", "src"):
                (self.references if str(value).startswith("#") else self.addresses).append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_every_part_of_a_story_is_on_the_page() -> None:
    found = outline(page(full_story()))
    assert set(found.figures) == {
        "fragments", "distance", "chains", "stitched", "values", "scores", "rejections", "times",
    }  # fmt: skip
    assert len(found.names) == len(set(found.names))
    assert {reference[1:] for reference in found.references} <= set(found.names)
    for section in ("data", "truth", "lineage", "limits", "repeat"):
        assert section in found.names


def test_a_story_without_a_plane_has_no_maps_and_no_script() -> None:
    text = page(bare_story())
    found = outline(text)
    assert found.figures == []
    assert "<script" not in text
    assert "No learner was evaluated" in text


def test_nothing_on_the_page_has_an_address_elsewhere() -> None:
    text = page(full_story())
    assert {address.split(":")[0] for address in outline(text).addresses} <= {"data", "augmented.npz"}
    assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"data:image/png;base64,[^\"]*", "", text)) == []
    assert "default-src 'none'" in text


def test_texts_from_outside_stay_texts() -> None:
    text = page(replace(full_story(), commands=(EVIL,), limits=(EVIL,), settings={EVIL: EVIL}))
    assert "bad()</script>" not in text
    assert text.count("<script") == 2


def test_the_top_says_that_two_seeds_claim_nothing_and_that_eight_may() -> None:
    few, many = (
        re.sub(r".*<header>|</header>.*", "", page(full_story(seeds)), flags=re.S) for seeds in (2, 8)
    )
    assert "2 seeds stand behind each score: too few to claim anything" in few
    assert "verdict-few" in few
    assert "verdict-gain" not in few
    assert "8 seeds stand behind each score, enough" in many
    assert "verdict-gain" in many


def test_a_difference_that_may_be_chance_is_called_none() -> None:
    arms = {"original": np.array([10.0, 50, 30, 70]), "ASTRO": np.array([20.0, 60, 10, 80])}
    text = page(replace(full_story(), scores=(Scores("fql", arms, 50, 10),)))
    assert "FQL: no clear difference" in text
    assert "0 of 1 comparison" in text


def test_trajectories_are_called_longer_only_if_they_are() -> None:
    story = full_story()
    assert "30 longer trajectories" in page(story)
    shorter = replace(story, augmented=facts("augmented", trajectories=30, median=120.0))
    assert "30 trajectories stitched" in page(shorter)


def test_every_rejection_stands_with_its_count() -> None:
    text = page(full_story())
    for words in ("Chains: 100 proposed", "60 <span>60.0 %", "30 <span>30.0 %", "10 <span>10.0 %"):
        assert words in text


def test_an_account_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(DataError, match="add up"):
        Account("Chains", 10, 5, {"reason": 4})


def test_the_same_story_gives_the_same_bytes_and_replaces_the_old_page(tmp_path: Path) -> None:
    path = write_page(full_story(), tmp_path / "pages" / "report.html")
    first = path.read_bytes()
    assert write_page(bare_story(), path).read_bytes() != first
    assert write_page(full_story(), path).read_bytes() == first
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
