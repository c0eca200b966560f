"""Pictures of one augmented trajectory: the simulator put into its states and drawn.

Drawing happens in a process of its own, with the first GL backend that works: MuJoCo binds one when it is imported,
and a graphics library that crashes takes its process with it. Nothing here imports a renderer, or MuJoCo.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, UInt8

from astro_rl.data.schema import Dataset
from astro_rl.errors import AstroError, UnavailableError
from astro_rl.report.evidence import Film, NoFilm
from astro_rl.report.gather import evenly, generated_states, has_lineage
from astro_rl.tasks.task import Task
from astro_rl.tasks.valid import state_of

FRAMES = 36
WIDTH, HEIGHT = 320, 240
SECONDS = 300
"""For all frames of one backend. A software renderer draws one in a quarter of a second."""
VARIABLE = "MUJOCO_GL"


def film_of(
    augmented: Dataset,
    dataset: Dataset,
    task: Task,
    *,
    number: int | None = None,
    frames: int = FRAMES,
    backends: Sequence[str] | None = None,
) -> Film | NoFilm:
    """A film of trajectory `number`, or of the first one that has recorded and generated states. Where nothing can draw
    it, why."""
    try:
        state_of(task)
        chosen = _stitched(augmented, dataset) if number is None else number
        track = augmented[chosen]
        generated = generated_states(augmented, dataset, chosen)
        shown = evenly(len(track.observations), frames)
        pictures = draw(task, track.observations, generated, shown, backends=backends)
    except AstroError as error:
        return NoFilm(told(error))
    stride = (len(generated) - 1) / max(len(shown) - 1, 1)
    about = (
        f"Augmented trajectory {chosen:,}: {len(generated):,} states, {100 * float(generated.mean()):.0f} % of them "
        f"generated; {len(shown)} frames"
        + (f", every {stride:.0f} states" if stride >= 1.5 else "")
        + ". Dots on the floor are the trajectory's own places, recorded ones blue, generated ones orange."
    )
    return Film(pictures, shown, generated[shown], about)


def draw(
    task: Task,
    observations: Float[np.ndarray, "states obs"],
    generated: Bool[np.ndarray, "states"],
    shown: np.ndarray,
    *,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    backends: Sequence[str] | None = None,
) -> UInt8[np.ndarray, "frames rows columns 3"]:
    """One picture of each state in `shown`, with the whole path on the floor."""
    qpos, qvel = state_of(task).to_qpos_qvel(np.asarray(observations))
    faults = []
    with tempfile.TemporaryDirectory(prefix="astro-film-") as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npy"
        xy = np.asarray(observations, np.float64)[:, list(task.xy_indices or ())]
        np.savez(given, qpos=qpos, qvel=qvel, xy=xy, generated=generated, shown=shown, size=np.array(size))
        for backend in backends_to_try() if backends is None else backends:
            fault = _drawn(task.env_id, backend, given, made)
            if fault is None:
                return np.load(made, allow_pickle=False)
            faults.append(f"{backend or 'default'}: {fault}")
    raise UnavailableError(
        "No renderer works here.",
        found="; ".join(faults),
        fix=f"install libosmesa6 or libegl1 (or a driver of your GPU), or set {VARIABLE}",
    )


def backends_to_try() -> tuple[str, ...]:
    """The one that the user names, else those that need no window. Elsewhere than on Linux MuJoCo brings its own."""
    named = os.environ.get(VARIABLE)
    if named:
        return (named,)
    return ("egl", "osmesa") if sys.platform.startswith("linux") else ("",)


def told(error: AstroError) -> str:
    """An error in one line."""
    return " ".join(filter(None, (error.what, str(error.found or ""), error.fix and f"({error.fix})")))


def _drawn(env_id: str, backend: str, given: Path, made: Path) -> str | None:
    """None where it worked, else the last thing that the process said."""
    environment = {**os.environ, VARIABLE: backend, "JAX_PLATFORMS": "cpu"}
    if backend in ("egl", "osmesa"):
        environment["PYOPENGL_PLATFORM"] = backend
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    command = [sys.executable, "-P", "-m", "astro_rl.report.film_worker", env_id, str(given), str(made)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"nothing was drawn in {SECONDS} seconds"
    if made.is_file():
        # A library that fails while it is unloaded has drawn all the same.
        return None
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return said[-1][:200] if said else f"exit status {done.returncode}"


def _stitched(augmented: Dataset, dataset: Dataset) -> int:
    """The first trajectory with both kinds of states; the first of all where none has."""
    if not has_lineage(augmented):
        raise UnavailableError("The augmented data does not say what in it is recorded.")
    for number in range(min(len(augmented), 200)):
        generated = generated_states(augmented, dataset, number)
        if generated.any() and not generated.all():
            return number
    return 0
