"""The fitted model: the same latents however they are cut and wherever they are kept, steps undone, "far" counted."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.data import from_arrays
from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.errors import DataError, TrainingError
from astro_rl.temporal.encoder import Encoder
from astro_rl.temporal.learning import TemporalLearner
from astro_rl.temporal.model import TemporalModel, temporal_data
from astro_rl.training.fit import fit_chunk


def random_model(members: int = 2, observation_dim: int = 3) -> TemporalModel:
    learner = TemporalLearner(hidden=(16,), latent=4, members=members)
    state = learner.init(jax.random.key(0), observation_dim)
    observations = np.random.default_rng(0).normal(2, 5, (50, observation_dim)).astype(np.float32)
    return TemporalModel(learner, state.encoder, fit_normaliser(observations))


def linear_model(weights: list[float], discount: float) -> TemporalModel:
    """ψ_k(s) = w_k · s for each member k, observations taken as they are."""
    members = [
        eqx.tree_at(
            lambda e: e.layers[0].weight, Encoder.init(jax.random.key(0), 1, (), 1), jnp.asarray([[w]])
        )
        for w in weights
    ]
    encoder = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    learner = TemporalLearner(hidden=(), latent=1, members=len(weights), discount=discount)
    one = np.ones(1, np.float32)
    return TemporalModel(learner, encoder, Normaliser(0 * one, one, one))


def column(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)[:, None]


def test_latents_do_not_depend_on_how_the_rows_are_cut() -> None:
    model = random_model()
    observations = np.random.default_rng(1).normal(size=(103, 3)).astype(np.float32)
    whole = model.encode(observations)
    assert whole.shape == (103, 8)
    np.testing.assert_allclose(model.encode(observations, chunk_rows=10), whole, atol=1e-5)
    np.testing.assert_allclose(model.encode(observations[40:41]), whole[40:41], atol=1e-5)


def test_a_table_on_disk_holds_the_same_bytes_and_is_mapped(tmp_path: Path) -> None:
    model = random_model()
    observations = np.random.default_rng(1).normal(size=(103, 3)).astype(np.float32)
    told: list[tuple[int, int]] = []
    path = tmp_path / "latents.npy"
    mapped = model.encode(
        observations, out=path, chunk_rows=32, progress=lambda done, total: told.append((done, total))
    )
    assert isinstance(mapped, np.memmap)
    assert told == [(32, 103), (64, 103), (96, 103), (103, 103)]
    assert np.array_equal(mapped, model.encode(observations, chunk_rows=32))
    assert np.array_equal(np.load(path), mapped)
    assert [file.name for file in tmp_path.iterdir()] == ["latents.npy"]


def test_the_distance_of_two_rows_is_the_root_mean_square_of_the_members() -> None:
    """Members 3·s and 4·s: from 0 to 1 they say 3 and 4, and √((9 + 16) / 2) = 3.5355."""
    model = linear_model([3.0, 4.0], 0.99)
    assert model.distance(column(0.0), column(1.0)) == pytest.approx(12.5**0.5, rel=1e-5)


def test_steps_undo_the_discount_by_hand() -> None:
    """γ = 0.9: two steps are 1 + 0.9 = 1.9 apart, three 2.71."""
    model = linear_model([1.0], 0.9)
    found = model.steps(column(0.0, 5.0, 1.0), column(1.9, 5.0 - 2.71, 1.0))
    np.testing.assert_allclose(found, [2.0, 3.0, 0.0], atol=1e-4)


def test_saturated_distances_are_clamped_and_counted() -> None:
    """γ = 0.9: the ceiling is 10, and 9.9 of it counts as far: log 0.01 / log 0.9 = 43.7 steps."""
    model = linear_model([1.0], 0.9)
    a, b = column(0.0, 0.0, 0.0, 0.0), column(1.0, 9.0, 9.95, 400.0)
    steps = model.steps(a, b)
    assert steps[2:] == pytest.approx([43.7, 43.7], abs=0.1)
    assert steps[1] < 43
    assert model.saturated(a, b) == 0.5


def test_a_model_of_other_observations_is_refused() -> None:
    with pytest.raises(DataError, match="another size"):
        random_model(observation_dim=3).encode(np.zeros((4, 5), np.float32))


def test_latents_that_are_not_finite_name_their_row() -> None:
    with pytest.raises(TrainingError, match="row 2"):
        linear_model([1.0], 0.9).encode(column(0.0, 1.0, np.inf))


def test_the_learners_data_are_normalised_rows_that_know_their_trajectorys_end() -> None:
    observations = np.random.default_rng(0).normal(7, 3, (9, 2)).astype(np.float32)
    dataset = from_arrays(observations, np.zeros((9, 1), np.float32), offsets=[0, 4, 9])
    normaliser = fit_normaliser(observations)
    data = temporal_data(dataset, normaliser)
    np.testing.assert_allclose(np.asarray(data.observations).mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.asarray(data.observations).std(axis=0), 1, atol=1e-4)
    assert data.transition_rows.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert data.last_row_of.tolist() == [3, 3, 3, 3, 8, 8, 8, 8, 8]


def test_a_model_fitted_on_a_dataset_measures_it_in_steps() -> None:
    """Walks to and fro over places 0 … 10: from place to place it takes as many steps as they are apart."""
    there = np.arange(11.0, dtype=np.float32)
    walk = np.concatenate([there, there[::-1][1:]] * 3)[:, None] * 100 + 5_000
    dataset = from_arrays(walk, np.zeros((len(walk), 1), np.float32), offsets=[0, len(walk)])
    learner = TemporalLearner(
        hidden=(64, 64), latent=8, members=1, discount=0.95, batch_size=128, learning_rate=1e-3
    )
    normaliser = fit_normaliser(dataset.observations)
    state = learner.init(jax.random.key(0), 1)
    state, _ = fit_chunk(learner, state, temporal_data(dataset, normaliser), jax.random.key(1), 0, 3000)
    model = TemporalModel(learner, state.encoder, normaliser)
    places = there[:, None] * 100 + 5_000
    for apart in (1, 3, 6):
        measured = model.steps(places[:-apart], places[apart:])
        assert np.median(measured) == pytest.approx(apart, rel=0.2)
