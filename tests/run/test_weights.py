"""Networks on disk: back bit for bit, or refused in words; never unpickled."""

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.errors import DataError
from astro_rl.nets.dit import DiT, DiTConfig
from astro_rl.run.weights import load_weights, save_weights
from astro_rl.temporal.learning import TemporalLearner

SMALL = DiTConfig(width=8, depth=2, heads=2, patch=2, step_width=4)


def transformer(seed: int, config: DiTConfig = SMALL) -> DiT:
    return DiT.init(jax.random.key(seed), config, 3, 2)


def ensemble(seed: int) -> Any:
    return TemporalLearner(hidden=(8, 8), latent=4).init(jax.random.key(seed), 3).encoder


def same(a: Any, b: Any) -> bool:
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        x.dtype == y.dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.mark.parametrize("make", [transformer, ensemble])
def test_weights_come_back_bit_for_bit(make: Any, tmp_path: Path) -> None:
    network, file = make(0), tmp_path / "weights.safetensors"
    save_weights(file, network)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.safetensors"]
    assert same(load_weights(file, make(1)), network)
    assert same(load_weights(file, jax.eval_shape(lambda: make(1))), network), "a template of shapes will do"


def test_the_loaded_network_answers_alike(tmp_path: Path) -> None:
    moved = jax.tree.map(lambda leaf: leaf + 0.1, transformer(0))
    save_weights(tmp_path / "w", moved)
    given = jnp.ones((2, 4, 3)), jnp.asarray([0.1, 0.9]), jnp.zeros((2, 1))
    loaded = load_weights(tmp_path / "w", transformer(1))
    assert np.array_equal(np.asarray(loaded(*given)), np.asarray(moved(*given)))


def test_the_same_weights_give_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        save_weights(tmp_path / name, transformer(seed))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


class Odd(NamedTuple):
    number: jax.Array
    empty: jax.Array
    counts: jax.Array
    truths: jax.Array
    turned: jax.Array


def test_odd_shapes_and_types_come_back_too(tmp_path: Path) -> None:
    """Single numbers, nothing at all, integers, booleans, extremes, and arrays that do not lie in order in memory."""
    extremes = jnp.asarray([[-0.0, jnp.inf, 1e-45], [jnp.nan, 3.4e38, 0.1]]).T
    odd = Odd(
        jnp.float32(0.1),
        jnp.zeros((0, 3)),
        jnp.arange(3, dtype=jnp.int32),
        jnp.asarray([True, False]),
        extremes,
    )
    save_weights(tmp_path / "odd", odd)
    assert same(load_weights(tmp_path / "odd", jax.tree.map(jnp.zeros_like, odd)), odd)


def test_what_does_not_fit_its_description_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "w"
    save_weights(file, transformer(0))
    wider = transformer(0, DiTConfig(width=16, depth=2, heads=2, patch=2, step_width=4))
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), transformer(0))
    for template in (wider, half):
        with pytest.raises(DataError, match="do not fit") as refused:
            load_weights(file, template)
        text = str(refused.value)
        assert str(file) in text and "field" in text and "found" in text and "expected" in text
    for template in ({"stem": jnp.zeros(2)}, ensemble(0)):
        with pytest.raises(DataError, match="do not fit"):
            load_weights(file, template)


def test_a_missing_leaf_and_one_too_many_are_refused(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", {"a": jnp.zeros(2)})
    with pytest.raises(DataError) as refused:
        load_weights(tmp_path / "w", {"a": jnp.zeros(2), "b": jnp.zeros(3)})
    assert refused.value.field == "b" and "nothing" in str(refused.value)
    save_weights(tmp_path / "w", {"a": jnp.zeros(2), "b": jnp.zeros(3)})
    with pytest.raises(DataError) as refused:
        load_weights(tmp_path / "w", {"a": jnp.zeros(2)})
    assert refused.value.field == "b"


def test_damaged_files_are_told_apart_from_missing_ones(tmp_path: Path) -> None:
    file = tmp_path / "w"
    with pytest.raises(DataError, match="no weights here"):
        load_weights(file, transformer(0))
    save_weights(file, transformer(0))
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:-1], whole + b"x", b"\xff" * 200, b"{}" * 40):
        file.write_bytes(content)
        with pytest.raises(DataError, match="damaged") as refused:
            load_weights(file, transformer(0))
        assert str(file) in str(refused.value)


class Trap:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (open, (self.trace, "w"))


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    file, trace = tmp_path / "w", tmp_path / "trace"
    for content in (pickle.dumps(Trap(str(trace))), pickle.dumps({"a": Trap(str(trace))}, protocol=2)):
        file.write_bytes(content)
        with pytest.raises(DataError, match="damaged"):
            load_weights(file, {"a": jnp.zeros(2)})
    np.save(tmp_path / "array.npy", np.asarray([Trap(str(trace))], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="damaged"):
        load_weights(tmp_path / "array.npy", {"a": jnp.zeros(2)})
    assert not trace.exists()


def test_a_write_that_fails_leaves_the_old_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w"
    save_weights(file, {"a": jnp.zeros(2)})
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(DataError, match="Cannot write"):
        save_weights(file, {"a": jnp.ones(2)})
    monkeypatch.undo()
    assert float(load_weights(file, {"a": jnp.ones(2)})["a"].sum()) == 0.0
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    assert eqx.is_array(load_weights(file, {"a": jnp.ones(2)})["a"])
