"""Goals for the temporal-distance loss, appendix B.2.3: 0.625 from the state's own future, 0.375 from
anywhere, never s itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key


def sample_goals(
    key: Key[Array, ""],
    rows: Int[Array, "batch"],
    last_rows: Int[Array, "batch"],
    n_rows: int | Int[Array, ""],
    *,
    discount: float,
    future_share: float,
) -> Int[Array, "batch"]:
    """Rows of goals for transitions that leave `rows`, whose trajectories end at `last_rows`.

    The offset into the future is geometric with success rate 1 − γ, at least 1, cut at the trajectory's end; a
    uniform draw over all other rows is one over n − 1 places, skipping the row itself.
    """
    which, future_key, uniform_key = jax.random.split(key, 3)
    ahead = 1 + jnp.floor(geometric_excess(future_key, rows.shape, discount)).astype(rows.dtype)
    future = jnp.minimum(rows + ahead, last_rows)
    anywhere = jax.random.randint(uniform_key, rows.shape, 0, n_rows - 1)
    anywhere = anywhere + (anywhere >= rows)
    from_future = jax.random.uniform(which, rows.shape) < future_share
    return jnp.where(from_future, future, anywhere)


def geometric_excess(key: Key[Array, ""], shape: tuple[int, ...], discount: float) -> Float[Array, "*shape"]:
    """A geometric variable minus one, before rounding down: log U / log γ, bounded so that it fits an integer."""
    uniform = jax.random.uniform(key, shape, minval=1e-12, maxval=1.0)
    return jnp.minimum(jnp.log(uniform) / jnp.log(discount), 1e6)
