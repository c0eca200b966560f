"""Draws states, in a process of its own: `film` starts it with a GL backend in the environment.

python -m astro_rl.report.film_worker ENV_ID GIVEN.npz MADE.npy
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from astro_rl.envs.build import make_env
from astro_rl.envs.seeding import reset_seeded

WALL_HEIGHT = 0.12
"""Of a drawn wall, as a share of its own: a real one hides what walks behind it."""
WALL, RECORDED, GENERATED = (0.4, 0.43, 0.47, 1.0), (0.1, 0.35, 0.75, 1.0), (0.85, 0.28, 0.03, 1.0)
DOT, ROOM = 0.09, 12_000
"""A dot's radius, and how many things a scene may hold."""
DISTANCE, ELEVATION, AZIMUTH = 7.5, -48.0, 90.0


def main(env_id: str, given: Path, made: Path) -> None:
    mujoco: Any = importlib.import_module("mujoco")
    with np.load(given, allow_pickle=False) as file:
        told = {name: file[name] for name in file.files}
    base: Any = make_env(env_id).unwrapped
    reset_seeded(base, seed=0)
    model, data = base.model, base.data
    _lower_walls(mujoco, model)
    width, height = (int(side) for side in told["size"])
    camera = mujoco.MjvCamera()
    camera.distance, camera.elevation, camera.azimuth = DISTANCE, ELEVATION, AZIMUTH
    pictures = np.empty((len(told["shown"]), height, width, 3), np.uint8)
    renderer = mujoco.Renderer(model, height, width, max_geom=ROOM)
    for frame, number in enumerate(told["shown"]):
        data.qpos[: told["qpos"].shape[1]] = told["qpos"][number]
        data.qvel[: told["qvel"].shape[1]] = told["qvel"][number]
        # Places alone: forces would have to be solved for, and an impossible state has none.
        for step in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight):
            step(model, data)
        if told["xy"].shape[1]:
            camera.lookat[:] = [*told["xy"][number], 0.4]
        renderer.update_scene(data, camera)
        if told["xy"].shape[1]:
            _add_path(mujoco, renderer.scene, told["xy"], told["generated"])
        pictures[frame] = renderer.render()
    with made.with_suffix(".partial").open("wb") as file:
        np.save(file, pictures)
    made.with_suffix(".partial").replace(made)


def _lower_walls(mujoco: Any, model: Any) -> None:
    """A maze's walls are the boxes that belong to the world itself."""
    walls = (model.geom_bodyid == 0) & (model.geom_type == mujoco.mjtGeom.mjGEOM_BOX)
    heights = model.geom_size[walls, 2]
    model.geom_pos[walls, 2] -= (1 - WALL_HEIGHT) * heights
    model.geom_size[walls, 2] = WALL_HEIGHT * heights
    model.geom_matid[walls] = -1
    model.geom_rgba[walls] = WALL


def _add_path(mujoco: Any, scene: Any, xy: np.ndarray, generated: np.ndarray) -> None:
    for place, made_up in zip(xy, generated, strict=True):
        if scene.ngeom >= scene.maxgeom:
            return
        mujoco.mjv_initGeom(
            scene.geoms[scene.ngeom],
            mujoco.mjtGeom.mjGEOM_SPHERE,
            np.array([DOT, 0.0, 0.0]),
            np.array([*place, 0.02]),
            np.eye(3).ravel(),
            np.array(GENERATED if made_up else RECORDED, np.float32),
        )
        scene.ngeom += 1


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
