"""Networks on disk: arrays by their path in the tree, in safetensors. Structure comes from a template, nothing is
unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.errors import DataError
from astro_rl.run.files import write_bytes


def save_weights(path: Path, network: Any) -> None:
    """The file appears whole or not at all; the same weights give the same bytes."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(leaf, order="C") for name, leaf in leaves_by_path(network).items()}
    write_bytes(path, save(arrays))


def load_weights(path: Path, template: Any) -> Any:
    """The network, in the structure of `template` (arrays or `jax.eval_shape`'s answer)."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except FileNotFoundError:
        raise DataError("There are no weights here.", file=path) from None
    except (SafetensorError, ValueError) as error:
        raise DataError("The weights are damaged.", file=path, found=str(error)) from None
    return filled(template, arrays, path)


def leaves_by_path(network: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_flatten_with_path(network)[0]
    return {name_of(path): np.asarray(leaf) for path, leaf in leaves}


def filled(template: Any, arrays: Mapping[str, np.ndarray], file: Path) -> Any:
    """The template with the arrays in their places. Missing, foreign or otherwise shaped ones are refused."""
    wanted = {name_of(path) for path, _ in jax.tree_util.tree_flatten_with_path(template)[0]}
    if strangers := sorted(set(arrays) - wanted):
        raise DataError("The weights do not fit their description.", file=file, field=strangers[0])

    def leaf_of(path: Any, expected: Any) -> Any:
        name = name_of(path)
        found = arrays.get(name)
        if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
            raise DataError(
                "The weights do not fit their description.",
                file=file,
                field=name,
                found="nothing" if found is None else f"{found.dtype} {found.shape}",
                expected=f"{expected.dtype} {expected.shape}",
            )
        return jnp.asarray(found)

    return jax.tree_util.tree_map_with_path(leaf_of, template)


def name_of(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
