import time
from collections.abc import Callable, Iterator
from typing import Any

import evaluation_stubs as stubs
import jax
import numpy as np
import pytest

from astro_rl.errors import AstroError, ConfigError, TrainingError, UnavailableError
from astro_rl.evaluate import EvaluationPool, EvaluationResult

draw = jax.jit(jax.vmap(jax.vmap(lambda key: jax.random.uniform(key, (2,), minval=-1, maxval=1))))


def act(observations: np.ndarray, keys: Any) -> np.ndarray:
    """Depends on the observation and on the key, a row at a time."""
    return np.clip(0.5 * np.asarray(draw(keys)) + 0.3 * observations[..., :2], -1, 1)


def stand_still(observations: np.ndarray, keys: Any) -> np.ndarray:
    return np.zeros((*observations.shape[:2], 2), np.float32)


def evaluate(
    factory: Any, *, lanes: int = 2, workers: int = 0, seeds: tuple[int, ...] = (3, 7), **more: Any
) -> EvaluationResult:
    draws = more.pop("draws_globally_in_step", False)
    policy = more.pop("policy", act)
    with EvaluationPool(
        factory, lanes_per_seed=lanes, workers=workers, draws_globally_in_step=draws, step_limit=50
    ) as pool:
        return pool.evaluate(policy, seeds=seeds, episodes=more.pop("episodes", 5), **more)


def assert_equal(one: EvaluationResult, other: EvaluationResult) -> None:
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize(("lanes", "workers"), [(1, 0), (3, 0), (5, 0), (9, 0), (2, 1), (3, 2), (1, 3)])
def test_results_do_not_depend_on_lanes_or_workers(lanes: int, workers: int) -> None:
    assert_equal(
        evaluate(stubs.Drifting, lanes=lanes, workers=workers), evaluate(stubs.Drifting, lanes=2, workers=0)
    )


@pytest.mark.parametrize(("lanes", "workers"), [(1, 0), (2, 0), (2, 2)])
def test_steps_that_draw_from_the_global_generator_are_seeded_too(lanes: int, workers: int) -> None:
    reference = evaluate(stubs.DriftingGlobally, lanes=3, draws_globally_in_step=True)
    np.random.seed(lanes)
    before = np.random.get_state(legacy=False)
    result = evaluate(stubs.DriftingGlobally, lanes=lanes, workers=workers, draws_globally_in_step=True)
    assert_equal(result, reference)
    after = np.random.get_state(legacy=False)
    np.testing.assert_equal(after, before)


def test_a_seed_scores_the_same_alone_in_company_and_in_any_order() -> None:
    both = evaluate(stubs.Drifting, seeds=(3, 7))
    for row, seed in enumerate(both.seeds):
        alone = evaluate(stubs.Drifting, seeds=(seed,))
        np.testing.assert_array_equal(alone.returns[0], both.returns[row])
    swapped = evaluate(stubs.Drifting, seeds=(7, 3))
    np.testing.assert_array_equal(swapped.returns, both.returns[::-1])


def test_seeds_and_episodes_differ_from_each_other() -> None:
    result = evaluate(stubs.Drifting, seeds=(0, 1, 2), episodes=6, policy=stand_still)
    assert len(np.unique(result.returns)) == 18


def test_more_episodes_begin_with_the_same_ones() -> None:
    few, many = evaluate(stubs.Drifting, episodes=3), evaluate(stubs.Drifting, episodes=8)
    np.testing.assert_array_equal(many.returns[:, :3], few.returns)


def test_environments_are_built_once_and_a_second_evaluation_repeats_the_first() -> None:
    with EvaluationPool(stubs.Drifting, lanes_per_seed=3, workers=0) as pool:
        built = stubs.BUILT_HERE
        first = pool.evaluate(act, seeds=(3, 7), episodes=5)
        assert built + 6 == stubs.BUILT_HERE
        assert_equal(pool.evaluate(act, seeds=(3, 7), episodes=5), first)
        pool.evaluate(act, seeds=(1,), episodes=2)
        assert built + 6 == stubs.BUILT_HERE


def test_no_more_environments_than_episodes() -> None:
    built = stubs.BUILT_HERE
    evaluate(stubs.Drifting, lanes=20, seeds=(1,), episodes=2)
    assert built + 2 == stubs.BUILT_HERE


def test_a_pool_grows_with_the_number_of_seeds() -> None:
    with EvaluationPool(stubs.Drifting, lanes_per_seed=1, workers=3) as pool:
        pool.evaluate(act, seeds=(3,), episodes=2)
        grown = pool.evaluate(act, seeds=(3, 7, 9), episodes=2)
    assert_equal(grown, evaluate(stubs.Drifting, seeds=(3, 7, 9), episodes=2))


def test_returns_lengths_and_successes_are_what_the_episode_gave() -> None:
    result = evaluate(stubs.Told, episodes=3, policy=stand_still)
    assert result.returns.tolist() == [[3.0] * 3] * 2
    assert result.lengths.tolist() == [[2] * 3] * 2
    # Told in the first step and taken back in the last: it was reached, and that is what counts.
    assert result.successes is not None and result.successes.all()
    assert result.scores.tolist() == [100.0, 100.0]


def test_success_is_unknown_where_the_environment_never_tells() -> None:
    result = evaluate(stubs.Untold, policy=stand_still)
    assert result.successes is None
    assert result.scores.tolist() == [3.0, 3.0]
    assert result.summary().never_learned is None


def test_shapes_are_fixed_and_every_action_key_is_used_once() -> None:
    shapes, keys_seen = set(), []

    def watching(observations: np.ndarray, keys: Any) -> np.ndarray:
        shapes.add((observations.shape, keys.shape, observations.dtype))
        keys_seen.append(np.asarray(jax.random.key_data(keys)).reshape(-1, 2))
        return stand_still(observations, keys)

    with EvaluationPool(stubs.Told, lanes_per_seed=1, workers=0) as pool:
        pool.evaluate(watching, seeds=(3, 7), episodes=4)
    assert shapes == {((2, 1, 3), (2, 1), np.dtype(np.float32))}
    keys = np.concatenate(keys_seen)
    assert len(np.unique(keys, axis=0)) == len(keys) == 2 * 4 * 2


def test_progress_counts_episodes() -> None:
    told: list[tuple[int, int]] = []
    evaluate(stubs.Drifting, episodes=4, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 8) and told[-1] == (8, 8)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_workers_keep_jax_out_and_blas_to_one_thread() -> None:
    seen = []

    def watching(observations: np.ndarray, keys: Any) -> np.ndarray:
        seen.append(observations[0, 0].copy())
        return stand_still(observations, keys)

    for workers in (1, 0):
        seen.clear()
        evaluate(stubs.Confessing, lanes=1, workers=workers, seeds=(0,), episodes=1, policy=watching)
        assert seen[0][0] == (0.0 if workers else 1.0)
        if workers:
            assert seen[0][1] == 1.0


def test_workers_step_at_the_same_time() -> None:
    def seconds(workers: int) -> float:
        with EvaluationPool(stubs.Slow, lanes_per_seed=4, workers=workers) as pool:
            pool.evaluate(stand_still, seeds=(0,), episodes=4)
            start = time.perf_counter()
            pool.evaluate(stand_still, seeds=(0,), episodes=4)
            return time.perf_counter() - start

    # Sleeping needs no core, so that this holds on a busy machine: four lanes in one process wait in turn.
    assert seconds(4) < 0.8 * seconds(1)


@pytest.fixture(params=[0, 2], ids=["in place", "workers"])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param


@pytest.mark.parametrize(
    ("factory", "kind", "words"),
    [
        (stubs.Raising, AstroError, ["Raising", "EOFError", "no more frames", "stepping"]),
        (stubs.RaisingWhenBuilt, AstroError, ["RaisingWhenBuilt", "no such model file", "being built"]),
        (stubs.Pixels, UnavailableError, ["Pixels", "pixels", "observation_space"]),
        (stubs.Parts, UnavailableError, ["Parts", "several parts", "FlattenObservation"]),
        (stubs.Buttons, UnavailableError, ["Buttons", "continuous", "Discrete(4)"]),
        (stubs.Wide, UnavailableError, ["Wide", "[-1, 1]", "RescaleAction"]),
        (stubs.NotANumber, AstroError, ["NotANumber", "not finite", "seed 3", "episode 0, step 0"]),
        (stubs.Endless, AstroError, ["Endless", "does not end", "TimeLimit"]),
    ],
)
def test_failures_name_the_environment_and_the_reason(
    factory: Any, kind: type[AstroError], words: list[str], workers: int
) -> None:
    with pytest.raises(kind) as caught:
        evaluate(factory, workers=workers)
    assert type(caught.value) is kind
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(("factory", "words"), [(stubs.Dying, "SIGKILL"), (stubs.Exiting, "exit status 3")])
def test_a_dead_worker_is_an_error_and_not_a_hang(factory: Any, words: str) -> None:
    start = time.perf_counter()
    with pytest.raises(AstroError, match=words) as caught:
        evaluate(factory, workers=2)
    assert factory.__name__ in str(caught.value)
    assert time.perf_counter() - start < 30


def test_a_pool_recovers_after_a_failure() -> None:
    def broken(observations: np.ndarray, keys: Any) -> np.ndarray:
        return stand_still(observations, keys) * np.nan

    with EvaluationPool(stubs.Drifting, lanes_per_seed=2, workers=2) as pool:
        with pytest.raises(TrainingError, match="seed 3") as caught:
            pool.evaluate(broken, seeds=(3, 7), episodes=5)
        assert "episode 0, step 0" in str(caught.value)
        assert_equal(pool.evaluate(act, seeds=(3, 7), episodes=5), evaluate(stubs.Drifting))


def test_actions_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(AstroError, match="wrong shape"):
        evaluate(stubs.Drifting, policy=lambda observations, keys: np.zeros((2, 2, 3), np.float32))


@pytest.mark.parametrize(
    "call",
    [
        lambda: EvaluationPool(stubs.Drifting, lanes_per_seed=0),
        lambda: EvaluationPool(stubs.Drifting, lanes_per_seed=1, workers=-1),
        lambda: EvaluationPool(lambda: stubs.Drifting(), lanes_per_seed=1, workers=1),
        lambda: evaluate(stubs.Drifting, seeds=()),
        lambda: evaluate(stubs.Drifting, seeds=(1, 1)),
        lambda: evaluate(stubs.Drifting, seeds=(-1,)),
        lambda: evaluate(stubs.Drifting, episodes=0),
    ],
)
def test_impossible_settings_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        call()


def test_a_script_s_own_function_is_refused_before_a_worker_fails_on_it() -> None:
    def make() -> None: ...

    make.__module__ = "__main__"
    with pytest.raises(ConfigError, match="script that is being run"):
        EvaluationPool(make, lanes_per_seed=1, workers=1)


def test_without_that_seeding_such_steps_do_depend_on_lanes() -> None:
    """The control of the seeding test: the stub would show a generator that is shared."""
    one = evaluate(stubs.DriftingGlobally, lanes=1, draws_globally_in_step=False)
    three = evaluate(stubs.DriftingGlobally, lanes=3, draws_globally_in_step=False)
    assert one.returns.tolist() != three.returns.tolist()
