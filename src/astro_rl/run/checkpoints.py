"""Training states on disk, through Orbax: atomic, checked when read, the last two kept.

A state goes to Orbax as a flat list of arrays. Its structure (modules, optimiser states, static fields) comes
from a template when it is read, so no class has to be registered and nothing is unpickled. Orbax does not
check the bytes it reads back, so a checksum for each array lies beside them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.errors import ConfigError, DataError, UnavailableError
from astro_rl.run.files import read_json, sync_folder, write_json

KEPT = 2
FORMAT, FORMAT_VERSION = "astro-rl checkpoint", 1
STATE, CONTENTS = "state", "contents.json"
STEP_NAME = re.compile(r"\d{12}")


class Checkpoints:
    """The checkpoints of one run. A folder `STEP/` is there whole or not at all."""

    def __init__(
        self,
        folder: Path,
        *,
        note: Callable[[str], None] = lambda text: None,
        before_saving: Callable[[], None] = lambda: None,
    ) -> None:
        if jax.process_count() > 1:
            raise UnavailableError("Checkpoints are written by one process; this program runs in several.")
        self.folder = Path(folder).absolute()
        self._note, self._before_saving = note, before_saving

    def steps(self) -> list[int]:
        """The steps there is a checkpoint of, in order."""
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name) for path in self.folder.iterdir() if STEP_NAME.fullmatch(path.name))

    def latest(self) -> int | None:
        return max(self.steps(), default=None)

    def save(self, step: int, tree: Any) -> None:
        """Write the state of `step`; when this returns it is on the disk."""
        self._before_saving()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._clear_leftovers()
        temporary, final = self.folder / f".saving-{step:012d}", self._place(step)
        arrays, contents = _arrays_of(tree)
        try:
            temporary.mkdir()
            if stored := {_name(number): array for number, array in enumerate(arrays) if array.size}:
                _checkpointer().save(temporary / STATE, stored)
            write_json(
                temporary / CONTENTS,
                {
                    "format": FORMAT,
                    "format_version": FORMAT_VERSION,
                    "step": step,
                    "leaves": contents,
                    "leaves_crc32": _text_crc(contents),
                },
            )
            _sync_tree(temporary)
            if final.exists():
                final.rename(self.folder / f".old-{step:012d}")
            temporary.rename(final)
            sync_folder(self.folder)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise DataError(
                "Cannot write a checkpoint.",
                file=final,
                found=error.strerror or error,
                fix="free some space, then run again",
            ) from error
        for old in self.steps()[:-KEPT]:
            # Renamed first: a kill in the middle of deleting must not leave half a checkpoint under its name.
            self._place(old).rename(self.folder / f".old-{old:012d}")
        self._clear_leftovers()

    def restore(self, template: Any, step: int) -> Any:
        """The state of `step`, in the structure, types and placement of `template`."""
        contents = self._contents(step)
        leaves, structure = jax.tree_util.tree_flatten(template)
        self._check_fits(template, contents, step)
        arrays = self._read_arrays(step, contents)
        return jax.tree_util.tree_unflatten(structure, map(_like, leaves, arrays))

    def restore_latest(self, template: Any) -> tuple[int, Any]:
        """The newest state that can be read, and its step; (0, None) where nothing was saved yet.

        A damaged checkpoint is put aside with a note, and the one before it is taken.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                return step, self.restore(template, step)
            except DataError as error:
                aside = self.folder / f"damaged-{step:012d}"
                shutil.rmtree(aside, ignore_errors=True)
                self._place(step).rename(aside)
                self._note(
                    f"the checkpoint of step {step} was damaged and put aside: {error.what} ({error.found})"
                )
        # Also when this is asked again: beginning anew over a run's records has to be somebody's decision.
        if damaged := sorted(path.name for path in self.folder.glob("damaged-*")):
            raise DataError(
                "No checkpoint of this run can be read.",
                file=self.folder,
                found=", ".join(damaged),
                fix="remove the run's folder and start it again",
            )
        return 0, None

    def _read_arrays(self, step: int, contents: list[dict[str, Any]]) -> list[np.ndarray]:
        place = self._place(step)
        wanted = {_name(number): 0 for number, leaf in enumerate(contents) if 0 not in leaf["shape"]}
        stored: dict[str, Any] = {}
        if wanted:
            import orbax.checkpoint as ocp

            as_numpy = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in wanted}
            try:
                stored = _checkpointer().restore(place / STATE, item=wanted, restore_args=as_numpy)
            except Exception as error:  # Orbax and TensorStore raise whatever the broken byte led to
                reason = str(error).partition("\n")[0][:200]
                raise DataError(
                    "A checkpoint cannot be read.", file=place, found=f"{type(error).__name__}: {reason}"
                ) from error
        arrays = []
        for number, leaf in enumerate(contents):
            array = stored.get(_name(number), np.zeros(leaf["shape"], jnp.dtype(leaf["dtype"])))
            if (
                list(array.shape) != leaf["shape"]
                or str(array.dtype) != leaf["dtype"]
                or _crc(array) != leaf["crc32"]
            ):
                raise DataError(
                    "A checkpoint's bytes have changed.",
                    file=place,
                    field=leaf["path"],
                    found="another checksum",
                )
            arrays.append(array)
        return arrays

    def _contents(self, step: int) -> list[dict[str, Any]]:
        path = self._place(step) / CONTENTS
        record = read_json(path)
        if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("step") != step:
            raise DataError("Not a checkpoint's contents.", file=path, found=str(record)[:100])
        if record.get("format_version") != FORMAT_VERSION:
            raise ConfigError(
                "A checkpoint of another version of astro-rl.",
                file=path,
                found=record.get("format_version"),
                expected=FORMAT_VERSION,
                fix="continue the run with the version that environment.json names",
            )
        if _text_crc(record.get("leaves")) != record.get("leaves_crc32"):
            raise DataError("A checkpoint's contents have changed.", file=path, found="another checksum")
        return record["leaves"]

    def _check_fits(self, template: Any, contents: list[dict[str, Any]], step: int) -> None:
        there = {leaf["path"]: leaf["type"] for leaf in contents}
        here = {
            jax.tree_util.keystr(path): _type_name(leaf)
            for path, leaf in jax.tree_util.tree_flatten_with_path(template)[0]
        }
        for path in dict.fromkeys([*here, *there]):
            if here.get(path) != there.get(path):
                raise ConfigError(
                    "The checkpoint belongs to another network or optimiser.",
                    file=self._place(step),
                    field=path,
                    found=there.get(path, "nothing"),
                    expected=here.get(path, "nothing"),
                    fix="continue with the settings (and version) that the run began with",
                )

    def _place(self, step: int) -> Path:
        return self.folder / f"{step:012d}"

    def _clear_leftovers(self) -> None:
        for path in [*self.folder.glob(".saving-*"), *self.folder.glob(".old-*")]:
            shutil.rmtree(path)


def _arrays_of(tree: Any) -> tuple[list[np.ndarray], list[dict[str, Any]]]:
    """The tree's arrays, keys as their data, and what is to be known of each."""
    arrays, contents = [], []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        arrays.append(array)
        contents.append(
            {
                "path": jax.tree_util.keystr(path),
                "type": _type_name(leaf),
                "shape": list(array.shape),
                "dtype": str(array.dtype),
                "crc32": _crc(array),
            }
        )
    return arrays, contents


def _like(template: Any, array: np.ndarray) -> Any:
    """The array as what stands in its place: on the same devices, a key, a NumPy array or a plain number."""
    if _is_key(template):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(template))
    if isinstance(template, jax.Array | jax.ShapeDtypeStruct):
        # An array that was put nowhere is not bound to where it lies: bound, it would be another argument to XLA,
        # and what goes on from a checkpoint another program than the one that wrote it, compiled anew.
        bound = getattr(template, "committed", True) and getattr(template, "sharding", None)
        return jax.device_put(array, template.sharding) if bound else jnp.array(array)
    if isinstance(template, np.ndarray | np.generic):
        return array
    return type(template)(array.item())


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _type_name(leaf: Any) -> str:
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    return f"{dtype}{list(np.shape(leaf))}"


def _crc(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _text_crc(contents: Any) -> int:
    return zlib.crc32(json.dumps(contents).encode())


def _name(number: int) -> str:
    return f"{number:05d}"


def _checkpointer() -> Any:
    import orbax.checkpoint as ocp

    return ocp.PyTreeCheckpointer()


def _sync_tree(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(root))
