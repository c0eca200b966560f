"""What any learner has to do, whatever it learns. A new learner in `LEARNERS` is tested here without a line more."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.agents import LEARNERS, AnyLearner, Learner, LinkedBatch
from astro_rl.agents.presets import learner_for
from tests.agents.loops import quick, rows_for, rows_of, trainer

OBSERVATIONS, ACTIONS, STEPS, SEEDS = 5, 3, 10, 3

CRITIC = {"critic/loss", "critic/q_mean", "critic/q_max", "critic/q_min", "critic/target_mean"}
INFO = {
    "iql": CRITIC
    | {"value/loss", "value/v_mean", "value/v_max", "value/v_min"}
    | {"actor/loss", "actor/advantage_mean", "actor/weight_mean", "actor/log_prob", "actor/mse"},
    "fql": CRITIC
    | {"flow/loss", "actor/loss", "actor/distillation", "actor/q_term", "actor/policy_q", "actor/mse"},
    "bc": {"actor/loss", "actor/mse"},
    "td3bc": CRITIC | {"actor/loss", "actor/q_term", "actor/policy_q", "actor/mse"},
    "rebrac": CRITIC | {"actor/loss", "actor/q_term", "actor/bc_term", "actor/policy_q", "actor/mse"},
}
"""Records, plots and comparisons between runs read these names: renaming one is a breaking change."""


@lru_cache
def data() -> LinkedBatch:
    draw = np.random.default_rng(0)
    return rows_of(
        draw.standard_normal((200, OBSERVATIONS)),
        draw.uniform(-1, 1, (200, ACTIONS)),
        draw.standard_normal(200),
        masks=draw.random(200) < 0.9,
        next_observations=draw.standard_normal((200, OBSERVATIONS)),
        next_actions=draw.uniform(-1, 1, (200, ACTIONS)),
    )


class Subject:
    """A learner at its smallest, and its programs, each compiled once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.learner: AnyLearner = learner_for(name, preset="tiny")
        self.rows = rows_for(self.learner, data())
        run = trainer(self.learner, STEPS)
        self.init = quick(lambda key: self.learner.init(key, OBSERVATIONS, ACTIONS))
        self.run = quick(run)
        self.init_seeds = quick(jax.vmap(lambda key: self.learner.init(key, OBSERVATIONS, ACTIONS)))
        self.run_seeds = quick(jax.vmap(run, in_axes=(0, 0, None, None)), donate_argnums=0)
        self.act = quick(self.learner.act)

    @property
    def trained(self) -> tuple[Any, dict[str, Any]]:
        return self.run(self.init(jax.random.key(0)), jax.random.key(1), jnp.int32(0), self.rows)


@lru_cache
def subject_of(name: str) -> Subject:
    return Subject(name)


@pytest.fixture(params=LEARNERS)
def subject(request: pytest.FixtureRequest) -> Subject:
    return subject_of(request.param)


def same(left: Any, right: Any) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(np.asarray(a), np.asarray(b)), left, right))


def test_is_a_hashable_learner(subject: Subject) -> None:
    assert isinstance(subject.learner, Learner)
    twin = learner_for(subject.name, preset="tiny")
    assert subject.learner == twin
    assert hash(subject.learner) == hash(twin)


def test_every_leaf_of_the_state_is_an_array(subject: Subject) -> None:
    leaves = jax.tree.leaves(subject.init(jax.random.key(0)))
    eager = jax.tree.leaves(subject.learner.init(jax.random.key(0), OBSERVATIONS, ACTIONS))
    assert len(leaves) == len(eager) > 0
    assert all(isinstance(leaf, jax.Array) for leaf in eager)
    assert all(leaf.dtype in (jnp.float32, jnp.int32) for leaf in leaves)
    assert all(not leaf.weak_type for leaf in leaves)


def test_fitting_changes_parameters_and_counts_steps(subject: Subject) -> None:
    before, after = subject.init(jax.random.key(0)), subject.trained[0]
    assert int(before.step) == 0
    assert int(after.step) == STEPS
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(before)] == [
        (leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(after)
    ]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
    assert not same(before.actor, after.actor)


def test_metrics_are_finite_scalars_with_stable_names(subject: Subject) -> None:
    _, info = subject.trained
    assert set(info) == INFO[subject.name]
    for values in info.values():
        assert values.shape == (STEPS,)
        assert values.dtype == jnp.float32
        assert np.isfinite(values).all()


def test_saved_and_resumed_equals_uninterrupted_bit_for_bit(subject: Subject) -> None:
    key = jax.random.key(1)
    halfway, _ = subject.trained
    leaves, structure = jax.tree.flatten(halfway)
    stored = [np.asarray(leaf).copy() for leaf in leaves]
    resumed = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in stored])
    straight, straight_info = subject.run(halfway, key, jnp.int32(STEPS), subject.rows)
    again, again_info = subject.run(resumed, key, jnp.int32(STEPS), subject.rows)
    assert same(straight, again)
    assert same(straight_info, again_info)
    assert int(again.step) == 2 * STEPS


def test_seeds_together_equal_each_alone(subject: Subject) -> None:
    """And the states can be donated: no two leaves share memory."""
    inits, keys = jax.random.split(jax.random.key(3), SEEDS), jax.random.split(jax.random.key(4), SEEDS)
    together, info = subject.run_seeds(subject.init_seeds(inits), keys, jnp.int32(0), subject.rows)
    for seed in range(SEEDS):
        alone, alone_info = subject.run(subject.init(inits[seed]), keys[seed], jnp.int32(0), subject.rows)
        for mapped, single in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(mapped[seed], single, rtol=2e-3, atol=2e-4)
        for name, values in alone_info.items():
            np.testing.assert_allclose(info[name][seed], values, rtol=2e-3, atol=2e-4, err_msg=name)
    assert not np.array_equal(info["actor/loss"][0], info["actor/loss"][1])


def test_actions_are_bounded_and_decided_by_their_own_row(subject: Subject) -> None:
    state, _ = subject.trained
    # Far outside the data, so that policies that are not squashed reach their bounds.
    observations = 30.0 * data().observations[:16]
    keys = jax.random.split(jax.random.key(5), 16)
    actions = np.asarray(subject.act(state, observations, keys))
    assert actions.shape == (16, ACTIONS)
    assert np.abs(actions).max() <= 1.0
    assert np.array_equal(actions, subject.act(state, observations, keys))

    others = observations.at[1:].add(3.0)
    other_keys = jnp.concatenate([keys[:1], jax.random.split(jax.random.key(6), 15)])
    changed = np.asarray(subject.act(state, others, other_keys))
    assert np.array_equal(changed[0], actions[0])
    assert not np.array_equal(changed[1:], actions[1:])
    np.testing.assert_allclose(
        subject.act(state, observations[:1], keys[:1])[0], actions[0], rtol=1e-4, atol=1e-5
    )


def test_values_are_one_number_a_state(subject: Subject) -> None:
    state, _ = subject.trained
    values = subject.learner.value(state, data().observations[:7])
    assert values.shape == (7,)
    assert np.isfinite(values).all()
    assert subject.learner.uses_rewards == bool(np.ptp(values) > 0)


def test_a_critic_tells_actions_apart_and_agrees_with_the_value_of_the_policys_own(subject: Subject) -> None:
    state, _ = subject.trained
    observations = data().observations[:7]
    own = subject.act(state, observations, jax.random.split(jax.random.key(0), 7))
    q = subject.learner.action_value(state, observations, own)
    assert q.shape == (7,)
    other = subject.learner.action_value(state, observations, -own)
    assert subject.learner.uses_rewards == (not np.array_equal(q, other))
    if subject.name in ("td3bc", "rebrac"):  # IQL's value is a network of its own, FQL's policy is drawn
        np.testing.assert_allclose(q, subject.learner.value(state, observations), rtol=1e-5)


def test_the_same_key_gives_the_same_bytes(subject: Subject) -> None:
    assert same(subject.trained, subject.trained)
    assert not same(subject.init(jax.random.key(0)), subject.init(jax.random.key(1)))


def test_targets_start_as_copies_of_their_networks(subject: Subject) -> None:
    state = subject.init(jax.random.key(0))
    for field in state._fields:
        if field.startswith("target_"):
            assert same(getattr(state, field), getattr(state, field.removeprefix("target_")))
