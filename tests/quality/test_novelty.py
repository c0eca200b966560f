"""Cells, joins and neighbours on data whose novelty can be counted by hand."""

import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError, DataError
from astro_rl.quality.cells import NEVER, Cells, fewest_steps, joins, visits
from astro_rl.quality.neighbours import Units, nearest
from astro_rl.quality.novelty import coverage, novelty
from astro_rl.quality.parts import marked, real_parts
from tests.fitted import walks


def of_cells(*paths: list[int], **extras: np.ndarray) -> Dataset:
    """Paths along x through cells of side 1, in the middle of each."""
    x = np.concatenate([np.array(path, np.float32) + 0.5 for path in paths])
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    places = np.stack([x, np.full_like(x, 0.5)], axis=1)
    return from_arrays(places, np.zeros((len(x), 1), np.float32), offsets=offsets, extras=extras)


GRID = Cells(low=(0.0, 0.0), side=1.0, xy=(0, 1))


def test_stays_and_the_fewest_steps_between_cells() -> None:
    found = visits(np.array([0, 0, 1, 2, 2, 0, 1]), np.array([0, 5, 7]))
    assert found.cell.tolist() == [0, 1, 2, 0, 1]
    assert found.entered.tolist() == [0, 2, 3, 5, 6]
    assert found.left.tolist() == [1, 2, 4, 5, 6]
    fewest = fewest_steps(joins(found, within=10), 3)
    # 0 is left at row 1; 1 is entered at 2 and 2 at 3. The second trajectory joins 0 and 1 as fast.
    assert fewest.tolist() == [[NEVER, 1, 2], [NEVER, NEVER, 1], [NEVER] * 3], "and nothing goes from 2 to 0"
    slow = joins(visits(np.array([0, 1, 1, 1, 2]), np.array([0, 5])), within=2)
    assert slow.steps.tolist() == [1, 1], "from 0 to 2 it is four steps"


def test_a_cell_that_is_left_and_entered_again_joins_nothing_with_itself() -> None:
    found = joins(visits(np.array([0, 1, 0]), np.array([0, 3])), within=5)
    assert sorted(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(0, 1), (1, 0)]


def test_coverage_is_what_it_was_made_to_be() -> None:
    real = of_cells([0, 1, 2], [2, 3, 4])
    stitched = of_cells([0, 1, 2, 3, 4], [4, 5])
    found = coverage(marked(stitched), real, GRID, within=(1, 3))
    assert found.rows == 7 and found.cells == 6
    assert found.new_states == pytest.approx(1 / 7), "cell 5, once in seven states"
    assert found.new_cells == pytest.approx(1 / 6)
    # Within a step: 01 12 23 34 and 45, of which the recordings have all but the last.
    assert found.pairs["1"] == 5 and found.new_pairs["1"] == pytest.approx(1 / 5)
    # Within three: those, 02 13 24 and 03 14. New are 13, 03, 14 and 45.
    assert found.pairs["3"] == 10 and found.new_pairs["3"] == pytest.approx(4 / 10)
    again = coverage(marked(real), real, GRID, within=(1, 3))
    assert again.new_states == again.new_cells == again.new_pairs["3"] == 0.0


def test_a_join_that_recordings_make_only_slower_is_new() -> None:
    real = of_cells([0, 0, 1, 1, 1, 2])
    found = coverage(marked(of_cells([0, 1, 2])), real, GRID, within=(2, 4))
    assert found.new_pairs["2"] == pytest.approx(1 / 3), "0 to 2 takes four recorded steps"
    assert found.new_pairs["4"] == 0.0


def test_only_generated_states_count_where_lineage_tells_them() -> None:
    real = of_cells([0, 1])
    stitched = of_cells(
        [0, 1, 7, 8],
        source_step=np.array([0, 1, -1, -1], np.int32),
        source_trajectory=np.array([0, 0, -1, -1], np.int32),
    )
    found = coverage(marked(stitched, real), real, GRID)
    assert found.new_states == 1.0 and found.cells == 2


def test_a_rolled_out_state_is_generated_although_it_names_a_source() -> None:
    """`rollout` names the recording it was meant to follow; what it says stands there is the model's."""
    real = of_cells([0, 1, 2], [5, 6, 7])
    extras = {
        "source_step": np.array([0, 1, -1, 1], np.int32),
        "source_trajectory": np.array([0, 0, -1, 1], np.int32),
    }
    rolled = of_cells([0, 3, 4, 6], **extras)
    assert (marked(rolled, real).extras["source_step"] < 0).tolist() == [False, True, True, False]
    assert (marked(rolled).extras["source_step"] < 0).tolist() == [False, False, True, False]
    # Recordings that it was not made from say nothing about it.
    other = of_cells([20, 21, 22], [25, 26, 27])
    assert (marked(rolled, other).extras["source_step"] < 0).tolist() == [False, False, True, False]


def test_nearest_neighbours_are_the_nearest() -> None:
    generator = np.random.default_rng(0)
    queries, reference = generator.normal(size=(50, 6)), generator.normal(size=(5000, 6))
    apart = np.sqrt(np.square(queries[:, None] - reference[None]).mean(axis=-1)).min(axis=1)
    np.testing.assert_allclose(nearest(queries, reference), apart)
    # A copy far from the origin is at distance 0, not at what is left of large squares.
    assert not nearest(reference[:7] + 1e4, reference + 1e4).any()


def test_units_leave_out_what_never_varies() -> None:
    observations = np.array([[0, 5], [2, 5], [0, 5], [2, 5]], np.float32)
    units = Units.of(from_arrays(observations, np.zeros((4, 1), np.float32), offsets=[0, 4]))
    # Transitions leave 0, 2, 0 (spread √(8/9)) and change by 2 each; the action is always 0.
    assert units.state == pytest.approx([np.sqrt(8 / 9), 0.0])
    assert units.change == pytest.approx([2.0, 0.0])
    assert units.action.tolist() == [0.0]
    still = from_arrays(np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32), offsets=[0, 4])
    with pytest.raises(DataError, match="constant"):
        Units.of(still)


def test_other_walks_of_the_same_kind_are_as_new_as_held_out_ones_and_a_strangers_are_not() -> None:
    real = real_parts(walks(0), held_out=walks(1))
    same = novelty(marked(walks(2)), real, xy=(0, 1), rows=500)
    assert same.states is not None and same.coverage is not None and same.coverage_real is not None
    assert same.states.median == pytest.approx(same.states_real.median, rel=1.0)
    moved = walks(2)
    far = from_arrays(np.asarray(moved.observations) + 100, moved.actions, offsets=moved.offsets)
    stranger = novelty(marked(far), real, xy=(0, 1), rows=500)
    assert stranger.states is not None and stranger.coverage is not None
    assert stranger.states.above_real == 1.0 and stranger.coverage.new_states == 1.0
    assert stranger.coverage_real == same.coverage_real


def test_data_without_a_plane_has_neighbours_all_the_same() -> None:
    found = novelty(marked(walks(2)), real_parts(walks(0)), rows=100)
    assert found.coverage is None and found.states is not None and found.transitions is not None
    copied = novelty(marked(walks(0)), real_parts(walks(0)), rows=100)
    assert copied.transitions is not None and copied.transitions.median == 0.0
    assert copied.transitions_real.median > 0.0, "held-out recordings are not held against themselves"


def test_the_same_seed_gives_the_same_figures() -> None:
    given = marked(walks(2)), real_parts(walks(0))
    one, again, other = (novelty(*given, xy=(0, 1), rows=100, seed=seed) for seed in (3, 3, 4))
    assert one.as_json() == again.as_json() != other.as_json()


def test_what_cannot_be_looked_at_is_refused() -> None:
    with pytest.raises(ConfigError, match="two entries"):
        novelty(marked(walks(2)), real_parts(walks(0)), xy=(0, 2))
    with pytest.raises(DataError, match="One recording alone"):
        real_parts(of_cells([0, 1, 2]))
    with pytest.raises(DataError, match="held-out data is not of the environment"):
        real_parts(walks(0), held_out=from_arrays(np.zeros((3, 5)), np.zeros((3, 2)), offsets=[0, 3]))
