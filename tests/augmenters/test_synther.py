"""SynthER: transitions as columns, its networks, what it generates and how that is rewarded."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl import get_task
from astro_rl.augmenters.registry import augmenter_for
from astro_rl.augmenters.synther.columns import Columns, columns_of, transition_table
from astro_rl.augmenters.synther.denoiser import Denoiser
from astro_rl.augmenters.synther.fit import FittedSynther, adjusted
from astro_rl.augmenters.synther.networks import ResidualConfig, ResidualMLP
from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError, DataError, TrainingError
from astro_rl.run.methods import augment_method
from astro_rl.tasks import relabel
from astro_rl.tasks.rewards import Reach
from tests.augmenters.tiny_synther import fit_synther
from tests.fitted import walks

TASK = get_task("pointmaze-medium-stitch-task1")


def two_trajectories() -> Dataset:
    """Three transitions; the second dimension never varies."""
    return from_arrays(
        np.array([[0, 7], [2, 7], [4, 7], [1, 7], [3, 7]], np.float32),
        np.array([[0.5], [-0.5], [0], [0.0], [0]], np.float32),
        offsets=[0, 3, 5],
        rewards=np.array([1, 3, 0, 5, 0], np.float32),
        terminated=np.array([False, False, False, True, False]),
    )


def test_columns_by_hand() -> None:
    """s0 = 0, 2, 1: mean 1, spread √(2/3). a = 1/2, −1/2, 0. r = 1, 3, 5: mean 3, spread √(8/3). s0' = 2, 4, 3. The end
    is 0 or 1 as it stands; what never varies is 0, and comes back as it was."""
    data = two_trajectories()
    columns = columns_of(data, rewards=True)
    assert columns == Columns(2, 1, True, True) and columns.width == 7
    table, normaliser = transition_table(data, columns, most=10)
    up = 1.5**0.5
    expected = [
        [-up, 0, up, -up, 0, -up, 0],
        [up, 0, -up, 0, 0, up, 0],
        [0, 0, 0, up, 1, 0, 0],
    ]
    assert np.allclose(table, expected, atol=1e-5)
    back = columns.split(normaliser.undo(table))
    rows = data.transition_rows()
    assert np.allclose(back.observations, data.observations[rows], atol=1e-5)
    assert np.allclose(back.following, data.observations[rows + 1], atol=1e-5)
    assert (back.observations[:, 1] == 7).all()
    assert back.rewards is not None and np.allclose(back.rewards, [1, 3, 5], atol=1e-5)
    assert back.ends is not None and np.allclose(back.ends, [0, 0, 1])
    assert len(transition_table(data, columns, most=2)[0]) == 2


def test_columns_without_rewards_or_without_ends() -> None:
    data = two_trajectories()
    assert columns_of(data, rewards=False) == Columns(2, 1, False, False)
    endless = data.with_rewards(np.zeros(5, np.float32), np.zeros(5, bool))
    assert columns_of(endless, rewards=True) == Columns(2, 1, True, False)
    split = Columns(2, 1, False, False).split(np.arange(5.0)[None])
    assert split.rewards is None and split.ends is None
    assert split.actions.tolist() == [[2.0]] and split.following.tolist() == [[3.0, 4.0]]


def test_the_residual_mlp_is_the_authors_in_plain_numpy() -> None:
    net = ResidualMLP.init(
        jax.random.key(0), ResidualConfig(width=8, depth=2, level_width=6, frequencies=3), 5
    )
    generator = np.random.default_rng(0)
    x, level = generator.normal(size=(4, 5)).astype(np.float32), generator.normal(size=4).astype(np.float32)

    def dense(layer: Any, inputs: np.ndarray) -> np.ndarray:
        return inputs @ np.asarray(layer.weight) + np.asarray(layer.bias)

    angles = 2 * np.pi * level[:, None] * np.asarray(net.frequencies)
    told = dense(net.level_in, np.concatenate([level[:, None], np.sin(angles), np.cos(angles)], axis=1))
    hidden = dense(net.project, x) + dense(net.level_out, told / (1 + np.exp(-told)))
    hidden = dense(net.first, hidden)
    for number in range(2):
        block = jax.tree.map(lambda leaf, number=number: leaf[number], net.blocks)
        hidden = hidden + dense(block, np.maximum(hidden, 0))
    assert np.allclose(
        net(jnp.asarray(x), jnp.asarray(level)), dense(net.last, np.maximum(hidden, 0)), atol=1e-4
    )


def test_frequencies_are_drawn_once_and_never_learned() -> None:
    denoiser = Denoiser(
        Columns(2, 1, False, False), mlp=ResidualConfig(width=8, depth=1, level_width=4), batch_size=8
    )
    state = denoiser.init(jax.random.key(0))
    moved, _ = jax.jit(denoiser.update)(state, jnp.ones((16, 5)), jax.random.key(1))
    assert isinstance(moved.network, ResidualMLP) and isinstance(state.network, ResidualMLP)
    assert (moved.network.frequencies == state.network.frequencies).all()
    assert (moved.network.last.weight != state.network.last.weight).any()


def steps_of_one(count: int = 4_000) -> Dataset:
    """s' = s + a, r = s + a, an end where s' > 1."""
    generator = np.random.default_rng(0)
    here = generator.normal(size=(count, 1))
    actions = generator.uniform(-1, 1, (count, 1))
    after = here + actions
    padded = np.zeros((count, 1))
    return from_arrays(
        np.stack([here, after], 1).reshape(-1, 1).astype(np.float32),
        np.stack([actions, padded], 1).reshape(-1, 1).astype(np.float32),
        offsets=np.arange(count + 1) * 2,
        rewards=np.stack([after, padded], 1).reshape(-1).astype(np.float32),
        terminated=np.stack([after > 1, padded > 1], 1).reshape(-1),
    )


@pytest.mark.parametrize("network", ["mlp", "dit"])
def test_what_it_generates_has_the_datas_distribution_and_dynamics(network: str) -> None:
    steps = 1_500 if network == "mlp" else 400
    settings = {
        "denoiser.network": network,
        "denoiser.steps": steps,
        "denoiser.log_every": steps,
        "sampling.steps": 24,
        "sampling.churn": 2.0,
        "batch": 2_048,
        "at_once": 2_048,
    }
    data = steps_of_one()
    made = augment_method(augmenter_for("synther", "tiny", settings).fit(data), data, 2_000)
    here, after = made.observations[0::2, 0], made.observations[1::2, 0]
    assert made.rewards is not None
    actions, rewards, ended = made.actions[0::2, 0], made.rewards[0::2], made.terminated[0::2]
    assert here.mean() == pytest.approx(0.0, abs=0.15) and here.std() == pytest.approx(1.0, abs=0.15)
    assert actions.std() == pytest.approx(3**-0.5, abs=0.1)
    assert np.sqrt(np.square(after - here - actions).mean()) < 0.3 * actions.std()
    assert np.corrcoef(rewards, after)[0, 1] > 0.97
    assert ((after > 1) == ended).mean() > 0.9
    assert (made.truncated[0::2] == ~ended).all()


@pytest.fixture(scope="module")
def fitted_to_walks() -> tuple[FittedSynther, Dataset]:
    data = walks()
    return fit_synther(data), data


def test_each_transition_is_a_trajectory_of_its_own(fitted_to_walks: tuple[FittedSynther, Dataset]) -> None:
    fitted, data = fitted_to_walks
    made = augment_method(fitted, data, 100)
    assert made.n_transitions == len(made) == 100 and made.n_rows == 200
    for name in ("source_trajectory", "source_step"):
        assert (made.extras[name] == -1).all() and made.extras[name].dtype == np.int32
    assert (np.abs(made.actions) <= 1).all() and (made.actions[1::2] == 0).all()
    assert (made.observations >= data.observations.min(0)).all()
    assert (made.observations <= data.observations.max(0)).all()
    assert made.observations.dtype == data.observations.dtype and made.actions.dtype == data.actions.dtype
    assert made.truncated[0::2].all() and not made.truncated[1::2].any() and not made.terminated.any()
    assert made.rewards is not None and made.rewards[0::2].std() > 0 and not made.rewards[1::2].any()
    told = made.info["lineage"]
    assert told["method"] == "synther" and told["models_digest"] == fitted.digest()
    assert told["completions"]["proposed"] == told["completions"]["kept"] >= 100
    assert told["columns"] == ["source_trajectory", "source_step"]


def test_a_batch_depends_on_seed_and_number_alone(fitted_to_walks: tuple[FittedSynther, Dataset]) -> None:
    fitted, data = fitted_to_walks

    def digest(seed: int, *numbers: int) -> str:
        proposer = fitted.propose(data, task=None, seed=seed)
        made = [proposer.batch(number).dataset for number in numbers][-1]
        assert made is not None
        return made.digest()

    assert digest(3, 0, 1) == digest(3, 1)
    assert len({digest(3, 0), digest(3, 1), digest(4, 0)}) == 3


@pytest.fixture(scope="module")
def fitted_to_task() -> FittedSynther:
    return fit_synther(walks(), task=TASK)


def test_with_a_task_rewards_are_the_tasks_own_on_generated_states(
    fitted_to_walks: tuple[FittedSynther, Dataset], fitted_to_task: FittedSynther
) -> None:
    """Also from a fit that models others. A fit that is told the task models none."""
    assert fitted_to_task.columns == Columns(2, 2, False, False)
    for fitted in (fitted_to_walks[0], fitted_to_task):
        made = augment_method(fitted, walks(), 100, task=TASK)
        by_hand = relabel(dataclasses.replace(made, rewards=None), TASK)
        assert made.rewards is not None and by_hand.rewards is not None
        assert np.array_equal(made.rewards, by_hand.rewards)
        assert np.array_equal(made.terminated, by_hand.terminated)
        assert (made.truncated[0::2] == ~made.terminated[0::2]).all()
        assert made.info["relabelled"]["task"] == TASK.name


def test_a_tasks_rewards_can_be_modelled_as_the_authors_do() -> None:
    """The task's reward is −1 or 0 on real data; a modelled one is whatever the denoiser says."""
    data = walks()
    assert isinstance(TASK.rewards, Reach)
    through_goal = data.observations - data.observations[100] + TASK.rewards.goal
    data = dataclasses.replace(data, observations=through_goal.astype(np.float32))
    fitted = fit_synther(data, {"rewards": "modelled"}, task=TASK)
    assert fitted.columns.rewards and fitted.columns.ends
    made = augment_method(fitted, data, 100, task=TASK)
    assert made.rewards is not None and "relabelled" not in made.info
    assert not set(made.rewards[0::2].tolist()) <= {-1.0, 0.0}
    with pytest.raises(ConfigError, match=r"(?s)rewards of something else.*no task asked for"):
        augment_method(fitted, data, 100)


def test_rewards_that_nobody_gives_are_an_error_that_says_who_could(fitted_to_task: FittedSynther) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)models no rewards.*--task {TASK.name}"):
        augment_method(fitted_to_task, walks(), 100)
    with pytest.raises(ConfigError, match="no rewards to model"):
        fit_synther(walks(rewards=False), {"rewards": "modelled"})


def test_data_without_rewards_gives_data_without_rewards() -> None:
    made = augment_method(fit_synther(walks(rewards=False)), walks(rewards=False), 100)
    assert made.rewards is None and made.n_transitions == 100


def test_where_no_transition_is_finite_the_error_says_what_to_change(
    fitted_to_walks: tuple[FittedSynther, Dataset],
) -> None:
    fitted, data = fitted_to_walks
    broken = jax.tree.map(lambda leaf: leaf * jnp.nan, fitted.network)
    with pytest.raises(DataError, match=r"(?s)not finite.*denoiser\.learning_rate"):
        augment_method(dataclasses.replace(fitted, network=broken), data, 100)


def test_a_fit_that_diverges_says_so() -> None:
    with pytest.raises(TrainingError, match=r"(?s)denoiser model diverged.*lower denoiser\.learning_rate"):
        fit_synther(walks(), {"denoiser.learning_rate": 1e30})


def test_settings_of_generating_can_be_others_and_those_of_the_fit_cannot(
    fitted_to_walks: tuple[FittedSynther, Dataset],
) -> None:
    fitted, data = fitted_to_walks
    more = augment_method(fitted, data, 100, settings={"sampling.churn": 0.0})
    assert more.info["lineage"]["settings"]["sampling"]["churn"] == 0.0
    assert more.digest() != augment_method(fitted, data, 100).digest()
    with pytest.raises(ConfigError, match=r"(?s)decided by the fit.*denoiser\.steps"):
        adjusted(fitted, {"denoiser.steps": 10})
    with pytest.raises(ConfigError, match=r"did you mean 'sampling\.churn'"):
        adjusted(fitted, {"sampling.chrun": 0.0})


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a method": (lambda: augmenter_for("sinther"), "did you mean 'synther'"),
    "a preset": (lambda: augmenter_for("synther", "tinny"), "did you mean 'tiny'"),
    "a setting": (
        lambda: augmenter_for("synther", "tiny", {"denoiser.stepz": 1}),
        "did you mean 'denoiser.steps'",
    ),
    "a network": (lambda: augmenter_for("synther", "tiny", {"denoiser.network": "unet"}), "denoiser.network"),
    "a size": (lambda: augmenter_for("synther", "tiny", {"denoiser.mlp.width": 0}), "mlp.width"),
    "a number": (lambda: augmenter_for("synther", "tiny", {"batch": 0}), "batch"),
    "a patch": (
        lambda: augmenter_for("synther", "tiny", {"denoiser.network": "dit", "denoiser.dit.patch": 3}),
        "denoiser.dit.patch",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_before_any_work(mistake: str) -> None:
    make, named = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=named):
        make()


def test_a_task_of_another_environment_is_refused(fitted_to_walks: tuple[FittedSynther, Dataset]) -> None:
    ant = get_task("antmaze-medium-stitch-task1")
    with pytest.raises(DataError, match=r"not those of antmaze"):
        fit_synther(walks(), task=ant)
    with pytest.raises(DataError, match=r"not those of antmaze"):
        augment_method(fitted_to_walks[0], walks(), 10, task=ant)


def test_the_authors_settings_are_the_paper_preset() -> None:
    """Their resmlp_denoiser.gin: 128 steps, churn 80 in [0.05, 50], noise 1.003; 100,000 updates at 3e-4; batches
    of 256, and of 1024 from 800,000 transitions on; six blocks."""
    paper = augmenter_for("synther", "paper").as_json()
    own, sampling = paper["denoiser"], paper["sampling"]
    assert (own["steps"], own["learning_rate"], own["network"]) == (100_000, 3e-4, "mlp")
    assert (own["mlp"]["width"], own["mlp"]["depth"], own["mlp"]["level_width"]) == (1024, 6, 128)
    assert sampling == {
        "steps": 128, "rho": 7.0, "churn": 80.0, "churn_from": 0.05, "churn_to": 50.0, "churn_noise": 1.003,
    }  # fmt: skip
    augmenter: Any = augmenter_for("synther", "paper")
    columns = Columns(2, 2, True, True)
    sizes = {
        count: augmenter.settings.denoiser.build(columns, augmenter.settings.noise, count).batch_size
        for count in (799_999, 800_000)
    }
    assert sizes == {799_999: 256, 800_000: 1024}
