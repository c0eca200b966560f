"""The compiled loop: resumable at any chunk, the same for a seed alone or among others, the same from disk."""

from typing import Any

import jax
import numpy as np
import pytest

from astro_rl.training import (
    StreamData,
    device_data,
    init_states,
    seed_keys,
    train_chunk,
    train_chunk_streamed,
)
from astro_rl.training import stream as stream_module
from tests.training.stubs import Regressor, counting_dataset

LEARNER = Regressor()
SOURCES = (device_data(counting_dataset((9, 4, 6))), device_data(counting_dataset((5, 5), start=50)))
COUNTS = (6, 2)


def train(seeds: tuple[int, ...], chunks: list[int]) -> tuple[Any, dict[str, Any]]:
    keys = seed_keys(seeds)
    states, step, info = init_states(LEARNER, keys, 2, 1), 0, {}
    for steps in chunks:
        states, info = train_chunk(LEARNER, states, keys, step, SOURCES, counts=COUNTS, steps=steps)
        step += steps
    return states, info


def same_bytes(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_stopping_between_chunks_changes_nothing() -> None:
    whole, _ = train((0, 1), [12])
    parts, _ = train((0, 1), [5, 7])
    assert same_bytes(whole, parts)
    assert np.array_equal(np.asarray(whole.steps), [12, 12])


def test_a_seed_among_others_is_the_seed_alone() -> None:
    together, _ = train((3, 4, 5), [8])
    for position, seed in enumerate((3, 4, 5)):
        alone, _ = train((seed,), [8])
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(np.asarray(a)[position], np.asarray(b)[0], rtol=1e-6, atol=1e-7)


def test_seeds_differ_from_one_another() -> None:
    states, _ = train((0, 1), [4])
    assert not np.array_equal(np.asarray(states.seen)[0], np.asarray(states.seen)[1])


@pytest.mark.parametrize("piece_bytes", [1, 3000, 10**9])
def test_data_on_disk_gives_the_same_states_as_data_on_the_device(
    piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "PIECE_BYTES", piece_bytes)
    keys = seed_keys((0, 1))
    sources = (StreamData(counting_dataset((9, 4, 6))), StreamData(counting_dataset((5, 5), start=50)))
    states, info = train_chunk_streamed(
        LEARNER, init_states(LEARNER, keys, 2, 1), keys, 0, sources, counts=COUNTS, steps=12
    )
    expected, expected_info = train((0, 1), [12])
    assert same_bytes(states.seen, expected.seen), "the rows drawn are not the same"
    np.testing.assert_allclose(np.asarray(states.weights), np.asarray(expected.weights), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(info["fit/loss"]), np.asarray(expected_info["fit/loss"]), rtol=1e-5)


def test_metrics_are_means_over_the_chunk_one_value_a_seed() -> None:
    _, first = train((0,), [1])
    _, second = train((0,), [1, 1])
    _, both = train((0,), [2])
    expected = (np.asarray(first["fit/loss"]) + np.asarray(second["fit/loss"])) / 2
    assert both["fit/loss"].shape == (1,)
    np.testing.assert_allclose(np.asarray(both["fit/loss"]), expected, rtol=1e-6)
