"""Settings that cannot lie: what is unknown, out of range or without effect is refused, with the way out."""

from __future__ import annotations

import dataclasses
import inspect
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from astro_rl.agents import BC, FQL, IQL, LEARNERS, TD3BC, ReBRAC
from astro_rl.agents.presets import learner_for
from astro_rl.agents.settings import one_of
from astro_rl.errors import ConfigError
from astro_rl.tasks import all_tasks
from astro_rl.tasks.task import Task


class NoRewards:
    def success(self, observations: np.ndarray) -> np.ndarray:
        return np.zeros(observations.shape[:-1], bool)

    def reward(self, observations: np.ndarray) -> np.ndarray:
        return np.zeros(observations.shape[:-1])


TASK = Task(
    name="maze-task1",
    suite="ogbench",
    dataset="maze-v0",
    env_id="maze-v0",
    goal=1,
    is_default_goal=True,
    observation_dim=29,
    action_dim=8,
    max_episode_steps=1000,
    rewards=NoRewards(),
    horizon=180,
    segment=18,
    mask=18,
    discount=0.995,
    iql_alpha=1.0,
    fql_alpha=30.0,
    fql_settings={"q_aggregation": "min"},
)


@pytest.mark.parametrize(
    ("kind", "changes", "field"),
    [
        (IQL, {"expectile": 0.4}, "expectile"),
        (IQL, {"expectile": 1.0}, "expectile"),
        (IQL, {"expectile": float("nan")}, "expectile"),
        (IQL, {"alpha": -1.0}, "alpha"),
        (IQL, {"alpha": float("inf")}, "alpha"),
        (IQL, {"max_weight": 0.0}, "max_weight"),
        (IQL, {"actor": "ddpgbc"}, "alpha"),
        (IQL, {"actor": "ddpgbc", "alpha": 0.1, "max_weight": 100.0}, "max_weight"),
        (FQL, {"flow_steps": 0}, "flow_steps"),
        (FQL, {"alpha": -0.1}, "alpha"),
        (TD3BC, {"actor_delay": 0}, "actor_delay"),
        (TD3BC, {"policy_noise": 0.0}, "noise_clip"),
        (ReBRAC, {"noise_clip": 0.0}, "noise_clip"),
        (ReBRAC, {"alpha_critic": -1.0}, "alpha_critic"),
        (ReBRAC, {"tau": 0.0}, "tau"),
        (TD3BC, {"discount": 1.5}, "discount"),
        (BC, {"batch_size": 0}, "batch_size"),
        (BC, {"learning_rate": 0.0}, "learning_rate"),
        (BC, {"hidden": ()}, "hidden"),
        (FQL, {"hidden": (256, 0)}, "hidden"),
    ],
)
def test_bad_settings_are_refused_by_name(kind: type, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(**changes)
    assert field in str(caught.value.field)
    assert f"field:    {kind.__name__}." in str(caught.value)


def test_a_choice_that_is_nearly_right_is_answered() -> None:
    with pytest.raises(ConfigError, match="did you mean 'ddpgbc'"):
        learner_for("iql", actor="ddpg_bc")
    # Constructed directly, where no type checker looks, the same check speaks.
    with pytest.raises(ConfigError, match="did you mean 'min'"):
        one_of(SimpleNamespace(q_aggregation="minn"), "q_aggregation", ("mean", "min"))


def test_defaults_that_depend_on_the_actor_are_recorded_as_numbers() -> None:
    assert (IQL().alpha, IQL().max_weight) == (10.0, 100.0)
    ddpgbc = IQL(actor="ddpgbc", alpha=0.3)
    assert (ddpgbc.alpha, ddpgbc.max_weight) == (0.3, None)


@pytest.mark.parametrize("name", LEARNERS)
def test_recorded_settings_build_the_same_learner(name: str) -> None:
    learner = learner_for(name, preset="cpu", task=TASK)
    recorded = dataclasses.asdict(learner)  # pyright: ignore[reportArgumentType]
    assert LEARNERS[name](**recorded) == learner
    from_json: dict[str, Any] = json.loads(json.dumps(recorded))
    assert learner_for(name, **from_json) == learner


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    ("preset", "hidden", "batch_size"),
    [("paper", (256,) * 3, 256), ("fql", (512,) * 4, 256), ("cpu", (128,) * 3, 256), ("tiny", (32,) * 2, 64)],
)
def test_presets_are_sizes(name: str, preset: Any, hidden: tuple[int, ...], batch_size: int) -> None:
    learner: Any = learner_for(name, preset=preset)
    assert (learner.hidden, learner.batch_size, learner.learning_rate) == (hidden, batch_size, 3e-4)


def test_the_task_gives_discount_and_alpha() -> None:
    iql, fql = learner_for("iql", task=TASK), learner_for("fql", preset="fql", task=TASK)
    assert iql == IQL(discount=0.995, alpha=1.0)
    assert fql == FQL(hidden=(512,) * 4, discount=0.995, alpha=30.0, q_aggregation="min")
    assert learner_for("td3bc", task=TASK) == TD3BC(discount=0.995)
    assert learner_for("rebrac", task=TASK) == ReBRAC(discount=0.995)
    assert learner_for("bc", task=TASK) == BC()


def test_the_fql_preset_takes_its_authors_alpha_where_they_have_one() -> None:
    theirs = dataclasses.replace(TASK, fql_authors_alpha=300.0)
    alphas: list[Any] = [learner_for("fql", preset=preset, task=theirs) for preset in ("paper", "cpu", "fql")]
    assert [learner.alpha for learner in alphas] == [30.0, 30.0, 300.0]
    none: Any = learner_for("fql", preset="fql", task=TASK)
    assert none.alpha == 30.0


def test_every_task_of_the_table_gives_every_learner() -> None:
    for task in all_tasks():
        for name in LEARNERS:
            learner = learner_for(name, preset="tiny", task=task)
            assert learner.discount == (1.0 if name == "bc" else task.discount)


def test_a_tasks_temperature_is_not_taken_for_ddpgbc_weight() -> None:
    with pytest.raises(ConfigError, match="ddpgbc needs alpha"):
        learner_for("iql", task=TASK, actor="ddpgbc")
    learner: Any = learner_for("iql", task=TASK, actor="ddpgbc", alpha=0.1)
    assert (learner.alpha, learner.discount) == (0.1, 0.995)


def test_overrides_come_last_and_keep_their_types() -> None:
    learner: Any = learner_for("fql", preset="tiny", task=TASK, alpha=3, q_aggregation="mean", hidden=[8])
    assert learner == FQL(hidden=(8,), batch_size=64, discount=0.995, alpha=3.0, q_aggregation="mean")
    assert isinstance(learner.alpha, float)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("iql", {"expectil": 0.8}, "did you mean 'expectile'"),
        ("bc", {"discount": 0.9}, "no setting 'discount'"),
        ("bc", {"layer_norm": True}, "no setting 'layer_norm'"),
        ("fql", {"expectile": 0.9}, "no setting 'expectile'"),
        ("fql", {"alpha": "3"}, "wrong type"),
        ("fql", {"alpha": True}, "wrong type"),
        ("fql", {"flow_steps": 2.5}, "wrong type"),
        ("fql", {"normalise_q": 1}, "wrong type"),
        ("fql", {"hidden": 256}, "wrong type"),
        ("fql", {"q_aggregation": "median"}, "no such choice"),
        ("fqll", {}, "did you mean 'fql'"),
        ("iql", {"preset": "papr"}, "did you mean 'paper'"),
    ],
)
def test_what_a_user_may_mistype(name: str, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        learner_for(name, **overrides)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_setting_is_used(name: str) -> None:
    """No field stands in a learner without its code reading it."""
    kind = LEARNERS[name]
    source = inspect.getsource(kind)
    for field in dataclasses.fields(kind):
        read = source.count(f"self.{field.name}")
        assert read > 0 or field.name == "batch_size", f"{name}.{field.name} is never read"
