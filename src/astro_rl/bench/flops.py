"""Arithmetic of one call, counted on its jaxpr: multiplications and additions of matrix products, loops unrolled.

XLA's own count takes a scan's body once, however often it runs; a DiT is a scan over its blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax


def flops_of(function: Callable[..., Any], *arguments: Any) -> float:
    """Of arguments or their shapes; nothing is computed or compiled."""
    return _of_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr)


def _of_jaxpr(jaxpr: Any) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            depth = math.prod(left[axis] for axis in contracted)
            total += 2.0 * depth * math.prod(equation.outvars[0].aval.shape)
            continue
        inner = [_of_jaxpr(part) for part in _parts(equation.params)]
        if equation.primitive.name == "cond":
            total += max(inner, default=0.0)
        else:
            total += equation.params.get("length", 1) * sum(inner)
    return total


def _parts(parameters: dict[str, Any]) -> Iterator[Any]:
    """Jaxprs inside an equation: of jit, scan, while, cond, custom derivatives."""
    for value in parameters.values():
        for item in value if isinstance(value, list | tuple) else (value,):
            if hasattr(item, "eqns"):
                yield item
            elif hasattr(getattr(item, "jaxpr", None), "eqns"):
                yield item.jaxpr
