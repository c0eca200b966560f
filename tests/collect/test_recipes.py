"""Episodes are what OGBench makes: layout, lengths, noise, goals, and the dynamics of the simulator."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from astro_rl.collect.episodes import Columns, build_collector, episode_seed, make_episode
from astro_rl.collect.manipulation import cube_stays_visible
from astro_rl.collect.mazes import steps_from, vertex_cells
from astro_rl.data.catalogue import RECIPES
from astro_rl.envs.build import make_env
from astro_rl.errors import UnavailableError

POINT_STITCH = RECIPES["pointmaze-medium-stitch-v0"]


@pytest.fixture(scope="module")
def stitched() -> list[Columns]:
    collector = build_collector(POINT_STITCH)
    return [make_episode(collector, 0, "train", number) for number in range(25)]


@pytest.fixture(scope="module")
def medium_maze() -> Any:
    return make_env("pointmaze-medium-v0").unwrapped


def test_rows_have_ogbench_columns_types_and_one_terminal(stitched: list[Columns]) -> None:
    for episode in stitched:
        described = {name: (column.dtype.str, column.shape) for name, column in episode.items()}
        assert described == {
            "observations": ("<f4", (201, 2)),
            "actions": ("<f4", (201, 2)),
            "terminals": ("|b1", (201,)),
            "qpos": ("<f4", (201, 2)),
            "qvel": ("<f4", (201, 2)),
        }
        assert np.flatnonzero(episode["terminals"]).tolist() == [200]
        np.testing.assert_array_equal(episode["observations"], episode["qpos"])


def test_stitch_ends_four_cells_from_its_start(stitched: list[Columns], medium_maze: Any) -> None:
    ends = set()
    for episode in stitched:
        start, end = (medium_maze.xy_to_ij(episode["qpos"][row]) for row in (0, -1))
        assert steps_from(medium_maze.maze_map == 1, start)[end] == 4
        ends.add(end)
    assert len(ends) > 5


def test_navigate_goes_on_to_further_goals(medium_maze: Any) -> None:
    recipe = RECIPES["pointmaze-medium-navigate-v0"]
    episode = make_episode(build_collector(recipe), 0, "train", 0)
    assert len(episode["terminals"]) == 1001
    visited = {medium_maze.xy_to_ij(xy) for xy in episode["qpos"]}
    assert len(visited & set(vertex_cells(medium_maze.maze_map == 1))) >= 8
    moved = np.linalg.norm(np.diff(episode["qpos"], axis=0), axis=1)
    assert moved[500:].mean() > 0.5 * moved[:500].mean(), "it must not stop at its first goal"


def test_explore_holds_a_random_direction_for_ten_steps() -> None:
    recipe = replace(POINT_STITCH, kind="explore", noise=0.0, episode_rows=50)
    actions = make_episode(build_collector(recipe), 0, "train", 0)["actions"].reshape(5, 10, 2)
    assert np.ptp(actions, axis=1).max() == 0.0
    np.testing.assert_allclose(np.linalg.norm(actions[:, 0], axis=1), 1.0, atol=1e-5)
    assert len(np.unique(actions[:, 0], axis=0)) == 5


def test_point_noise_is_the_recipe() -> None:
    recipe = replace(POINT_STITCH, episode_rows=1)
    noisy, clean = build_collector(recipe), build_collector(replace(recipe, noise=0.0))
    pairs = [[make_episode(c, 0, "train", k)["actions"][0] for c in (noisy, clean)] for k in range(250)]
    actions, expert = np.swapaxes(np.array(pairs), 0, 1)
    np.testing.assert_allclose(np.linalg.norm(expert, axis=1), 1.0, atol=1e-3)
    # Clipping at ±1 reaches only the outer tail here, which the median does not see.
    deviation = np.abs(actions - expert)[np.abs(expert) < 0.5]
    assert np.median(deviation) / 0.6745 == pytest.approx(0.5, rel=0.15)


def test_pointmaze_rows_follow_from_rows(stitched: list[Columns], medium_maze: Any) -> None:
    episode = stitched[0]
    medium_maze.reset()
    for row in range(200):
        state = (episode[name][row].astype(np.float64) for name in ("qpos", "qvel"))
        medium_maze.set_state(*state)
        following, *_ = medium_maze.step(episode["actions"][row].astype(np.float64))
        np.testing.assert_allclose(following, episode["observations"][row + 1], atol=1e-5)


def test_antmaze_rows_follow_from_rows() -> None:
    episode = make_episode(build_collector(RECIPES["antmaze-medium-explore-v0"]), 0, "val", 3)
    assert len(episode["terminals"]) == 501
    maze: Any = make_env("antmaze-medium-v0").unwrapped
    maze.reset()
    for row in range(0, 500, 5):
        state = (episode[name][row].astype(np.float64) for name in ("qpos", "qvel"))
        maze.set_state(*state)
        following, *_ = maze.step(episode["actions"][row].astype(np.float64))
        np.testing.assert_allclose(following[:15], episode["observations"][row + 1, :15], atol=1e-3)


def test_a_teleport_shows_between_observation_and_state() -> None:
    """OGBench returns the observation from before the jump; the next state is the one after it."""
    recipe = RECIPES["pointmaze-teleport-navigate-v0"]
    episode = make_episode(build_collector(recipe), 0, "train", 1)
    apart = np.linalg.norm(episode["observations"] - episode["qpos"], axis=1)
    jumps = np.flatnonzero(apart > 1e-6)
    assert len(jumps) > 0
    exits = np.array([(24.0, 0.0), (0.0, 20.0), (36.0, 20.0)])
    for row in jumps:
        assert np.linalg.norm(exits - episode["qpos"][row], axis=1).min() < 1e-5


def test_cubes_are_moved_again_and_again_by_both_controllers() -> None:
    play, noisy = (
        make_episode(build_collector(replace(RECIPES[name], episode_rows=220)), 0, "train", 0)
        for name in ("cube-single-play-v0", "cube-single-noisy-v0")
    )
    for episode in (play, noisy):
        assert episode["observations"].shape == (220, 28)
        assert "button_states" not in episode
        lifted = episode["qpos"][:, 16] > 0.08
        lifts = np.flatnonzero(lifted[1:] & ~lifted[:-1])
        places = episode["qpos"][lifts, 14:16]
        assert len(lifts) >= 2, "a new target follows a finished one"
        assert np.linalg.norm(places[-1] - places[0]) > 0.03, "and lies elsewhere"
    # Plans are smooth, and a tenth of the noisy actions is uniform: steps of the action differ by far more.
    roughness = [np.abs(np.diff(e["actions"][:, :3], axis=0)).mean() for e in (play, noisy)]
    assert roughness[1] > 2 * roughness[0]


def test_scene_keeps_button_states_and_does_not_depend_on_earlier_episodes() -> None:
    # Closed-loop controllers read the target of the moment, which the environment remembers across resets.
    collector = build_collector(replace(RECIPES["scene-noisy-v0"], episode_rows=80))
    numbers = (0, 1, 2)
    once = [make_episode(collector, 0, "train", number) for number in numbers]
    again = [make_episode(collector, 0, "train", number) for number in reversed(numbers)][::-1]
    for first, second in zip(once, again, strict=True):
        assert first["button_states"].dtype == np.int64
        assert set(np.unique(first["button_states"])) <= {0, 1}
        assert first["qpos"].shape == (80, 25)
        for name, column in first.items():
            assert column.tobytes() == second[name].tobytes(), name


@pytest.mark.parametrize(
    ("y", "z", "kept"),
    [(0.0, 0.02, True), (0.3, 0.02, False), (-0.31, 0.02, False), (-0.31, 0.07, True), (-0.31, 0.2, False)],
)
def test_scene_episodes_whose_cube_is_lost_are_not_kept(y: float, z: float, kept: bool) -> None:
    qpos = np.zeros((3, 25), np.float32)
    qpos[1, 15:17] = y, z
    assert cube_stays_visible(qpos) is kept


def test_lost_episodes_are_made_again_with_another_seed() -> None:
    class Clumsy:
        def __init__(self, failures: int) -> None:
            self.failures, self.seeds = failures, []

        def episode(self, seed: int) -> Columns | None:
            self.seeds.append(seed)
            return None if len(self.seeds) <= self.failures else {"terminals": np.ones(1, bool)}

    clumsy = Clumsy(failures=2)
    make_episode(clumsy, 7, "train", 4)
    assert clumsy.seeds == [episode_seed(7, "train", 4, attempt) for attempt in range(3)]
    with pytest.raises(UnavailableError, match=r"Episode 4 of train went wrong 100 times"):
        make_episode(Clumsy(failures=1000), 7, "train", 4)


def test_every_episode_has_a_seed_of_its_own() -> None:
    seeds = {
        episode_seed(dataset, split, number)
        for dataset in range(5)
        for split in ("train", "val")
        for number in range(200)
    }
    assert len(seeds) == 5 * 2 * 200
