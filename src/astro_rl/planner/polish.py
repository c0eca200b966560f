"""Our addition behind algorithm 2: states and actions of a gap moved together until each step follows from the last.

    min over masked s_t and all a_t of   Σ ‖ (s_{t+1} − f(s_t, a_t)) / σ ‖²  +  κ ‖ a − a_plan ‖²,   known states held

The planner's actions, rolled out, end somewhere near the next recorded state; what is missing stands in the last
transition, and where it is more than a step nothing can be joined there. But the plan is nearly a solution of this
problem, which is direct collocation with a learned one-step model f: both ends are given, and the miss of the end
is spread over all steps of the gap, each of which has actions that can take up a little of it. What remains is
what f cannot explain; it is kept as the gap's error, and held against that of real windows completed in the same way.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from astro_rl.dynamics.onestep import OneStep
from astro_rl.nets.mlp import MLP


class Polished(NamedTuple):
    states: Float[Array, "batch horizon obs"]
    """Known states are the given ones, but for those right behind a MASK: there stands where f arrives."""
    actions: Float[Array, "batch horizon act"]
    miss: Float[Array, "batch"]
    """Root mean square of what f cannot explain, in typical steps, over transitions into masked states. That of the
    step out of the gap is how far its arrival, in `states`, is from the given state."""


def bridged(
    given: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
    rolled: Float[Array, "batch horizon obs"],
) -> Float[Array, "batch horizon obs"]:
    """Known states as given, and the rolled-out ones between them shifted by what was missed at either end, in
    proportion to how near it is. Moves are short, and a maze is many steps wide: this is where they start."""
    horizon = known.shape[1]
    places = jnp.arange(horizon)
    before = jax.lax.cummax(jnp.where(known, places, 0), axis=1)
    behind = jax.lax.cummin(jnp.where(known, places, horizon), axis=1, reverse=True)
    # Nothing lies behind the last known state: there the miss stays what it was.
    end = jnp.where(behind < horizon, behind, before)
    share = ((places - before) / jnp.maximum(end - before, 1))[..., None]
    miss = given - rolled
    first, last = (jnp.take_along_axis(miss, at[..., None], axis=1) for at in (before, end))
    return jnp.where(known[..., None], given, rolled + (1 - share) * first + share * last)


def polished(
    onestep: OneStep,
    network: MLP,
    states: Float[Array, "batch horizon obs"],
    known: Bool[Array, "batch horizon"],
    actions: Float[Array, "batch horizon act"],
    *,
    steps: int,
    rate: float,
    hold: float,
) -> Polished:
    """`states`: the given ones where known, the plan's elsewhere. Each of the `steps` moves is about `rate` long, in
    typical steps of a state and in units of an action; moves shrink to nothing. `hold` is κ."""
    sigma = jnp.asarray(onestep.scale, states.dtype)
    free = ~known[..., None]
    touched = (~known[:, 1:] | ~known[:, :-1])[..., None]
    share = jnp.maximum(touched.sum(axis=(1, 2)), 1) * states.shape[-1]
    planned = actions

    def placed(moved: Array) -> Array:
        return states + jnp.where(free, moved * sigma, 0.0)

    def each(moved: Array, tried: Array) -> Float[Array, "batch"]:
        misses = jnp.where(touched, jnp.square(onestep.misses(network, placed(moved), tried)), 0.0)
        return misses.sum(axis=(1, 2)) / share

    def total(variables: tuple[Array, Array]) -> Float[Array, ""]:
        moved, tried = variables
        held = jnp.square(tried - planned).mean(axis=(1, 2))
        # Sequences do not see one another, so the gradient of the sum is each one's own.
        return (each(moved, tried) + hold * held).sum()

    # Adam takes steps of one length whatever the gradient's: sequences of one batch differ in it by far.
    optimiser = optax.adam(optax.linear_schedule(rate, 0.0, max(steps, 1)), b1=0.9, b2=0.99)

    def one(carry: tuple, _: None) -> tuple[tuple, None]:
        (moved, tried), state = carry
        updates, state = optimiser.update(jax.grad(total)((moved, tried)), state)
        of_states, of_actions = cast(tuple[Array, Array], updates)
        return ((moved + of_states, jnp.clip(tried + of_actions, -1.0, 1.0)), state), None

    start = (jnp.zeros_like(states), actions)
    ((moved, tried), _), _ = jax.lax.scan(one, (start, optimiser.init(start)), None, length=steps)
    final = placed(moved)
    told = onestep.predict(network, final[:, :-1], tried[:, :-1])
    arrives = (known[:, 1:] & ~known[:, :-1])[..., None]
    seen = final.at[:, 1:].set(jnp.where(arrives, told, final[:, 1:]))
    # The action of the last state leads out of the sequence, and is nobody's to move.
    tried = tried.at[:, -1].set(actions[:, -1])
    inside = ~known[:, 1:, None]
    missed = jnp.where(inside, jnp.square(onestep.misses(network, final, tried)), 0.0).sum(axis=(1, 2))
    return Polished(
        seen, tried, jnp.sqrt(missed / (jnp.maximum(inside.sum(axis=(1, 2)), 1) * states.shape[-1]))
    )
