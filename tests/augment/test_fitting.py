"""Fitting where the data is awkward: what works all the same, and what is refused before anything is learned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl import Astro, from_arrays
from astro_rl.augment import fitting
from astro_rl.augment.fitting import no_bar, require_finite
from astro_rl.augment.settings import settings_for
from astro_rl.data import Dataset
from astro_rl.errors import DataError, TrainingError
from astro_rl.stitch.geometry import ChainShape
from tests.fitted import ROWS, SHAPE, SIZES, TRAJECTORIES, Fitted, fit, walks


@pytest.fixture
def nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test in which a model begins to learn."""

    def learns(*_: Any, **__: Any) -> None:
        raise AssertionError("something was learned before the refusal")

    monkeypatch.setattr(fitting, "run_stage", learns)


def short_trajectories(states: int, count: int = 10) -> Dataset:
    rows = states * count
    return from_arrays(
        np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32),
        np.zeros((rows, 2), np.float32),
        offsets=np.arange(count + 1) * states,
    )


@pytest.mark.usefixtures("nothing_learned")
@pytest.mark.parametrize(
    ("states", "options", "fits"),
    [
        (10, {"shape": (5, 18, 18)}, r"n = 5, l = M = 4 would fit: L = 40"),
        (
            10,
            {"preset": "cpu", "shape": None, "settings": {}},
            r"patch 3: n = 5, l = M = 3 would fit, L = 30",
        ),
        (4, {"shape": None}, "at least six states"),
    ],
)
def test_trajectories_too_short_for_the_horizon_are_told_which_would_fit(
    states: int, options: dict, fits: str
) -> None:
    with pytest.raises(DataError, match=rf"(?s)trajectories of {states} states.*{fits}"):
        fit(short_trajectories(states), **options)


def test_what_is_said_to_fit_is_accepted() -> None:
    """The advice of the test above, taken."""
    offsets = short_trajectories(10).offsets
    from astro_rl.stitch.auto import check_shape

    check_shape(ChainShape(5, 4, 4), offsets, patch=2, completion="anchored", distinct=True)
    check_shape(ChainShape(5, 3, 3), offsets, patch=3, completion="anchored", distinct=True)


@pytest.mark.usefixtures("nothing_learned")
def test_one_single_trajectory_is_refused_with_both_ways_out() -> None:
    one = walks().select([0])
    with pytest.raises(DataError, match=r"(?s)single trajectory.*distinct=false.*as several"):
        fit(one)


@pytest.mark.usefixtures("nothing_learned")
def test_data_in_which_nothing_varies_or_a_value_dwarfs_all_others_is_refused() -> None:
    still = np.ones((TRAJECTORIES * ROWS, 2), np.float32)
    with pytest.raises(DataError, match=r"(?s)Every dimension.*constant"):
        fit(walks(observations=still))
    wild = np.array(walks().observations)
    assert (fitting.checked_normaliser(walks()).spread > 0).all()
    wild[7, 1] = 1e6
    with pytest.raises(DataError, match=r"(?s)so large beside the others.*dimension 1"):
        fit(walks(observations=wild))
    broken = wild.astype(np.float64)
    broken[:, 1] *= 1e40
    with pytest.raises(DataError, match=r"(?s)too large for 32-bit.*dimension 1"):
        fit(walks(observations=broken))


def test_one_single_trajectory_can_be_stitched_with_itself(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is learned here: other lengths would be compiled anew, and what counts is that all stages take it."""
    monkeypatch.setattr(fitting, "fit_chunk", lambda model, state, *_: (state, {"loss": jnp.zeros(())}))
    whole = walks(offsets=[0, TRAJECTORIES * ROWS])
    stitcher = fit(whole, settings={**SIZES, "generate.search.distinct": False})
    made = stitcher.augment(50, bar=no_bar)
    assert made.n_transitions >= 50
    assert set(made.extras["source_trajectory"]) == {-1, 0}


def test_a_constant_dimension_stays_constant(fitted: Fitted) -> None:
    observations = np.array(walks().observations)
    observations[:, 1] = np.float32(0.1)
    made = fit(walks(observations=observations)).augment(60, bar=no_bar)
    assert (made.observations[:, 1] == np.float32(0.1)).all()
    assert made.observations[:, 0].std() > 0


def test_a_button_that_is_seldom_pressed_is_data() -> None:
    """Two rows of 1,608 differ, and by much; the rest is constant and no fault is suspected."""
    observations = np.array(walks().observations)
    observations[:, 1] = 0.0
    observations[[5, 6], 1] = 1e4
    assert (fitting.checked_normaliser(walks(observations=observations)).spread > 0).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_huge_offset_changes_nothing_but_the_offset(fitted: Fitted, kind: type) -> None:
    """1e6 beside steps of 0.2. 32-bit numbers know sixteenths there, and no more; 64-bit ones lose nothing."""
    far = np.asarray(walks().observations, np.float64) + 1e6
    stitcher = fit(walks(observations=far.astype(kind)))
    made = stitcher.augment(60, bar=no_bar)
    assert made.observations.dtype == kind
    known = made.extras["source_trajectory"] >= 0
    generated = np.asarray(made.observations[~known], np.float64) - 1e6
    here = np.asarray(walks().observations)
    assert (generated >= here.min(axis=0) - 0.1).all() and (generated <= here.max(axis=0) + 0.1).all()
    on_grid = (generated * 16 % 1 == 0).mean()
    assert on_grid == 1.0 if kind is np.float32 else on_grid < 0.1


def test_a_small_room_far_away_is_no_constant() -> None:
    """Coordinates in metres on a map: 64-bit numbers that vary by less than a millionth of their size."""
    places = np.asarray(walks().observations, np.float64) / 10 + 4e6
    normaliser = fitting.checked_normaliser(walks(observations=places))
    assert (normaliser.spread > 0).all()
    seen = normaliser.normalise(places)
    np.testing.assert_allclose(normaliser.undo(seen), places, rtol=0, atol=1e-6)


def test_a_loss_that_is_not_finite_names_stage_quantity_and_cure(fitted: Fitted) -> None:
    with pytest.raises(
        TrainingError, match=r"(?s)dynamics model diverged.*mse.*nan.*dynamics\.learning_rate"
    ):
        require_finite("dynamics", {"loss": 1.0, "mse": float("nan")}, 40)
    # No clip of gradients saves weights that one step carries off.
    wild = {**SIZES, "temporal.learning_rate": 1e30}
    with pytest.raises(TrainingError, match=r"(?s)temporal.*(not|no longer) finite.*(lower|learning rate)"):
        fit(walks(), settings=wild)


class Watching:
    """A keeper that remembers what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, bool]] = []

    def restore(self, stage: str, template: Any) -> tuple[int, Any]:
        return 0, None

    def keep(self, stage: str, step: int, state: Any, metrics: Mapping[str, float], *, last: bool) -> None:
        assert metrics and all(np.isfinite(value) for value in metrics.values())
        self.seen.append((stage, step, last))

    def latents(self) -> Path | None:
        return None


def test_a_keeper_hears_of_every_chunk_and_a_seed_decides_every_weight(fitted: Fitted) -> None:
    keeper = Watching()
    settings = settings_for("tiny", SIZES)
    models = fitting.fit(walks(), settings, shape=ChainShape(*SHAPE), keeper=keeper)
    assert keeper.seen == [
        ("temporal", 100, False),
        ("temporal", 200, False),
        ("temporal", 300, True),
        ("dynamics", 20, False),
        ("dynamics", 40, True),
        ("planner", 20, False),
        ("planner", 40, True),
        ("onestep", 20, False),
        ("onestep", 40, True),
    ]
    assert models.digest() == fitted.stitcher.models.digest(), "same seed, same weights"
    assert fit(walks(), seed=1).models.digest() != models.digest()


def test_limits_are_those_of_trajectories_that_no_diffusion_model_saw(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in twenty of eight is one: the last. A task that knows x and y asks for limits in the plane as well, over
    the same windows."""
    from astro_rl.augment import generate

    measured: list[Any] = []
    real = generate.measure_limits
    monkeypatch.setattr(
        generate, "measure_limits", lambda *a, **k: measured.append(k["trajectories"]) or real(*a, **k)
    )
    stitcher = Astro.load(fitted.folder, walks(), task="pointmaze-medium-stitch")
    made = stitcher.augment(30, bar=no_bar)
    assert [list(trajectories) for trajectories in measured] == [[TRAJECTORIES - 1]]
    limits = made.info["lineage"]["limits"]
    assert limits["jump_xy"] is not None, "lineage tells the limits that were used"
    assert limits["deviation"] == list(fitted.stitcher.models.limits.deviation)
    assert bool(jnp.isfinite(jnp.asarray(limits["jump_xy"])).all())
