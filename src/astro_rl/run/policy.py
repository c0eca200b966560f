"""Trained policies on disk: weights in safetensors, everything else in JSON beside them. Nothing is unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from astro_rl.agents import LEARNERS
from astro_rl.agents.base import AnyLearner
from astro_rl.errors import DataError

WEIGHTS, DESCRIPTION = "policy.safetensors", "policy.json"
OPTIMISER_PART = "optimiser"
"""Parts of a state under this name are training's own; a policy acts without them."""


@dataclass(frozen=True)
class Policy:
    """One or several seeds' trained policies. Call it with observations; it answers with actions in [−1, 1]."""

    learner: AnyLearner
    states: Any
    seeds: tuple[int, ...]
    observation_dim: int
    action_dim: int

    def act(
        self, observations: Float[np.ndarray, "batch obs"], *, seed: int | None = None, noise_seed: int = 0
    ) -> Float[np.ndarray, "batch act"]:
        """Actions of one training seed's policy (the first one's unless named)."""
        wanted = self.seeds[0] if seed is None else seed
        if wanted not in self.seeds:
            raise DataError(
                "No policy was trained with that seed.", field="seed", found=wanted, expected=list(self.seeds)
            )
        if observations.shape[-1] != self.observation_dim:
            raise DataError(
                "The policy was trained on observations of another size.",
                field="observations",
                found=observations.shape,
                expected=f"(batch, {self.observation_dim})",
            )
        position = self.seeds.index(wanted)
        state = jax.tree.map(lambda leaf: leaf[position], self.states)
        keys = jax.random.split(jax.random.key(noise_seed), len(observations))
        return np.asarray(_act(self.learner, state, jnp.asarray(observations, jnp.float32), keys))


@jax.jit(static_argnums=0)
def _act(learner: AnyLearner, state: Any, observations: Any, keys: Any) -> Any:
    return learner.act(state, observations, keys)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write both files, each whole or not at all; the description last, since loading starts with it."""
    from safetensors.numpy import save

    learner_name = next(name for name, kind in LEARNERS.items() if kind is type(policy.learner))
    description = {
        "format": "astro-rl policy",
        "format_version": 1,
        "learner": learner_name,
        "settings": settings_of(policy.learner),
        "seeds": list(policy.seeds),
        "observation_dim": policy.observation_dim,
        "action_dim": policy.action_dim,
    }
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in named_leaves(policy.states).items()}
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / WEIGHTS, save(arrays))
    _replace(folder / DESCRIPTION, (json.dumps(description, indent=2) + "\n").encode())


def load_policy(folder: str | Path) -> Policy:
    """Read what `save_policy` wrote: a run's folder, or one with just the two files."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = Path(folder) / DESCRIPTION
    try:
        description = json.loads(path.read_text())
        learner = learner_from_settings(description["learner"], description["settings"])
        seeds = tuple(description["seeds"])
        sizes = description["observation_dim"], description["action_dim"]
        arrays = load_file(Path(folder) / WEIGHTS)
    except FileNotFoundError as error:
        raise DataError(
            "There is no trained policy here.",
            file=error.filename,
            expected=f"{DESCRIPTION} and {WEIGHTS}, which a finished run holds",
            fix="name the folder of a run that has finished (astro-rl train ... --out FOLDER)",
        ) from None
    except (json.JSONDecodeError, KeyError, TypeError, SafetensorError) as error:
        raise DataError("The policy's files are damaged.", file=path.parent, found=repr(error)) from None
    template = jax.eval_shape(
        jax.vmap(lambda key: learner.init(key, *sizes)), jax.random.split(jax.random.key(0), len(seeds))
    )
    return Policy(learner, _fill(template, arrays, path.parent), seeds, *sizes)


def settings_of(learner: AnyLearner) -> dict[str, Any]:
    """A learner's hyperparameters by name."""
    record: Any = learner
    return asdict(record)


def learner_from_settings(name: str, settings: Mapping[str, Any]) -> AnyLearner:
    """A learner from its JSON form, in which tuples have become lists."""
    kind = LEARNERS[name]
    known = {field.name for field in fields(kind)}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    if unknown := set(values) - known:
        raise DataError(
            "The policy was saved with settings that this version does not know.", found=sorted(unknown)
        )
    return kind(**values)


def named_leaves(states: Any) -> dict[str, np.ndarray]:
    """A state's arrays by path, without the optimiser's."""
    leaves = jax.tree_util.tree_flatten_with_path(states)[0]
    named = {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in leaves
    }
    return {name: leaf for name, leaf in named.items() if OPTIMISER_PART not in name.split("/")}


def _fill(template: Any, arrays: Mapping[str, np.ndarray], folder: Path) -> Any:
    def leaf_of(path: Any, expected: Any) -> Any:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if OPTIMISER_PART in name.split("/"):
            return jnp.zeros(expected.shape, expected.dtype)
        if name not in arrays or arrays[name].shape != expected.shape:
            raise DataError(
                "The policy's weights do not fit its description.",
                file=folder / WEIGHTS,
                field=name,
                found=arrays[name].shape if name in arrays else "nothing",
                expected=expected.shape,
            )
        return jnp.asarray(arrays[name])

    return jax.tree_util.tree_map_with_path(leaf_of, template)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
