"""From datasets to a story: what is recorded, what generated, and from where."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from astro_rl.errors import DataError
from astro_rl.report.gather import (
    chains_of,
    distance_map,
    facts_of,
    fragments_of,
    gather,
    runs_of,
    stitched_of,
)
from astro_rl.report.outcomes import scores_of
from astro_rl.report.page import page
from astro_rl.report.provenance import accounts_of
from astro_rl.run.files import write_json
from astro_rl.tasks import get_task
from tests.report.stories import augmented_from, recorded

XY = (0, 1)


class Sideways:
    """Steps that count x alone."""

    def steps(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.abs(a[:, 0] - b[:, 0])


def test_facts_count_generated_states_and_recordings() -> None:
    dataset = recorded()
    found = facts_of(augmented_from(dataset), "augmented")
    assert found.generated_share == pytest.approx(4 / 24)
    assert found.sources == 2
    assert facts_of(dataset, "recorded").generated_share is None


def test_recorded_and_generated_states_are_told_apart() -> None:
    dataset = recorded()
    (track,) = stitched_of(augmented_from(dataset), dataset, XY)
    assert track.generated.tolist() == [False] * 10 + [True] * 4 + [False] * 10
    assert track.source is not None
    assert track.source.tolist() == [0] * 10 + [-1] * 4 + [2] * 10
    assert track.xy[-1].tolist() == [24.0, 2.0]


def test_a_state_that_names_a_source_but_is_not_its_counts_as_generated() -> None:
    """`rollout` completes known states too: the row says where it was asked for, not that it is the recorded one."""
    dataset = recorded()
    augmented = augmented_from(dataset)
    observations = augmented.observations.copy()
    observations[3] += 0.5
    (track,) = stitched_of(replace(augmented, observations=observations), dataset, XY)
    assert bool(track.generated[3])
    assert not track.generated[2]


def test_a_chain_is_the_recorded_pieces_in_their_order() -> None:
    dataset = recorded()
    (chain,) = chains_of(augmented_from(dataset), dataset, XY)
    assert [piece[0].tolist() for piece in chain.pieces] == [[0.0, 0.0], [15.0, 2.0]]
    assert [len(piece) for piece in chain.pieces] == [10, 10]
    assert chain.statistic == 1.25


def test_runs_split_where_rows_do_not_follow_one_another() -> None:
    assert runs_of(np.array([4, 5, -1, 6, 7, 20, 21, -1])) == [(0, 2), (3, 5), (5, 7)]


def test_a_distance_map_measures_from_the_state_nearest_to_the_goal() -> None:
    found = distance_map(Sideways(), recorded(), XY, near=(7.2, 3.1))
    assert found.source.tolist() == [7.0, 3.0]
    np.testing.assert_allclose(found.steps.values, np.abs(found.steps.xy[:, 0] - 7))


def test_fragments_are_spread_over_the_data_and_counted() -> None:
    found = fragments_of(recorded(), XY, count=3)
    assert found.total == 6
    assert [track[0, 1] for track in found.tracks] == [0, 2, 5]


def test_accounts_come_from_the_lineage_and_empty_ones_are_left_out() -> None:
    (account,) = accounts_of(augmented_from(recorded()).info["lineage"])
    assert (account.proposed, account.kept, dict(account.rejected)) == (8, 5, {"not finite": 3})


def test_plain_arrays_make_a_page_without_maps() -> None:
    dataset = recorded()
    story = gather(None, dataset, augmented_from(dataset), name="mine")
    assert story.fragments is None
    assert story.stitched == ()
    assert story.lineage == {"seed": "4", "source digest": "abc"}
    assert "mine" in page(story)


def test_a_maze_task_gives_walls_and_goal() -> None:
    task = get_task("pointmaze-medium-stitch-task3")
    dataset = recorded()
    story = gather(task, dataset, augmented_from(dataset), distances=Sideways())
    assert story.goal == (4.0, 12.0)
    assert story.walls is not None
    assert story.distance is not None
    assert story.distance.steps.cell == 0.5


def results(folder: Path, scores: list[float], steps: int = 100) -> Path:
    folder.mkdir()
    episodes = {"returns": [[0.0] * 5] * len(scores), "successes": [[True] * 5] * len(scores)}
    evaluation = {"scores": scores, "episodes": episodes}
    write_json(folder / "results.json", {"steps": steps, "seeds": [0], "evaluation": evaluation})
    return folder


def test_scores_of_an_arm_are_put_together_from_its_runs(tmp_path: Path) -> None:
    one, two = results(tmp_path / "a", [10.0, 20.0]), results(tmp_path / "b", [30.0])
    found = scores_of("iql", {"original": [one, two]})
    assert found is not None
    assert found.arms["original"].tolist() == [10, 20, 30]
    assert (found.episodes, found.updates, found.unit) == (5, 100, "%")


def test_runs_of_different_length_are_not_compared(tmp_path: Path) -> None:
    one, two = results(tmp_path / "a", [10.0]), results(tmp_path / "b", [30.0], steps=200)
    with pytest.raises(DataError, match="different length"):
        scores_of("iql", {"original": [one], "ASTRO": [two]})
