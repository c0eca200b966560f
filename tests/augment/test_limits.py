"""Which real windows limits are measured on when a fit has none of the kind that is asked for."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augment import generate
from astro_rl.augment.limits import LEVELS, RealLimits
from astro_rl.augment.models import FittedModels
from astro_rl.augment.settings import settings_for
from astro_rl.augment.shares import held_out_split
from astro_rl.data import Dataset, from_trajectories
from astro_rl.dynamics.model import Dynamics
from astro_rl.nets.dit import DiTConfig
from astro_rl.planner.model import Planner
from astro_rl.stitch.gauge import Gauge
from astro_rl.stitch.geometry import ChainShape
from astro_rl.temporal.encoder import Encoder
from astro_rl.temporal.learning import TemporalLearner
from astro_rl.temporal.model import TemporalModel
from tests.augment.stub_completer import plain

SHAPE = ChainShape(pieces=2, segment=2, mask=2)
SAME = (1.0,) * len(LEVELS)


def limits_of(mode: Any) -> RealLimits:
    return RealLimits(mode, 10, SAME, SAME, SAME, None)


def walks(count: int) -> Dataset:
    steps = np.arange(12, dtype=np.float32)[:, None]
    return from_trajectories(
        [{"observations": steps + start, "actions": np.zeros((11, 1), np.float32)} for start in range(count)]
    )


def untrained(limits: RealLimits) -> FittedModels:
    """ψ(s) = s, and networks that nobody has trained."""
    settings = settings_for(
        "tiny", {"held_out": 0.2, "generate.search.batch": 8, "generate.sampling.polish": 0}
    )
    learner = TemporalLearner(hidden=(), latent=1, members=1)
    encoder = Encoder.init(jax.random.key(0), 1, (), 1)
    exact = eqx.tree_at(lambda e: e.layers[0].weight, encoder, jnp.ones((1, 1)))
    temporal = TemporalModel(learner, jax.tree.map(lambda leaf: leaf[None], exact), plain(1))
    net = DiTConfig(width=4, depth=1, heads=1, patch=1, step_width=2)
    dynamics = Dynamics(5, 1, 1, net=net)
    planner = Planner(5, 1, 1, dynamics=dynamics, shape=SHAPE, net=net, phase=1)
    return FittedModels(
        source_digest="",
        shape=SHAPE,
        normaliser=plain(1),
        temporal=temporal,
        gauge=Gauge(0.99, literal=True),
        dynamics=dynamics,
        dynamics_network=dynamics.init(jax.random.key(0)).average,
        planner=planner,
        planner_network=planner.init(jax.random.key(0)).average,
        limits=limits,
        settings=settings,
        seed=0,
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The trajectories of each measurement."""
    asked: list[list[int]] = []

    def measure(*_: Any, trajectories: np.ndarray, **__: Any) -> RealLimits:
        asked.append(trajectories.tolist())
        return limits_of("anchored")

    monkeypatch.setattr(generate, "measure_limits", measure)
    return asked


def test_limits_of_another_mode_are_measured_on_what_no_model_was_fitted_to(
    measured: list[list[int]],
) -> None:
    dataset, models = walks(10), untrained(limits_of("rollout"))
    generate.Generator(models, dataset)
    assert measured == [[8, 9]]
    assert measured[0] == held_out_split(dataset, 0.2, models.dynamics.horizon)[1].tolist()


def test_limits_that_fit_are_not_measured_again(measured: list[list[int]]) -> None:
    given = limits_of("anchored")
    generator = generate.Generator(untrained(given), walks(10))
    assert measured == []
    assert generator.finisher.limits is given
