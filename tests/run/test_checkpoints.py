import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from astro_rl.errors import ConfigError, DataError
from astro_rl.run import checkpoints as module
from astro_rl.run.checkpoints import Checkpoints


class Counters(NamedTuple):
    step: jax.Array
    best: float
    total: int


def state(seed: int = 0, width: int = 8) -> dict[str, Any]:
    """What training states are made of: a module, an optimiser state, keys, odd types."""
    network = eqx.nn.MLP(3, 2, width, 1, key=jax.random.key(seed))
    arrays = eqx.filter(network, eqx.is_array)
    return {
        "network": arrays,
        "optimiser": optax.adam(1e-3).init(arrays),
        "key": jax.random.key(seed),
        "keys": jax.random.split(jax.random.key(seed), 3),
        "counters": Counters(jnp.int32(seed), 0.1 * seed, seed),
        "half": jnp.full((2, 2), seed, jnp.bfloat16),
        "host": np.arange(3) + seed,
        "flags": jnp.array([True, False]),
        "nothing": jnp.zeros((0, 4)),
    }


def bits(tree: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    leaves = [
        jax.random.key_data(leaf)
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        else leaf
        for leaf in jax.tree.leaves(tree)
    ]
    return [(str(np.asarray(leaf).dtype), np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves]


def test_every_bit_and_type_comes_back(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "c").save(5, state(3))
    step, restored = Checkpoints(tmp_path / "c").restore_latest(state(0))
    assert step == 5
    assert bits(restored) == bits(state(3))
    assert jax.tree.structure(restored) == jax.tree.structure(state(3))
    for one, other in zip(jax.tree.leaves(restored), jax.tree.leaves(state(3)), strict=True):
        assert isinstance(one, jax.Array) == isinstance(other, jax.Array)
        assert isinstance(other, jax.Array | np.ndarray) or type(one) is type(other)


def test_keys_draw_the_same_afterwards(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "c").save(1, state(3))
    _, restored = Checkpoints(tmp_path / "c").restore_latest(state(0))
    assert float(jax.random.normal(restored["key"])) == float(jax.random.normal(state(3)["key"]))


def test_nothing_saved_yet(tmp_path: Path) -> None:
    empty = Checkpoints(tmp_path / "c")
    assert empty.restore_latest(state()) == (0, None)
    assert empty.latest() is None and empty.steps() == []


def test_the_last_two_are_kept_and_records_are_synchronised_first(tmp_path: Path) -> None:
    order: list[str] = []
    checkpoints = Checkpoints(tmp_path / "c", before_saving=lambda: order.append(str(checkpoints.latest())))
    for step in (10, 20, 30):
        checkpoints.save(step, {"x": jnp.float32(step)})
    assert checkpoints.steps() == [20, 30] and checkpoints.latest() == 30
    assert order == ["None", "10", "20"]
    assert float(checkpoints.restore({"x": jnp.float32(0)}, 20)["x"]) == 20.0


def test_a_step_saved_again_is_replaced(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "c")
    for value in (1.0, 2.0):
        checkpoints.save(10, {"x": jnp.float32(value)})
    assert float(checkpoints.restore_latest({"x": jnp.float32(0)})[1]["x"]) == 2.0


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"x": jnp.zeros((3,)), "y": jnp.int32(0)}, "['x']"),
        ({"x": jnp.zeros((2,), jnp.bfloat16), "y": jnp.int32(0)}, "['x']"),
        ({"x": jnp.zeros((2,))}, "['y']"),
        ({"x": jnp.zeros((2,)), "y": jnp.int32(0), "z": jnp.int32(0)}, "['z']"),
    ],
)
def test_another_network_is_refused_and_nothing_is_put_aside(
    tmp_path: Path, template: dict[str, Any], field: str
) -> None:
    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(1, {"x": jnp.zeros((2,)), "y": jnp.int32(0)})
    with pytest.raises(ConfigError, match="another network") as caught:
        checkpoints.restore_latest(template)
    assert caught.value.field == field
    assert checkpoints.steps() == [1]


def flip_a_bit(folder: Path) -> None:
    """In the largest file, where the arrays are."""
    victim = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def cut_short(folder: Path) -> None:
    for victim in folder.rglob("d/*"):
        victim.write_bytes(victim.read_bytes()[:10])


def test_silent_damage_is_seen(tmp_path: Path) -> None:
    """Uncompressible data, so that a flipped bit reaches the array and no decoder stumbles over it."""
    noise = {"x": jax.random.bits(jax.random.key(0), (4096,))}
    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(1, noise)
    flip_a_bit(tmp_path / "c" / f"{1:012d}")
    with pytest.raises(DataError):
        checkpoints.restore(noise, 1)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        cut_short,
        lambda folder: shutil.rmtree(folder / "state"),
        lambda folder: (folder / "contents.json").unlink(),
        lambda folder: (folder / "contents.json").write_text('{"format": "astro-'),
        lambda folder: (folder / "contents.json").write_text("[]"),
        lambda folder: change(folder / "contents.json", '"leaves"', '"leavet"'),
        lambda folder: change(folder / "contents.json", "['x']", "['y']"),
    ],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    notes: list[str] = []
    checkpoints = Checkpoints(tmp_path / "c", note=notes.append)
    for step in (1, 2):
        checkpoints.save(step, {"x": jax.random.bits(jax.random.key(step), (4096,))})
    damage(tmp_path / "c" / f"{2:012d}")
    template = {"x": jnp.zeros((4096,), jnp.uint32)}
    step, restored = checkpoints.restore_latest(template)
    assert step == 1
    np.testing.assert_array_equal(restored["x"], jax.random.bits(jax.random.key(1), (4096,)))
    assert len(notes) == 1 and "step 2" in notes[0]
    assert checkpoints.steps() == [1] and (tmp_path / "c" / f"damaged-{2:012d}").exists()
    damage(tmp_path / "c" / f"{1:012d}")
    for _ in range(2):
        with pytest.raises(DataError, match="No checkpoint of this run can be read"):
            checkpoints.restore_latest(template)


class Killed(BaseException):
    """Stands for a kill: no handler of ours may clean up after it."""


def test_a_kill_before_or_after_any_action_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = {"x": jnp.float32(0)}
    actions = {
        module: ("write_json", "sync_folder", "_sync_tree"),
        module.Path: ("mkdir", "rename"),
        module.shutil: ("rmtree",),
    }
    survived = []
    for step in (1, 2):
        Checkpoints(tmp_path / "before").save(step, {"x": jnp.float32(step)})
    for moment in range(100):
        folder = tmp_path / f"c{moment}"
        shutil.copytree(tmp_path / "before", folder)
        left = [moment]

        def dying(real: Callable[..., Any], left: list[int] = left) -> Callable[..., Any]:
            def action(*arguments: Any, **more: Any) -> Any:
                for act in (lambda: None, lambda: real(*arguments, **more)):
                    answer = act()
                    if left[0] == 0:
                        raise Killed
                    left[0] -= 1
                return answer

            return action

        with monkeypatch.context() as patch:
            for owner, names in actions.items():
                for name in names:
                    patch.setattr(owner, name, dying(getattr(owner, name)))
            try:
                Checkpoints(folder).save(3, {"x": jnp.float32(3)})
                break
            except Killed:
                pass
        step, restored = Checkpoints(folder).restore_latest(template)
        assert float(restored["x"]) == step and step in (2, 3)
        survived.append(step)
        Checkpoints(folder).save(4, {"x": jnp.float32(4)})
        assert Checkpoints(folder).steps()[-1] == 4
        assert not list(folder.glob(".*"))
        shutil.rmtree(folder)
    assert len(survived) > 10 and survived == sorted(survived) and set(survived) == {2, 3}


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(1, {"x": jnp.float32(1)})

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_sync_tree", full)
    with pytest.raises(DataError, match="No space left"):
        checkpoints.save(2, {"x": jnp.float32(2)})
    assert checkpoints.steps() == [1] and not list((tmp_path / "c").glob(".*"))


SAVER = """
import sys, numpy as np
from pathlib import Path
from astro_rl.run.checkpoints import Checkpoints
checkpoints = Checkpoints(Path(sys.argv[1]))
step = checkpoints.restore_latest({"x": np.zeros(300_000, np.int64)})[0]
while True:
    step += 1
    checkpoints.save(step, {"x": np.full(300_000, step) * np.arange(300_000)})
    print(step, flush=True)
"""


def test_kill_9_while_saving(tmp_path: Path) -> None:
    template = {"x": np.zeros(300_000, np.int64)}
    moments = random.Random(1)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.3))
        child.kill()
        confirmed = [int(line) for line in child.stdout.read().splitlines()]
        child.wait()
        child.stdout.close()
        notes: list[str] = []
        step, restored = Checkpoints(tmp_path / "c", note=notes.append).restore_latest(template)
        assert step >= max(confirmed, default=1) and notes == []
        np.testing.assert_array_equal(restored["x"], step * np.arange(300_000))


def test_what_comes_back_is_bound_to_a_device_only_where_it_was(tmp_path: Path) -> None:
    """An array bound to a device is another argument to the compiler than one that merely lies there."""
    free, bound = jnp.arange(3.0), jax.device_put(jnp.arange(3.0), jax.devices()[0])
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(1, {"free": free, "bound": bound})
    _, back = checkpoints.restore_latest({"free": free, "bound": bound})
    assert (back["free"].committed, back["bound"].committed) == (False, True)
