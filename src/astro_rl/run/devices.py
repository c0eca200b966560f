"""One device a core: seeds then train side by side on all of them."""

from __future__ import annotations

import os


def use_all_cores() -> None:
    """Show JAX each CPU core as a device. Has to run before JAX is used; afterwards, and with a GPU, it
    changes nothing.

    Seeds are spread over the devices, a core each. `make bench` shows what that brings: between nothing and a tenth at
    3×256, where one seed alone keeps both cores busy too, more for small networks.
    """
    import jax

    # RuntimeError: devices are in use already, and their number with them.
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except RuntimeError:
        return
