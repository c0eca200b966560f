"""The further parts as a browser sees them: choices work, pointers read, nothing is fetched, a phone is wide enough."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from astro_rl.report.page import page
from astro_rl.report.table_page import table_page
from tests.report.browser import visit
from tests.report.evidence_stories import evidence_story, results_table
from tests.report.stories import bare_story

LOADED = """
const boxes = [...document.querySelectorAll("[data-figure]")].map((figure) => {
  const box = figure.getBoundingClientRect();
  return [figure.dataset.figure, box.width > 100 && box.height > 20];
});
return { boxes, images: [...document.images].every((image) => !image.src || image.naturalWidth > 0) };
"""

PAIRS = """
const figure = document.querySelector("[data-pairs]"), maps = [...figure.querySelectorAll("svg.map")];
const choices = [...figure.querySelectorAll(".choice")], whole = figure.querySelector("[data-whole]");
const wide = () => Math.round(100 * maps[0].viewBox.baseVal.width) / 100;
const told = () => [maps.map((map) => map.querySelector(".chosen").getAttribute("href")).join(),
  figure.querySelectorAll(".miss")[1].textContent, figure.querySelector(".about").textContent];
const near = wide(), seen = [told()];
choices[2].click();
seen.push(told(), choices.map((choice) => choice.ariaPressed).join());
whole.click();
seen.push(wide() > near, maps[0].viewBox.baseVal.x);
whole.click();
seen.push(wide() === near, figure.querySelector(".controls").hidden);
return seen;
"""

CHOSEN = """
const figure = document.querySelector("[data-chosen]");
const seen = (pair) => getComputedStyle(pair).display !== "none";
const shown = () => [...figure.querySelectorAll(".pair-of")].filter(seen);
const all = shown().length;
figure.querySelector("[data-kind=wall-between]").click();
const walls = shown().map((pair) => pair.classList.contains("wall-between"));
figure.querySelector("[data-kind='']").click();
return [all, walls, shown().length];
"""

CURVES = """
const figure = document.querySelector("[data-curves]"), charts = [...figure.querySelectorAll("[data-chart]")];
const seen = [charts.map((chart) => chart.hidden).join()];
figure.querySelectorAll(".choice")[1].click();
seen.push(charts.map((chart) => chart.hidden).join());
figure.querySelectorAll(".choice")[0].click();
const plot = charts[0].querySelector("svg");
plot.scrollIntoView();
const box = plot.getBoundingClientRect(), readout = charts[0].querySelector(".readout"), before = readout.textContent;
plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.x + 0.5 * box.width, clientY: box.y + 5 }));
seen.push(readout.textContent);
plot.dispatchEvent(new PointerEvent("pointerleave"));
seen.push(readout.textContent === before, before);
return seen;
"""

FILM = """
const figure = document.querySelector("[data-film]"), frames = [...figure.querySelectorAll(".frame")];
const screen = figure.querySelector(".screen"), shown = screen.querySelector(".shown");
const slider = screen.querySelector("input"), play = screen.querySelector("[data-play]");
const at = () => frames.findIndex((frame) => frame.querySelector("img").src === shown.src);
const seen = [screen.hidden, at()];
frames[4].click();
seen.push(at(), slider.value, screen.querySelector(".readout").textContent);
slider.value = 2;
slider.dispatchEvent(new Event("input"));
seen.push(at(), screen.classList.contains("is-real"));
play.click();
await new Promise((done) => setTimeout(done, 350));
seen.push(at() > 2, play.textContent);
play.click();
const stopped = at();
await new Promise((done) => setTimeout(done, 300));
seen.push(at() === stopped, play.textContent);
return seen;
"""

SORT = """
const table = document.querySelector("table.sortable"), heads = [...table.tHead.rows[0].cells];
const names = () => [...table.tBodies[1].rows].map((row) => row.cells[0].textContent);
const seen = [names()];
const press = (column) => { heads[column].querySelector("button").click(); return [names(), heads[column].ariaSort]; };
seen.push(press(4), press(4), press(4)[0], press(3)[0], press(0)[0]);
return [seen, [...table.tFoot.rows].map((row) => row.cells[0].textContent)];
"""


@cache
def whole() -> str:
    return page(evidence_story())


def test_all_parts_load_without_errors_and_ask_for_nothing(tmp_path: Path) -> None:
    seen = visit(whole(), LOADED, tmp_path)
    assert seen.faults == []
    assert seen.addresses == set()
    assert all(visible for _, visible in seen.found["boxes"]), seen.found["boxes"]
    assert seen.found["images"]


def test_a_pair_is_chosen_and_seen_on_the_whole_map(tmp_path: Path) -> None:
    seen = visit(whole(), PAIRS, tmp_path)
    assert seen.faults == []
    first, third, pressed, wider, left, near, hidden = seen.found
    assert first == [
        "#pair-0-0,#pair-0-1,#pair-0-2",
        "misses the target by 2.65; driven by its actions, by 2",
        "Pair 1: 6 states to fill in, between recordings 12 and 40.",
    ]
    assert third[0] == "#pair-2-0,#pair-2-1,#pair-2-2"
    assert pressed == "false,false,true"
    assert (wider, left, near, hidden) == (True, 0, True, False)


def test_one_kind_of_chosen_pairs_is_left(tmp_path: Path) -> None:
    seen = visit(whole(), CHOSEN, tmp_path)
    assert seen.faults == []
    assert seen.found == [6, [True], 6]


def test_curves_are_chosen_and_read(tmp_path: Path) -> None:
    """Half of 10,000 updates is where the 20th of 40 records stands."""
    first, second, told, back, before = visit(whole(), CURVES, tmp_path).found
    assert (first, second) == ("false,true", "true,false")
    assert told.startswith("After 5,000 updates: original −")
    assert "ASTRO −" in told
    assert back
    assert before.startswith("After 10,000 updates: ")


def test_curves_work_on_a_page_without_a_plane(tmp_path: Path) -> None:
    story = replace(bare_story(), curves=evidence_story().curves)
    seen = visit(page(story), CURVES, tmp_path)
    assert seen.faults == []
    assert seen.found[1] == "true,false"


def test_a_film_is_chosen_wound_and_played(tmp_path: Path) -> None:
    seen = visit(whole(), FILM, tmp_path)
    assert seen.faults == []
    assert seen.found[:5] == [False, 0, 4, "4", "State 21, recorded."]
    assert seen.found[5:7] == [2, False]
    assert seen.found[7:] == [True, "Pause", True, "Play"]


def test_a_table_sorts_within_its_groups_and_back(tmp_path: Path) -> None:
    seen = visit(table_page(results_table()), SORT, tmp_path)
    assert seen.faults == []
    assert seen.addresses == set()
    (given, down, up, back, failed, named), foot = seen.found
    group, point, medium, large = given
    assert group == "FQL"
    assert down == [[group, point, medium, large], "descending"]
    assert up == [[group, large, medium, point], "ascending"]
    assert back == given
    assert failed == [group, point, medium, large]  # a failed cell comes last
    assert named == [group, large, medium, point]
    assert foot == ["mean"]


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_scrolls_in_one_direction_only(width: int, tmp_path: Path) -> None:
    script = "return [document.documentElement.scrollWidth, innerWidth];"
    for name, text in (("run", whole()), ("table", table_page(results_table()))):
        folder = tmp_path / name
        folder.mkdir()
        assert visit(text, script, folder, width=width).found == [width, width], name
