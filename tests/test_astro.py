"""The front door with nothing but arrays in hand: no environment, no task, and no benchmark's names."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from astro_rl import Astro
from astro_rl.augment.fitting import no_bar
from astro_rl.augment.lineage import source_digest
from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError, DataError
from tests.fitted import SHAPE, Fitted, fit, walks

LIMIT = 1.5
"""Δ_thresh, at which some chains are rejected."""


@pytest.fixture(scope="module")
def made(fitted: Fitted) -> Dataset:
    """Few enough limits that some chains and some completions are rejected."""
    return fitted.stitcher.augment(400, settings={"search.threshold": LIMIT}, bar=no_bar)


def test_at_least_so_many_new_transitions_in_whole_trajectories(made: Dataset) -> None:
    lengths = np.asarray(made.lengths)
    assert made.n_transitions >= 400 > made.n_transitions - lengths[-1]
    pieces, segment, mask = SHAPE
    assert set(lengths) <= {pieces * (segment + mask) - mask - 1, segment + mask}
    assert (np.abs(made.actions) <= 1).all()


def test_known_parts_are_the_sources_bytes_and_name_where_they_stood(fitted: Fitted, made: Dataset) -> None:
    trajectory, step = made.extras["source_trajectory"], made.extras["source_step"]
    known = trajectory >= 0
    assert known.any() and not known.all()
    assert np.array_equal(known, step >= 0)
    rows = np.asarray(fitted.dataset.offsets)[trajectory[known]] + step[known]
    assert made.observations[known].tobytes() == fitted.dataset.observations[rows].tobytes()
    assert fitted.dataset.rewards is not None and made.rewards is not None
    # A transition is real where two known rows of one trajectory follow each other.
    leaves = made.transition_rows()
    real = leaves[known[leaves] & known[leaves + 1] & (step[leaves + 1] == step[leaves] + 1)]
    came_from = np.asarray(fitted.dataset.offsets)[trajectory[real]] + step[real]
    assert made.actions[real].tobytes() == fitted.dataset.actions[came_from].tobytes()
    assert made.rewards[real].tobytes() == fitted.dataset.rewards[came_from].tobytes()


def test_every_trajectory_joins_different_recordings(made: Dataset) -> None:
    for one in made:
        sources = one.extras["source_trajectory"]
        assert (sources == -1).any(), "something is generated"
    whole = [set(one.extras["source_trajectory"]) - {-1} for one in made if len(one) == 17]
    assert whole and all(len(sources) == 2 for sources in whole)


def test_lineage_says_what_it_was_made_from_and_of_how_many(fitted: Fitted, made: Dataset) -> None:
    told, models = made.info["lineage"], fitted.stitcher.models
    assert told["source_digest"] == source_digest(fitted.dataset)
    assert told["models_digest"] == models.digest()
    assert told["format_version"] == 1 and told["written_by"].startswith("astro-rl ")
    assert (told["seed"], told["rounds"], told["transitions"], told["task"]) == (0, 1, 400, None)
    assert told["shape"] == {"pieces": 2, "segment": 6, "mask": 6}
    assert told["generate"]["search"]["threshold"] == LIMIT
    assert told["limits"]["mode"] == "anchored"
    for account in (told["chains"], told["completions"]):
        assert account["kept"] + sum(account["rejected"].values()) == account["proposed"] > 0
        assert account["kept"] > 0 and 0 <= account["cut"] <= account["kept"]
    assert told["chains"]["rejected"], "a threshold this tight rejects some"
    assert told["completions"]["proposed"] == told["chains"]["kept"], "two pieces have one gap"
    for name in ("deviation", "filter_statistic", "weight"):
        per_row = made.extras[name]
        assert all((per_row[a:b] == per_row[a]).all() for a, b in zip(made.offsets, made.offsets[1:]))  # noqa: B905
    assert made.extras["filter_statistic"].max() <= LIMIT


def test_rewards_come_from_a_model_of_the_datas_own_where_no_task_is_known(
    fitted: Fitted, made: Dataset
) -> None:
    """Real ones keep theirs, see above. What the model is worth on transitions that it has not seen is told."""
    assert made.rewards is not None and fitted.dataset.rewards is not None
    asked = made.transition_rows()
    asked = asked[made.extras["source_trajectory"][asked] < 0]
    assert made.rewards[asked].std() > 0
    low, high = fitted.dataset.rewards.min(), fitted.dataset.rewards.max()
    assert low <= made.rewards[asked].min() and made.rewards[asked].max() <= high
    quality = made.info["lineage"]["reward_model"]
    assert 0 < quality["reward_rmse"] < 0.5 * quality["reward_std"]


def test_data_without_rewards_gives_data_without_rewards(fitted: Fitted, made: Dataset) -> None:
    """Rewards decide nothing of the fit: the same models serve, and the same states come out."""
    free = Astro.load(fitted.folder, walks(rewards=False)).augment(
        400, settings={"search.threshold": LIMIT}, bar=no_bar
    )
    assert free.rewards is None and "reward_model" not in free.info["lineage"]
    assert free.observations.tobytes() == made.observations.tobytes()


def test_the_real_data_is_not_touched(fitted: Fitted, made: Dataset) -> None:
    assert made.n_transitions
    assert fitted.dataset.digest() == walks().digest()


def test_same_seed_same_bytes_and_another_seed_others(fitted: Fitted, made: Dataset) -> None:
    again = fitted.stitcher.augment(400, settings={"search.threshold": LIMIT}, bar=no_bar)
    assert again.digest() == made.digest()
    assert again.info["lineage"] == made.info["lineage"]
    other = fitted.stitcher.augment(400, settings={"search.threshold": LIMIT}, seed=1, bar=no_bar)
    assert other.digest() != made.digest()


def test_saved_and_loaded_models_make_the_same_data(fitted: Fitted, made: Dataset, tmp_path: Path) -> None:
    folder = fitted.stitcher.save(tmp_path / "models")
    assert sorted(path.name for path in folder.iterdir()) == [
        "dynamics.safetensors",
        "models.json",
        "onestep.safetensors",
        "planner.safetensors",
        "temporal.safetensors",
    ]
    loaded = Astro.load(folder, walks())
    again = loaded.augment(400, settings={"search.threshold": LIMIT}, bar=no_bar)
    assert again.digest() == made.digest()
    assert again.info["lineage"] == made.info["lineage"]
    assert loaded.models.why == fitted.stitcher.models.why == "given"
    assert loaded.models.settings == fitted.stitcher.models.settings


def test_steps_say_how_far_apart_states_are(fitted: Fitted) -> None:
    at = fitted.dataset.observations
    a = at[np.arange(0, 1000, 10)]
    assert (fitted.stitcher.steps(a, a) == 0).all()
    near, far = fitted.stitcher.steps(a, at[np.arange(1, 1001, 10)]), fitted.stitcher.steps(a, a[::-1])
    assert np.isfinite(far).all() and near.mean() < 0.5 * far.mean()


def test_weights_of_another_fit_under_a_description_are_refused(fitted: Fitted, tmp_path: Path) -> None:
    """What a kill between two files leaves, where models are saved over others."""
    models = fitted.stitcher.models
    folder = fitted.stitcher.save(tmp_path / "models")
    other = dataclasses.replace(models, dynamics_network=models.planner_network)
    assert other.digest() != models.digest()
    text = (folder / "models.json").read_text()
    (folder / "models.json").write_text(text.replace(models.digest(), other.digest()))
    with pytest.raises(DataError, match="not those of the description"):
        Astro.load(folder, fitted.dataset)


def test_models_of_another_dataset_are_refused(fitted: Fitted) -> None:
    other = walks(seed=5)
    with pytest.raises(DataError, match=r"(?s)fit belongs to another dataset.*fit this one"):
        Astro.load(fitted.folder, other)
    with pytest.raises(DataError, match="fit belongs to another dataset"):
        Astro(fitted.stitcher.models, other).augment(10, bar=no_bar)


def test_a_folder_without_a_fit_is_told_apart_from_an_unfinished_one(fitted: Fitted, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)no fitted models here.*astro-rl fit DATA"):
        Astro.load(tmp_path, fitted.dataset)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"(?s)holds no run.*notes\.txt"):
        fit(fitted.dataset, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_task_of_another_environment_is_refused(fitted: Fitted) -> None:
    with pytest.raises(DataError, match=r"(?s)not those of antmaze.*29 numbers"):
        Astro.load(fitted.folder, fitted.dataset, task="antmaze-medium-stitch")
    with pytest.raises(DataError, match="not those of antmaze"):
        fit(fitted.dataset, task="antmaze-medium-stitch")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"dynamics.stepz": 10}, "did you mean 'dynamics.steps'"),
        ({"planner.net.widht": 10}, "planner.net.width"),
        ({"dynamics.steps": "many"}, "dynamics.steps"),
        ({"temporal.steps": 0}, "temporal.steps"),
        ({"held_out": 0.9}, "held_out"),
    ],
)
def test_settings_that_do_not_exist_or_cannot_be_are_named(settings: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Astro.fit(walks(), preset="tiny", settings=settings, bar=no_bar)


def test_settings_and_sizes_of_augment_are_checked_too(fitted: Fitted) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'search\.threshold'"):
        fitted.stitcher.augment(10, settings={"search.treshold": 3.0}, bar=no_bar)
    with pytest.raises(ConfigError, match=r"(?s)at least 1.*transitions"):
        fitted.stitcher.augment(0, bar=no_bar)
    with pytest.raises(ConfigError, match=r"(?s)at least 1.*rounds"):
        fitted.stitcher.augment(10, rounds=0, bar=no_bar)
    with pytest.raises(ConfigError, match=r"(?s)horizon is too short.*fit with a longer horizon"):
        fitted.stitcher.augment(10, settings={"mode": "rollout"}, bar=no_bar)


def test_discrete_actions_are_refused() -> None:
    with pytest.raises(DataError, match="discrete actions are not supported"):
        from_arrays(np.zeros((6, 2), np.float32), np.zeros((6, 1), np.int64), offsets=[0, 3, 6])
