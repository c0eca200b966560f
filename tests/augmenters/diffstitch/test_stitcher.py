"""Batches of stitches: what is real is the source's, what is generated is judged, and every rejection is counted."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from astro_rl.augment.generate import GeneratedBatch
from astro_rl.augmenters.base import Proposer
from astro_rl.augmenters.diffstitch.method import FittedDiffStitch
from astro_rl.augmenters.diffstitch.propose import FAR, REASONS, SLACK, Stitcher
from astro_rl.augmenters.diffstitch.returns import gap_returns, returns_to_go
from astro_rl.augmenters.registry import METHODS
from astro_rl.data.schema import Dataset
from astro_rl.nets.mlp import MLP
from astro_rl.tasks import get_task
from astro_rl.tasks.relabel import relabel
from tests.augmenters.diffstitch.conftest import Stitched

PIECE = 4


class AlwaysEnds(MLP):
    """Says reward 0 and a sure end, whatever it is shown."""

    def __init__(self) -> None:
        self.layers, self.norms = (), ()

    def __call__(self, x: Any) -> Any:
        return x[:, :2] * 0 + np.asarray([0.0, 9.0], np.float32)


def stitcher(stitched: Stitched, *, task: Any = None, seed: int = 0, **changes: Any) -> Stitcher:
    """The fit's own, with other settings of `generate`."""
    fitted = METHODS["diffstitch"].adjust(stitched.fitted, changes)  # type: ignore[misc]
    assert isinstance(fitted, FittedDiffStitch)
    return fitted.propose(stitched.dataset, task=task, seed=seed)


@pytest.fixture(scope="module")
def batch(stitched: Stitched) -> GeneratedBatch:
    return stitcher(stitched, require_gain=False).batch(1)


def kept(batch: GeneratedBatch) -> Dataset:
    assert batch.dataset is not None
    return batch.dataset


def gaps(made: Dataset) -> list[slice]:
    """Rows that gap transitions leave: from the source's last state to the last generated one."""
    sizes = np.diff(made.offsets)
    return [
        slice(o + PIECE - 1, o + n - PIECE) for o, n in zip(made.offsets[:-1].tolist(), sizes, strict=True)
    ]


def test_real_rows_are_the_sources_to_the_bit(stitched: Stitched, batch: GeneratedBatch) -> None:
    made, source = kept(batch), stitched.dataset
    owner, step = made.extras["source_trajectory"], made.extras["source_step"]
    assert ((owner >= 0) == (step >= 0)).all()
    real = np.flatnonzero(owner >= 0)
    rows = source.offsets[owner[real]] + step[real]
    np.testing.assert_array_equal(made.observations[real], source.observations[rows])
    leaves = real[np.isin(real + 1, real) & (owner[np.minimum(real + 1, made.n_rows - 1)] == owner[real])]
    leaves = leaves[~np.isin(leaves, made.end_rows)]
    rows = source.offsets[owner[leaves]] + step[leaves]
    assert len(leaves) == len(made) * 2 * (PIECE - 1)
    assert source.rewards is not None and made.rewards is not None
    np.testing.assert_array_equal(made.actions[leaves], source.actions[rows])
    np.testing.assert_array_equal(made.rewards[leaves], source.rewards[rows])
    np.testing.assert_array_equal(made.terminated[leaves], source.terminated[rows])


def test_a_trajectory_is_a_piece_a_gap_and_a_piece_of_another_trajectory(
    stitched: Stitched, batch: GeneratedBatch
) -> None:
    made, offsets = kept(batch), stitched.dataset.offsets
    assert len(made) == len(batch.starts)
    for number in range(len(made)):
        rows = slice(int(made.offsets[number]), int(made.offsets[number + 1]))
        owner, step = made.extras["source_trajectory"][rows], made.extras["source_step"][rows]
        source, gap, target = owner[:PIECE], owner[PIECE:-PIECE], owner[-PIECE:]
        assert len(set(source)) == len(set(target)) == 1 and source[0] != target[0]
        assert (gap == -1).all() and 2 <= len(gap) <= 5, "places 3 to 6"
        assert (np.diff(step[:PIECE]) == 1).all() and (np.diff(step[-PIECE:]) == 1).all()
        assert batch.starts[number].tolist() == [
            offsets[source[0]] + step[0],
            offsets[target[0]] + step[-PIECE],
        ]
        assert made.truncated[rows][-2] or made.terminated[rows][-2]


def test_actions_and_deviation_are_those_of_the_states_that_are_written(
    stitched: Stitched, batch: GeneratedBatch
) -> None:
    made, fitted = kept(batch), stitched.fitted
    states = fitted.normaliser.normalise(made.observations).astype(np.float32)
    for number, rows in enumerate(gaps(made)):
        here, after = (jnp.asarray(states[rows.start + k : rows.stop + k]) for k in (0, 1))
        actions = np.clip(fitted.plan.inverse.predict(fitted.plan.inverse_network, here, after), -1, 1)
        np.testing.assert_allclose(made.actions[rows], actions, atol=1e-5)
        told = fitted.onestep.predict(fitted.onestep_network, here, jnp.asarray(made.actions[rows]))
        worst = np.square(np.asarray(told - after)).sum(axis=1).max()
        column = made.extras["deviation"][made.offsets[number] : made.offsets[number + 1]]
        np.testing.assert_allclose(column, worst, rtol=1e-3)


def test_a_batch_depends_on_seed_and_number_alone(stitched: Stitched, batch: GeneratedBatch) -> None:
    other = stitcher(stitched, require_gain=False)
    other.batch(0)
    again = other.batch(1)
    assert kept(again).digest() == kept(batch).digest()
    assert (again.chains, again.completions) == (batch.chains, batch.completions)
    np.testing.assert_array_equal(again.starts, batch.starts)
    assert kept(other.batch(2)).digest() != kept(batch).digest()
    assert kept(stitcher(stitched, require_gain=False, seed=1).batch(1)).digest() != kept(batch).digest()


def test_every_proposal_is_kept_or_has_a_reason(stitched: Stitched, batch: GeneratedBatch) -> None:
    middle = float(np.median(np.unique(kept(batch).extras["deviation"])))
    judged = stitcher(stitched, deviation_most=middle, threshold=0.9999)
    assert isinstance(judged, Proposer)
    found = judged.batch(1)
    for account in (found.chains, found.completions):
        assert account.proposed == account.kept + sum(account.rejected.values())
    assert found.chains.rejected[FAR] > 0
    assert found.completions.proposed == found.chains.kept == len(found.starts)
    assert set(found.completions.rejected) <= set(REASONS.values())
    assert set(REASONS.values()) | {FAR} == set(judged.cures)


def test_gaps_that_deviate_are_not_kept(stitched: Stitched, batch: GeneratedBatch) -> None:
    """A threshold between what the gaps of this batch deviate by keeps those below it, and nothing changes in them."""
    deviations = kept(batch).extras["deviation"][kept(batch).offsets[:-1]]
    middle = float(np.median(deviations))
    found = stitcher(stitched, require_gain=False, deviation_most=middle).batch(1)
    below = np.flatnonzero(deviations <= middle)
    assert found.completions.rejected == {REASONS[1]: len(deviations) - len(below)}
    np.testing.assert_array_equal(kept(found).observations, kept(batch).select(below).observations)
    nothing = stitcher(stitched, deviation_most=1e-12).batch(1)
    assert nothing.dataset is None and nothing.completions.kept == 0


def test_what_a_gap_makes_worse_is_not_kept(stitched: Stitched) -> None:
    """The state stitched from is worth at least what it was, with the target's own worth behind the gap."""
    worth = returns_to_go(stitched.dataset, 0.99)
    # From anywhere to anywhere: many stitches lead to worse places.
    every = {"source_share": 1.0, "target_share": 1.0, "return_noise": 0.0}
    one = stitcher(stitched, require_gain=True, **every).batch(0)
    made = kept(one)
    assert one.completions.rejected["worth less than before"] > 0
    owner, step = made.extras["source_trajectory"], made.extras["source_step"]
    for rows in gaps(made):
        row = stitched.dataset.offsets[owner[[rows.start, rows.stop]]] + step[[rows.start, rows.stop]]
        assert made.rewards is not None
        after = gap_returns(made.rewards[rows].astype(float), made.terminated[rows], worth[row[1]], 0.99)
        assert after >= worth[row[0]] - 2 * SLACK * max(1, abs(worth[row[0]]))
    free = stitcher(stitched, require_gain=False, **every).batch(0)
    assert len(kept(free)) > len(made)


def test_stitches_lead_from_low_to_high(stitched: Stitched) -> None:
    worth = returns_to_go(stitched.dataset, 0.99)
    found = stitcher(stitched, return_noise=0.0, source_share=0.2, target_share=0.2).batch(0)
    sources = found.starts[:, 0] + PIECE - 1
    assert (worth[sources] < np.quantile(worth, 0.3)).all()
    assert (worth[found.starts[:, 1]] > np.quantile(worth, 0.7)).all()


def test_a_task_rewards_what_is_generated(stitched: Stitched) -> None:
    """Any task whose observations are two numbers: rewards are its own function's, on every row."""
    task = get_task("pointmaze-medium-stitch-task1")
    proposer = stitcher(stitched, task=task)
    made = kept(proposer.batch(0))
    np.testing.assert_array_equal(made.rewards, relabel(made, task).rewards)
    assert proposer.reward_quality is None and "relabelled" in made.info


def test_without_rewards_everything_is_stitched_alike(stitched: Stitched) -> None:
    bare = dataclasses.replace(stitched.dataset, rewards=None, stamp=None)
    found = dataclasses.replace(stitched, dataset=bare)
    proposer = stitcher(found)
    batch = proposer.batch(0)
    assert kept(batch).rewards is None and proposer.reward_quality is None
    assert "worth less than before" not in batch.completions.rejected


def test_an_end_within_the_gap_is_refused_where_no_task_says_what_it_means(stitched: Stitched) -> None:
    proposer = stitcher(stitched)
    finisher = proposer._finisher
    assert finisher.reward_model is not None
    gloomy = dataclasses.replace(finisher.reward_model, ever_terminates=True, network=AlwaysEnds())
    proposer._finisher = dataclasses.replace(finisher, reward_model=gloomy)
    found = proposer.batch(0)
    assert found.dataset is None
    assert found.completions.rejected == {"ends within the gap": found.completions.proposed}
