"""The further parts of a run's page: present where a story has them, absent where not, with the right numbers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from astro_rl.errors import DataError
from astro_rl.report.curve_view import levels
from astro_rl.report.curves import Band
from astro_rl.report.evidence import Attempt, Curves, Measure, Measures, NoFilm, Reading
from astro_rl.report.findings import headline
from astro_rl.report.measure_view import measure_range, number_text
from astro_rl.report.page import page
from astro_rl.report.pairs_view import box_of, mean_misses
from astro_rl.report.plane import Plane
from astro_rl.report.story import Fragments
from tests.report.evidence_stories import evidence_story, geometry, pair
from tests.report.stories import EVIL, bare_story, facts, full_story, line
from tests.report.test_page import outline

PARTS = {"pairs", "geometry", "chosen", "metrics", "curves", "film"}


@cache
def told() -> str:
    return page(evidence_story())


def section(text: str, name: str) -> str:
    return text.split(f'<section id="{name}"', 1)[1].split("</section>", 1)[0]


def test_every_further_part_is_on_the_page_and_absent_ones_are_not() -> None:
    found = outline(told())
    assert set(found.figures) >= PARTS
    assert {reference[1:] for reference in found.references} <= set(found.names)
    assert not set(outline(page(full_story())).figures) & PARTS


def test_parts_without_a_plane_need_no_maps() -> None:
    story = evidence_story()
    flat = replace(bare_story(), geometry=story.geometry, metrics=story.metrics, curves=story.curves)
    assert set(outline(page(flat)).figures) == {"geometry", "metrics", "curves"}


def test_texts_of_further_parts_stay_texts() -> None:
    assert "bad()</script>" not in told()
    assert EVIL not in told()


def test_a_miss_is_the_mean_distance_from_the_target_at_its_own_time() -> None:
    """ASTRO is 0.5 above everywhere. MB's rise is 3·k/13 at state k: over the target's states 10 to 13 its mean is
    3·11.5/13 = 2.654. SI is exact, and driven ends 4 away."""
    one = pair()
    assert one.target == slice(10, 14)
    misses = {name: mean_misses((one, pair(2.0)), name) for name in one.attempts}
    assert misses["ASTRO"] == pytest.approx((0.5, 0.75))
    assert misses["MB"] == pytest.approx((3 * 11.5 / 13, 2.0))
    assert misses["SI"] == pytest.approx((0.0, 4.0))
    found = section(told(), "pairs")
    assert "misses the target by 2.65; driven by its actions, by 2" in found
    assert "Pair 1: 6 states to fill in, between recordings 12 and 40." in found


def test_a_pair_that_does_not_fit_together_is_refused() -> None:
    one = pair()
    with pytest.raises(DataError, match="do not fit"):
        replace(one, attempts={"MB": Attempt(one.given[:-1])})
    with pytest.raises(DataError, match="not all finite"):
        replace(one, attempts={"MB": Attempt(np.full_like(one.given, np.nan))})
    with pytest.raises(DataError, match="begins and ends"):
        replace(one, known=~one.known)


def test_without_a_simulator_nothing_is_said_about_driving() -> None:
    one = pair()
    undriven = replace(one, attempts={name: Attempt(each.xy) for name, each in one.attempts.items()})
    told = section(page(replace(evidence_story(), pairs=(undriven,))), "pairs")
    assert "driven" not in told
    assert "simulator" not in told


def test_the_close_up_holds_everything_drawn_and_stays_in_the_picture() -> None:
    """Places 0.2 to 7.5 along x and 2 to 6 along y, in a plane of 16 × 8 from the origin: y runs down in a picture."""
    x, y, wide, tall = box_of(Plane(0.0, 0.0, 16.0, 8.0), pair())
    assert x <= 0.2
    assert x + wide >= 7.5
    assert y <= 8 - 6
    assert y + tall >= 8 - 2
    assert wide / tall == pytest.approx(2)
    assert min(x, y) >= 0
    assert x + wide <= 16
    assert y + tall <= 8 + 1e-9


def test_measures_stand_beside_the_papers() -> None:
    found = section(told(), "geometry")
    assert "pregenerated, Euclidean: 1.10 ± 0.900 rad, paper 3.15 ± 2.62" in found
    assert "<b>2.25</b>" in found
    assert "2.25 (1.50 to 3)" in found
    assert found.count('class="paper"') == 4  # three readings and the key


def test_a_measures_scale_begins_at_0_unless_something_lies_below() -> None:
    direction, walls = geometry().measures
    assert measure_range(direction) == (0.0, 4.0)
    assert measure_range(walls) == (0.0, 40.0)
    assert measure_range(Measure("q", {"a": Reading(-30.0), "b": Reading(10.0)})) == (-40.0, 40.0)
    assert measure_range(Measure("q", {"a": Reading(-30.0)})) == (-40.0, 0.0)


def test_metrics_stand_beside_real_datas_and_what_did_not_apply_has_its_reason() -> None:
    found = section(told(), "metrics")
    assert "<b>real, held out</b> 0 %" in found
    assert "<b>augmented</b> 0.400 %" in found
    assert "<b>real, held out</b> –" in found
    assert "<b>augmented</b> −31.5" in found
    assert "What did not apply" in found
    assert "8 trajectories held out of training" in found


def test_kinds_of_chosen_pairs_are_counted() -> None:
    found = section(told(), "geometry")
    assert "3 pairs: 1 never joined by a recording, 2 none of these" in found
    assert "3 pairs: 1 behind a wall, 1 out of reach, 1 none of these" in found


def test_a_film_that_cannot_be_drawn_says_why_and_nothing_else_changes() -> None:
    story = evidence_story()
    text = page(replace(story, film=NoFilm("No renderer works here.")))
    assert "There is no film: No renderer works here." in section(text, "film")
    others = [name for name in outline(page(story)).figures if name != "film"]
    assert outline(text).figures == others


def test_generated_transitions_are_not_called_stitched_trajectories() -> None:
    singles = Fragments((line((1, 1), (1.2, 1.1), 2),), total=8_000)
    story = replace(
        full_story(),
        method="SynthER",
        stitched=(),
        chains=(),
        generated=singles,
        augmented=facts("augmented", trajectories=8_000, median=1.0),
    )
    assert headline(story) == "8,000 transitions generated by SynthER, fitted to 40 recorded fragments"
    assert "1 of 8,000 generated trajectories" in section(page(story), "generated")
    rival = replace(full_story(), method="DiffStitch")
    assert headline(rival).startswith("30 longer trajectories stitched by DiffStitch from")


def test_levels_are_round_and_hold_the_curve_but_not_its_outliers() -> None:
    found = levels([Band(np.array([0.1, 7.3]), None, None)])
    assert found == [0.0, 2.0, 4.0, 6.0, 8.0]
    spike = np.concatenate([[1e6], np.linspace(1, 2, 199)])
    assert levels([Band(spike, None, None)])[-1] < 10
    assert levels([Band(np.full(3, np.nan), None, None)]) == [0.0, 1.0]


def test_curves_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match="each seed and each point"):
        Curves("iql", "loss", np.arange(3), {"original": np.zeros((2, 4))})


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (-0.1234, "−0.123"), (12.34, "12.3"), (1234.5, "1,234"), (0.00012, "1.2e−04")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_measure_without_readings_of_a_set_leaves_a_dash() -> None:
    found = Measures((Measure("a", {"x": Reading(1.0)}), Measure("b", {"y": Reading(2.0)})))
    assert found.sets == ("x", "y")
    text = page(replace(bare_story(), geometry=found))
    assert section(text, "geometry").count("<td>–</td>") == 2
