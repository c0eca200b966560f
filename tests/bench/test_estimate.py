"""Estimates: arithmetic is counted as it is done, and costs follow it."""

import jax
import jax.numpy as jnp
import pytest

from astro_rl.bench.cells import FitCell, TrainCell
from astro_rl.bench.estimate import GPU_FLOPS, GPU_UPDATES, Speed, cost_of, stages, update_flops
from astro_rl.bench.flops import flops_of
from astro_rl.bench.matrix import matrix_for
from astro_rl.bench.presets import Choice


def test_products_are_counted_and_loops_unrolled() -> None:
    a, b = jax.ShapeDtypeStruct((3, 4), jnp.float32), jax.ShapeDtypeStruct((4, 5), jnp.float32)
    assert flops_of(jnp.matmul, a, b) == 2 * 3 * 4 * 5

    def seven_times(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, _: (jax.jit(jnp.tanh)(x @ w), None), x, None, length=7)[0]

    w = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    assert flops_of(seven_times, a, w) == 7 * 2 * 3 * 4 * 4
    loss = jax.grad(lambda w, x: seven_times(x, w).sum())
    assert flops_of(loss, w, a) == pytest.approx(3 * 7 * 2 * 3 * 4 * 4, rel=0.1), (
        "backward takes twice as much"
    )


def test_costs_follow_updates_seeds_and_sizes() -> None:
    speed = Speed(dict.fromkeys(("temporal", "dynamics", "iql"), 1e9))
    small, large = (
        matrix_for("table1", "cpu", Choice(("antmaze-large-stitch",), ("iql",), ("astro",), updates=updates))
        for updates in (50_000, 100_000)
    )
    trained = [next(c for c in m.cells if isinstance(c, TrainCell)) for m in (small, large)]
    here = [cost_of(cell, speed).here for cell in trained]
    simulated = 4 * 50 * 1000 / 4_000
    assert here[1] - simulated == pytest.approx(2 * (here[0] - simulated))
    assert cost_of(trained[1], speed).gpu == pytest.approx(100_000 / GPU_UPDATES + simulated)

    fit = next(cell for cell in small.cells if isinstance(cell, FitCell))
    found = cost_of(fit, speed)
    total = sum(updates * update_flops(model, data) for model, data, updates in stages(fit).values())
    assert found.here == pytest.approx(total / 1e9) and found.gpu == pytest.approx(total / GPU_FLOPS)


def test_a_dit_costs_what_its_parameters_say() -> None:
    """Forward and backward: about 6 operations a weight and token, more for attention."""
    fit = next(cell for cell in matrix_for("geometry", "paper").cells if isinstance(cell, FitCell))
    model, data, _ = stages(fit)["dynamics"]
    state = jax.eval_shape(lambda: model.init(jax.random.key(0)))
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.network))
    by_rule = 6 * weights * model.batch_size * model.horizon
    assert 0.6 * by_rule < update_flops(model, data) < 1.5 * by_rule
