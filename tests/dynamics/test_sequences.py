"""Training sequences: within one trajectory, every place reachable, no horizon that nothing fits."""

import dataclasses

import jax
import numpy as np
import pytest

from astro_rl.data import from_arrays
from astro_rl.data.normaliser import Normaliser, fit_normaliser
from astro_rl.dynamics.sequences import draw_sequences, sequence_data, spread_of
from astro_rl.errors import DataError

ROWS = (5, 2, 7)
"""Rows of three trajectories; the second is shorter than the horizon."""


def labelled():
    """Observation (trajectory, row in it); action 10·trajectory + row, nonsense on end rows."""
    observations = np.concatenate([[(k, row) for row in range(size)] for k, size in enumerate(ROWS)])
    actions = (10 * observations[:, 0] + observations[:, 1])[:, None] / 100
    dataset = from_arrays(
        observations.astype(np.float32), actions.astype(np.float32), offsets=np.cumsum([0, *ROWS])
    )
    spoiled = np.array(dataset.actions)
    spoiled[dataset.end_rows] = np.nan
    return dataclasses.replace(dataset, actions=spoiled)


def plain(dims: int) -> Normaliser:
    one = np.ones(dims, np.float32)
    return Normaliser(0 * one, one, one)


def test_a_sequence_never_crosses_a_trajectorys_end_and_all_places_are_drawn() -> None:
    horizon = 4
    data = sequence_data(labelled(), plain(2), horizon)
    states, actions = map(np.asarray, draw_sequences(jax.random.key(0), data, 400, horizon))
    owner, row = states[..., 0], states[..., 1]
    assert (owner == owner[:, :1]).all()
    assert (row == row[:, :1] + np.arange(horizon)).all()
    assert (row[:, -1] < np.asarray(ROWS)[owner[:, 0].astype(int)]).all()
    found = {(int(k), int(first)) for k, first in zip(owner[:, 0], row[:, 0], strict=True)}
    assert found == {(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (2, 3)}
    np.testing.assert_allclose(actions[:, :-1, 0], (10 * owner + row)[:, :-1] / 100, rtol=1e-6)
    assert (actions[:, -1] == 0).all(), "the last action leads out of the sequence"


def test_rows_are_normalised_and_a_typical_step_is_measured_within_trajectories() -> None:
    """Places 0, 1, 4 | 100, 97: changes 1, 3, −3; in units of the spread σ, √((1 + 9 + 9) / 3) / σ. The jump from 4 to
    100 is none."""
    places = np.asarray([0, 1, 4, 100, 97], np.float32)[:, None]
    dataset = from_arrays(places, np.zeros((5, 1), np.float32), offsets=[0, 3, 5])
    normaliser = fit_normaliser(places)
    data = sequence_data(dataset, normaliser, 2)
    np.testing.assert_allclose(data.observations, (places - places.mean()) / places.std(), rtol=1e-5)
    assert float(data.step_scale[0]) == pytest.approx(np.sqrt(19 / 3) / places.std(), rel=1e-5)


def test_a_horizon_that_no_trajectory_holds_is_refused_with_the_one_that_fits() -> None:
    assert len(sequence_data(labelled(), plain(2), 7).starts) == 1
    with pytest.raises(DataError, match="No trajectory is long enough") as refused:
        sequence_data(labelled(), plain(2), 8)
    assert refused.value.field == "horizon"
    assert (
        "L = 8" in str(refused.value) and "7 states" in str(refused.value) and "L <= 7" in str(refused.value)
    )


def test_spread_by_hand() -> None:
    """Rows advance by one a step in the second dimension and not at all in the first: over 4 states √((1 + 4 + 9)/3),
    which is more than 1; a tenth of it; and next to nothing."""
    scale = Normaliser(np.zeros(2, np.float32), np.asarray([1, 10], np.float32), np.ones(2, np.float32))
    data = sequence_data(labelled(), scale, 4)
    assert spread_of(data, 4) == (0.001, pytest.approx(0.1 * (14 / 3) ** 0.5, rel=1e-3))
    assert spread_of(sequence_data(labelled(), plain(2), 4), 4) == (0.001, 1.0)
