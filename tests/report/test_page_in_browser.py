"""The page as a browser sees it: no errors, no requests, choices that work, a phone's width."""

from pathlib import Path

import pytest

from astro_rl.report.page import page
from tests.report.browser import visit
from tests.report.stories import bare_story, full_story

FIGURES = """
const boxes = [...document.querySelectorAll("[data-figure]")].map((figure) => {
  const box = figure.getBoundingClientRect();
  return [figure.dataset.figure, box.width > 100 && box.height > 20];
});
const drawn = [...document.querySelectorAll("svg.map")].map((map) => map.getBoundingClientRect().height);
return { boxes, smallest: Math.min(...drawn), images: [...document.images].every((image) => image.naturalWidth > 0) };
"""

CHOOSE = """
const viewer = document.querySelector("[data-viewer=stitched]");
const chosen = viewer.querySelector(".chosen"), thumbs = [...viewer.querySelectorAll(".thumb")];
const slider = viewer.querySelector("input"), said = () => viewer.querySelector(".readout").textContent;
const seen = [chosen.getAttribute("href")];
thumbs[2].click();
seen.push(chosen.getAttribute("href"), thumbs.map((thumb) => thumb.ariaPressed).join());
viewer.querySelector("[data-turn='-1']").click();
seen.push(chosen.getAttribute("href"), said());
slider.value = 10;
slider.dispatchEvent(new Event("input"));
seen.push(said());
const main = viewer.querySelector(".main svg"), whole = main.viewBox.baseVal.width;
viewer.querySelector("[data-zoom]").click();
seen.push(Math.round(whole / main.viewBox.baseVal.width));
viewer.querySelector("[data-zoom]").click();
seen.push(Math.round(whole / main.viewBox.baseVal.width), viewer.querySelector(".controls").hidden);
return seen;
"""

POINT = """
const group = document.querySelector("#values [data-fields]"), map = group.querySelector("svg[data-field]");
map.scrollIntoView();
const box = map.getBoundingClientRect();
map.dispatchEvent(new PointerEvent("pointermove", { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
const told = group.querySelector(".readout").textContent;
map.dispatchEvent(new PointerEvent("pointerleave"));
return [told, group.querySelector(".readout").textContent];
"""

STYLES = """
const stroke = (part) => getComputedStyle(document.querySelector(part)).stroke;
return [stroke("#stitched-0 .real"), stroke("#stitched-0 .generated"), getComputedStyle(document.querySelector(
  "#walls .wall")).fill];
"""


def test_it_loads_without_errors_and_asks_for_nothing(tmp_path: Path) -> None:
    seen = visit(page(full_story()), FIGURES, tmp_path)
    assert seen.faults == []
    assert seen.addresses == set()
    assert all(visible for _, visible in seen.found["boxes"])
    assert len(seen.found["boxes"]) == 8
    assert seen.found["smallest"] > 40
    assert seen.found["images"]


def test_the_checks_see_a_request(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing: the same page with an address in it, first heeding its policy."""
    asking = page(bare_story()).replace("<main>", '<main><img src="http://127.0.0.1:9/x.png" alt="">')
    stopped = visit(asking, "await wait(); return 1;", tmp_path)
    assert any("policy" in fault for fault in stopped.faults)
    assert stopped.addresses == set()
    free = tmp_path / "free"
    free.mkdir()
    seen = visit(asking.replace("img-src data:", "img-src *"), "await wait(); return 1;", free)
    assert any("x.png" in address for address in seen.addresses) or any(
        "policy" in fault for fault in seen.faults
    )


def test_a_trajectory_is_chosen_walked_and_magnified(tmp_path: Path) -> None:
    seen = visit(page(full_story()), CHOOSE, tmp_path)
    assert seen.faults == []
    assert seen.found == [
        "#stitched-0",
        "#stitched-2",
        "false,false,true,false",
        "#stitched-1",
        "State 1 of 20: recorded, from trajectory 3.",
        "State 11 of 20: generated.",
        3,
        1,
        False,
    ]


def test_pointing_at_a_value_map_reads_all_three(tmp_path: Path) -> None:
    told, after = visit(page(full_story()), POINT, tmp_path).found
    assert told.startswith("x ")
    for name in ("without augmented data −", "with augmented data −", "difference "):
        assert name in told
    assert after == "Point at a map to read all three at once."


def test_recorded_and_generated_steps_differ_in_colour_and_walls_are_filled(tmp_path: Path) -> None:
    """What <use> draws is styled by class alone: a selector that names an ancestor would leave it black."""
    real, generated, wall = visit(page(full_story()), STYLES, tmp_path).found
    assert len({real, generated, wall, "none", "rgb(0, 0, 0)"}) == 5


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_scrolls_in_one_direction_only(width: int, tmp_path: Path) -> None:
    found = visit(
        page(full_story(8)),
        "return [document.documentElement.scrollWidth, innerWidth];",
        tmp_path,
        width=width,
    ).found
    assert found == [width, width]
