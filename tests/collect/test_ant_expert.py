"""The shipped Ant policy: its arithmetic worked by hand, and that it walks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from astro_rl.collect.ant_expert import AntExpert, gelu
from astro_rl.collect.episodes import build_collector, make_episode
from astro_rl.data.catalogue import RECIPES


def f32(numbers: list) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)


def test_gelu_is_the_tanh_approximation() -> None:
    # 1: 0.5 (1 + tanh(0.7978846 · 1.044715)) = 0.5 (1 + tanh(0.8335620)) = 0.5 (1 + 0.6823839) = 0.8411920,
    # where the exact gelu is 0.8413447. −2: −(1 + tanh(−0.7978846 · 2.35772)) = −(1 − 0.9545977) = −0.0454023
    np.testing.assert_allclose(gelu(f32([0.0, 1.0, -2.0])), [0.0, 0.8411920, -0.0454023], atol=1e-6)


def test_layers_are_applied_in_order_and_squashed(tmp_path: Path) -> None:
    first = np.zeros((29, 2), np.float32)
    first[0, 0], first[27, 0], first[28, 1] = 1.0, 2.0, 1.0
    mean = np.zeros((1, 8), np.float32)
    mean[0, 3] = 2.0
    layers = {
        "actor_net.Dense_0.kernel": first,
        "actor_net.Dense_0.bias": f32([-1.5, -2.0]),
        "actor_net.Dense_1.kernel": f32([[1.0], [10.0]]),
        "actor_net.Dense_1.bias": f32([0.6128311]),
        "mean_net.kernel": mean,
        "mean_net.bias": f32([0.5, 0, 0, -1.0, 0, 0, 0, 0]),
    }
    np.savez(tmp_path / "weights.npz", **layers)
    state = np.zeros(27)
    state[0] = 0.5
    # hidden 1: gelu(0.5 + 2·1 − 1.5) = gelu(1) = 0.8411920, gelu(0 − 2) = −0.0454023
    # hidden 2: gelu(0.8411920 − 0.4540231 + 0.6128311 = 1) = 0.8411920
    # action 3: tanh(2·0.8411920 − 1 = 0.6823840)
    expected = np.zeros(8)
    expected[0], expected[3] = np.tanh(0.5), 0.5930671
    actions = AntExpert(tmp_path / "weights.npz")(state, np.array([1.0, 0.0]))
    np.testing.assert_allclose(actions, expected, atol=1e-5)


def test_the_ant_walks_as_far_as_the_expert_did_in_ogbench_generator() -> None:
    """Eleven units an episode on antmaze-medium, the figure measured with OGBench's generator."""
    collector = build_collector(RECIPES["antmaze-medium-stitch-v0"])
    episodes = [make_episode(collector, 0, "train", number) for number in range(12)]
    moved = [np.linalg.norm(e["qpos"][-1, :2] - e["qpos"][0, :2]) for e in episodes]
    assert 9.5 < np.mean(moved) < 12.5
    fallen = np.concatenate([e["qpos"][:, 2] for e in episodes]) < 0.3
    assert fallen.mean() < 0.05


def test_expert_is_not_a_constant() -> None:
    expert = AntExpert()
    state = np.zeros(27)
    state[0], state[1] = 0.75, 1.0
    east, west = (expert(state, np.array([x, 0.0])) for x in (1.0, -1.0))
    assert np.abs(east - west).max() > 0.5
    assert np.abs(east).max() <= 1.0


def test_action_noise_of_ants_is_the_recipe() -> None:
    recipe = replace(RECIPES["antmaze-medium-stitch-v0"], episode_rows=1)
    noisy, clean = build_collector(recipe), build_collector(replace(recipe, noise=0.0))
    pairs = [[make_episode(c, 0, "train", k)["actions"][0] for c in (noisy, clean)] for k in range(60)]
    actions, expert = np.swapaxes(np.array(pairs), 0, 1)
    unclipped = np.abs(expert) < 0.6
    assert np.std((actions - expert)[unclipped]) == pytest.approx(0.2, rel=0.12)
