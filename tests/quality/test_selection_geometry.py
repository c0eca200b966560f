"""What a rule's targets look like, on paths and a maze worked by hand."""

import json
import math

import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.geodesics import MazeGrid
from astro_rl.quality.selection_geometry import RULES, Yardstick, selection_geometry, shapes
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import get_task
from tests.fitted import Fitted

SHAPE = ChainShape(pieces=2, segment=3, mask=3)


def of(*places: tuple[float, float]) -> dict[str, float | None]:
    found = shapes(np.array([places], float))
    return {name: getattr(found, name).mean for name in ("turn", "turn_sum", "curvature", "straightness")}


def test_shapes_by_hand() -> None:
    straight = of((0, 0), (1, 0), (2, 0), (3, 0))
    assert straight == {"turn": 0, "turn_sum": 0, "curvature": 0, "straightness": 1}
    # A quarter turn to the left, one to the right: |Δθ| π/2 each. κ = ‖(0, 1) − (1, 0)‖ / (1 + 1).
    stairs = of((0, 0), (1, 0), (1, 1), (2, 1))
    assert stairs["turn"] == pytest.approx(math.pi / 2) and stairs["turn_sum"] == pytest.approx(math.pi)
    assert stairs["curvature"] == stairs["straightness"] == pytest.approx(math.sqrt(2) / 2)
    # Back and forth: one angle is never above π, the sum of the two is; κ = 2 / (1 + 1).
    back = of((0, 0), (1, 0), (0, 0), (1, 0))
    assert back["turn"] == pytest.approx(math.pi) and back["turn_sum"] == pytest.approx(2 * math.pi)
    assert back["curvature"] == 1 and back["straightness"] == 0
    # Twice the size: half the curvature, and the same turns.
    assert of((0, 0), (2, 0), (2, 2), (4, 2))["curvature"] == pytest.approx(math.sqrt(2) / 4)


def test_places_that_do_not_move_have_no_angle_and_are_left_out() -> None:
    still = np.array([[(0, 0), (0, 0), (0, 0), (0, 0)], [(0, 0), (1, 0), (2, 0), (3, 0)]], float)
    found = shapes(still)
    assert (found.turn.count, found.turn.mean) == (1, 0.0)
    assert shapes(still[:1]).turn.mean is None


def u_maze() -> Dataset:
    """D4RL's U: along the bottom from x = 0 to 8, up the right side from y = 0.5, back along the top; 0.5 a step."""
    way = np.arange(17) * 0.5
    bottom = np.stack([way, 0 * way], axis=1)
    side = np.stack([0 * way[1:] + 8, way[1:]], axis=1)
    top = np.stack([8 - way, 0 * way + 8], axis=1)
    places = np.concatenate([bottom, side, top]).astype(np.float32)
    return from_arrays(places, np.zeros((50, 1), np.float32), offsets=np.array([0, 17, 33, 50]))


def test_walls_reach_and_what_was_joined_by_hand() -> None:
    yard = Yardstick.of(u_maze(), get_task("antmaze-umaze-v2"), SHAPE, across=16)
    assert yard.reach == pytest.approx(2.0), "M + 1 = 4 steps of 0.5"
    bottom, top = 0, 33
    recorded = yard.geometry("recorded", np.array([[bottom, bottom + 6]]))
    assert (recorded.behind_wall, recorded.out_of_reach, recorded.never_joined) == (0, 0, 0)
    assert recorded.gap.mean == pytest.approx(2.0) and recorded.pieces.straightness.mean == pytest.approx(1)
    # From (1, 0) to (1, 8): straight through the wall, and round it by both of its corners.
    across = yard.geometry("across", np.array([[bottom, top + 14]]))
    assert (across.behind_wall, across.out_of_reach, across.never_joined) == (1, 1, 1)
    assert across.gap.mean == pytest.approx(2 * math.hypot(5, 2) + 4, abs=1e-4)
    # From (7, 0) to (8, 1): near and in sight, but the bottom's recording ends where the side's begins.
    corner = yard.geometry("corner", np.array([[12, 18]]))
    assert (corner.behind_wall, corner.out_of_reach, corner.never_joined) == (0, 0, 1)
    assert corner.gap.mean == pytest.approx(math.sqrt(2))
    # Up the side as the last step along the bottom goes right: 45° into the gap, 45° out of it.
    assert corner.steps.turn.mean == pytest.approx(math.pi / 4)
    together = yard.geometry("all", np.array([[bottom, bottom + 6], [bottom, top + 14]]), examples=5)
    assert (together.pairs, together.behind_wall) == (2, 0.5)
    assert [each["behind_wall"] for each in together.examples] == [False, True]
    assert together.examples[1]["target"] == [[1.0, 8.0], [0.5, 8.0], [0.0, 8.0]]


def test_no_plane_no_pairs_and_no_other_maze() -> None:
    with pytest.raises(UnavailableError, match="not set in a maze"):
        Yardstick.of(u_maze(), get_task("scene-play"), SHAPE)
    with pytest.raises(DataError, match=r"(?s)behind walls.*antmaze-medium"):
        Yardstick.of(u_maze(), get_task("antmaze-medium-diverse-v2"), SHAPE)


def test_every_rule_of_a_fit(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a room without walls, since the walks know of none."""
    room = MazeGrid.of_walls(np.zeros((2, 2), bool))
    monkeypatch.setattr(MazeGrid, "of_task", classmethod(lambda cls, task: room))
    report = selection_geometry(
        fitted.stitcher.models,
        fitted.dataset,
        get_task("pointmaze-medium-stitch"),
        pairs=100,
        latents=np.load(fitted.folder / "latents.npy"),
    )
    assert tuple(report.rules) == RULES
    assert all(found.pairs == 100 and found.behind_wall == 0 for found in report.rules.values())
    original, random = report.rules["original"], report.rules["random"]
    assert original.never_joined == 0, "what was recorded was joined"
    assert random.never_joined > 0.5
    assert original.out_of_reach < 0.1 < random.out_of_reach
    saved = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert saved["rules"]["temporal"]["pairs"] == 100 and saved["paper"]["temporal"]["turn"] == [1.253, 0.451]
    assert "TD-Space" in report.table() and "Pre-Gen+Eucli" in report.table()
