"""A run in miniature, as a process that can be killed: `python run_stub.py FOLDER`. Its state is a function
of its step.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.run.folder import RunFolder

STEPS, EVERY = 60, 5


def initial() -> dict[str, jax.Array]:
    return {"weights": jnp.zeros((40, 50)), "count": jnp.int32(0), "key": jax.random.key(1)}


def update(state: dict[str, jax.Array]) -> dict[str, jax.Array]:
    key, draw = jax.random.split(state["key"])
    return {
        "weights": 0.9 * state["weights"] + jax.random.normal(draw, (40, 50)),
        "count": state["count"] + 1,
        "key": key,
    }


def run(path: str) -> None:
    with RunFolder(path).open_or_create({"steps": STEPS}) as folder:
        step, restored = folder.checkpoints.restore_latest(initial())
        folder.rewind(step)
        state = initial() if restored is None else restored
        assert int(state["count"]) == step
        print("began", flush=True)
        while step < STEPS:
            state, step = jax.jit(update)(state), step + 1
            for seed in (0, 1):
                folder.records.write(step, {"seed": seed, "loss": float(jnp.abs(state["weights"]).mean())})
            if step % EVERY == 0:
                folder.checkpoints.save(step, state)
            time.sleep(0.01)
        folder.write_result("results", {"weights": np.asarray(state["weights"]).sum(axis=1).tolist()})
        folder.finish_records()


if __name__ == "__main__":
    run(sys.argv[1])
