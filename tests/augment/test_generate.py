"""Generating: batches that anybody can make again, accounts that add up, and what is said when nothing passes."""

import dataclasses

import numpy as np
import pytest

from astro_rl import Astro
from astro_rl.augment.fitting import no_bar
from astro_rl.augment.generate import CURES, Account, Generator, nothing_passes
from astro_rl.augment.limits import LEVELS
from astro_rl.augment.settings import changed
from astro_rl.augment.verdicts import REASONS as COMPLETION_REASONS
from astro_rl.errors import ConfigError, DataError
from astro_rl.stitch.euclidean import NOBODY_ELSE, NOWHERE
from astro_rl.stitch.filtering import FILTERED
from astro_rl.stitch.search import REASONS as SEARCH_REASONS
from tests.fitted import Fitted


def test_accounts_add_up_by_hand() -> None:
    one = Account(10, 6, 1, {"a": 3, "b": 1})
    both = one + Account(5, 2, 0, {"b": 2, "c": 1})
    assert both == Account(15, 8, 1, {"a": 3, "b": 3, "c": 1})
    assert Account.from_json(both.as_json()) == both


def test_a_batch_depends_on_seed_and_number_alone(fitted: Fitted) -> None:
    models, dataset = fitted.stitcher.models, fitted.dataset
    forwards, backwards = (Generator(models, dataset, seed=3) for _ in range(2))
    first, second = forwards.batch(0), forwards.batch(1)
    again, before = backwards.batch(1), backwards.batch(0)
    for one, other in ((first, before), (second, again)):
        assert one.dataset is not None and other.dataset is not None
        assert one.dataset.digest() == other.dataset.digest()
        assert (one.chains, one.completions) == (other.chains, other.completions)
    assert first.dataset is not None and second.dataset is not None
    assert first.dataset.digest() != second.dataset.digest()


def test_latents_that_were_kept_give_the_same_batches(fitted: Fitted) -> None:
    table = np.load(fitted.folder / "latents.npy", mmap_mode="r")
    kept = Generator(fitted.stitcher.models, fitted.dataset, latents=table).batch(0)
    anew = Generator(fitted.stitcher.models, fitted.dataset).batch(0)
    assert kept.dataset is not None and anew.dataset is not None
    assert kept.dataset.digest() == anew.dataset.digest()


def test_the_control_without_stitching_joins_what_was_joined_before(fitted: Fitted) -> None:
    settings = changed(
        fitted.stitcher.models.settings.generate, {"chains": "regenerated", "filter_real": False}
    )
    batch = Generator(fitted.stitcher.models, fitted.dataset, settings).batch(0)
    assert batch.chains.kept == batch.chains.proposed
    assert (np.diff(batch.starts, axis=1) == 12).all()
    assert batch.dataset is not None
    for one in batch.dataset:
        assert len(set(one.extras["source_trajectory"]) - {-1}) == 1


def test_more_than_one_search_is_behind_a_batch_where_few_chains_pass(fitted: Fitted) -> None:
    generous = Generator(fitted.stitcher.models, fitted.dataset)
    strict = Generator(
        fitted.stitcher.models,
        fitted.dataset,
        changed(fitted.stitcher.models.settings.generate, {"search.threshold": 1.0}),
    )
    assert strict.batch(0).chains.proposed > generous.batch(0).chains.proposed


@pytest.mark.parametrize(
    ("settings", "reason", "cure"),
    [
        ({"search.tolerance": 1e-6}, "no target at the right distance", "generate.search.tolerance"),
        ({"search.threshold": 1e-4}, "by itself", "raise the threshold"),
    ],
)
def test_nothing_passes(fitted: Fitted, settings: dict, reason: str, cure: str) -> None:
    """The dominating reason, and what to change."""
    with pytest.raises(DataError, match=rf"(?s){reason}.*{cure}"):
        fitted.stitcher.augment(50, settings={**settings, "give_up_after": 2}, bar=no_bar)


def test_no_completion_passes(fitted: Fitted) -> None:
    """Real windows without any error leave no room for one."""
    models = fitted.stitcher.models
    exact = dataclasses.replace(models.limits, step_error=(0.0,) * len(LEVELS))
    with pytest.raises(
        DataError, match=r"(?s)No completed sequence.*step error above.*fit dynamics and planner longer"
    ):
        Astro(dataclasses.replace(models, limits=exact), fitted.dataset).augment(
            50, settings={"give_up_after": 2}, bar=no_bar
        )


def test_every_reason_has_a_cure() -> None:
    reasons = (*SEARCH_REASONS.values(), FILTERED, NOWHERE, NOBODY_ELSE, *COMPLETION_REASONS.values())
    for reason in reasons:
        assert reason in CURES
        told = str(nothing_passes(Account(4, 0, 0, {reason: 3, "a rarer one": 1}), Account(), 2))
        assert reason in told and CURES[reason] in told and "a rarer one" not in told
        assert "4 proposed in 2 batches, 0 kept; 3 of them" in told


def test_settings_that_cures_name_exist(fitted: Fitted) -> None:
    """What a message says to raise can be raised by that name."""
    settings = fitted.stitcher.models.settings
    for text in CURES.values():
        for word in text.replace(",", " ").split():
            if word.startswith("generate."):
                changed(settings, {word: 1})


def test_models_that_give_no_numbers_are_counted_and_named(fitted: Fitted) -> None:
    import equinox as eqx
    import jax

    models = fitted.stitcher.models
    broken = jax.tree.map(
        lambda leaf: leaf * np.nan, eqx.filter(models.planner_network, eqx.is_inexact_array)
    )
    broken = eqx.combine(broken, models.planner_network)
    batch = Generator(dataclasses.replace(models, planner_network=broken), fitted.dataset).batch(0)
    assert batch.dataset is None
    assert batch.completions.rejected == {"not finite": batch.completions.proposed}


@pytest.mark.parametrize("selection", ["random", "euclidean"])
def test_other_selections_are_completed_and_counted_alike(fitted: Fitted, selection: str) -> None:
    changes = {"selection": selection, "continuation.steps": 50, "continuation.hidden": (16,)}
    settings = changed(fitted.stitcher.models.settings.generate, changes)
    latents = np.load(fitted.folder / "latents.npy", mmap_mode="r")
    one, other = (
        Generator(fitted.stitcher.models, fitted.dataset, settings, latents=latents) for _ in range(2)
    )
    batch = one.batch(1)
    assert batch.chains.kept == batch.chains.proposed == len(batch.starts), "no filter"
    assert batch.completions.kept + sum(batch.completions.rejected.values()) == batch.completions.proposed
    assert batch.dataset is not None
    again = other.batch(1).dataset
    assert again is not None and again.digest() == batch.dataset.digest()
    assert np.isfinite(batch.dataset.extras["filter_statistic"]).all()
    stitched = Generator(fitted.stitcher.models, fitted.dataset, latents=latents).batch(1)
    assert stitched.dataset is not None and stitched.dataset.digest() != batch.dataset.digest()


def test_settings_of_selections_that_contradict_each_other(fitted: Fitted) -> None:
    settings = fitted.stitcher.models.settings.generate
    with pytest.raises(ConfigError, match="not selected"):
        changed(settings, {"selection": "random", "chains": "regenerated"})
    with pytest.raises(ConfigError, match="only on other selections"):
        changed(settings, {"filter_others": True})
