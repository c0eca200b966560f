"""Measuring on machines that are seldom idle: what is compared takes turns, and the fastest turn of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

PEAK_SIZE, PEAK_PRODUCTS = 1_024, 20


def fastest(works: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """Seconds that each takes at its best. What else the machine does only ever makes a turn slower."""
    for work in works.values():
        jax.block_until_ready(work())
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            jax.block_until_ready(work())
            taken[name].append(time.perf_counter() - start)
    return {name: min(seconds) for name, seconds in taken.items()}


def products(devices: int) -> Callable[[], Any]:
    """Large float32 matrix products on this many devices at once: the peak that updates are held against."""

    def chain(x: jax.Array) -> jax.Array:
        scaled = x / PEAK_SIZE
        return jax.lax.fori_loop(0, PEAK_PRODUCTS, lambda _, y: y @ scaled, x)

    compiled = jax.jit(chain)
    blocks = [jax.device_put(jnp.ones((PEAK_SIZE, PEAK_SIZE)), device) for device in jax.devices()[:devices]]
    return lambda: [compiled(block) for block in blocks]


def products_flop(devices: int) -> float:
    return devices * PEAK_PRODUCTS * 2.0 * PEAK_SIZE**3


def matmul_flop(function: Callable[..., Any], *arguments: Any) -> float:
    """Floating-point operations of the matrix products in one call, loops multiplied out; nothing else is counted."""
    closed: ClosedJaxpr = jax.make_jaxpr(function)(*arguments)
    return _flop_of(closed.jaxpr)


def _flop_of(jaxpr: Jaxpr) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left: Any = equation.invars[0].aval
            inner = 1
            for axis in contracted:
                inner *= left.shape[axis]
            result: Any = equation.outvars[0].aval
            total += 2.0 * result.size * inner
        repeats = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        for value in equation.params.values():
            inner_jaxpr = getattr(value, "jaxpr", value)
            if isinstance(inner_jaxpr, Jaxpr):
                total += repeats * _flop_of(inner_jaxpr)
    return total
