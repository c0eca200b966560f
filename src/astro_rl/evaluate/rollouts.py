"""Seeded evaluation: episodes of several training seeds, played at once in environments that are built once.

Every (seed, episode) has an environment seed and a stream of action keys of its own, so that its result does
not depend on lanes, on workers or on what was evaluated before. One reservation: a compiled policy may round
a row differently in a batch of another size, so that changing `lanes_per_seed` can change results where the
last bit of an action matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt

from astro_rl.errors import AstroError, ConfigError, TrainingError
from astro_rl.evaluate.lanes import EnvironmentFactory, Outcome, Spaces, factory_name
from astro_rl.evaluate.result import EvaluationResult
from astro_rl.evaluate.schedule import Schedule
from astro_rl.evaluate.workers import Group, LocalGroup, WorkerGroup, check_factory
from astro_rl.run.fingerprint import usable_cores

ACTION_STREAM = 0x0AC7
"""The root of all action keys: an evaluation shares no randomness with the training of the same seed."""

Act = Callable[[np.ndarray, Any], Any]
"""`act(observations (seeds, lanes, obs) float32, keys (seeds, lanes)) -> actions (seeds, lanes, act)`.

Shapes are the same in every call of an evaluation, so that it compiles once. Rows of idle lanes hold old
observations and their actions are thrown away.
"""


class EvaluationPool:
    """Environments kept from one evaluation to the next. A context manager; `close` ends the workers.

    `workers=None` takes a process for each core, `workers=0` none: environments then run here. For a good
    rate have 8 to 32 lanes in all (seeds times `lanes_per_seed`): fewer leave the policy's call overhead to
    be paid by few steps.
    """

    def __init__(
        self,
        env_factory: EnvironmentFactory,
        *,
        lanes_per_seed: int,
        workers: int | None = None,
        draws_globally_in_step: bool = False,
        step_limit: int = 20_000,
    ) -> None:
        if lanes_per_seed < 1:
            raise ConfigError(
                "No lanes to play in.", field="lanes_per_seed", found=lanes_per_seed, expected="1 or more"
            )
        if workers is not None and workers < 0:
            raise ConfigError(
                "A negative number of workers.", field="workers", found=workers, expected="0 or more"
            )
        self.lanes_per_seed = lanes_per_seed
        self.workers = usable_cores() if workers is None else workers
        self.name = factory_name(env_factory)
        self._factory, self._draws_globally_in_step = env_factory, draws_globally_in_step
        self._step_limit = step_limit
        self._groups: list[Group] = []
        self._spaces: Spaces | None = None
        if self.workers:
            check_factory(env_factory)

    def __enter__(self) -> EvaluationPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the environments. Evaluating again would build new ones."""
        groups, self._groups = self._groups, []
        for group in groups:
            group.close()

    @property
    def spaces(self) -> Spaces:
        """Name and sizes of the environment; starts the first worker if none runs yet."""
        if self._spaces is None:
            self._start(1)
        assert self._spaces is not None
        return self._spaces

    def evaluate(
        self,
        act: Act,
        *,
        seeds: Sequence[int],
        episodes: int = 50,
        progress: Callable[[int, int], None] | None = None,
    ) -> EvaluationResult:
        """Play `episodes` episodes for each training seed, row i of a batch being `seeds[i]`.

        On any failure the environments are closed: the next evaluation starts with fresh ones.
        """
        names = tuple(int(seed) for seed in seeds)
        if not names or len(set(names)) < len(names) or not all(0 <= seed < 2**32 for seed in names):
            raise ConfigError(
                "Evaluation needs distinct seeds.",
                field="seeds",
                found=names,
                expected="numbers from 0 to 2**32 - 1",
            )
        if episodes < 1:
            raise ConfigError("Nothing to evaluate.", field="episodes", found=episodes, expected="1 or more")
        try:
            return self._play(act, names, episodes, progress or (lambda done, total: None))
        except BaseException:
            self.close()
            raise

    def _play(
        self, act: Act, seeds: tuple[int, ...], episodes: int, progress: Callable[[int, int], None]
    ) -> EvaluationResult:
        shape = (len(seeds), self.lanes_per_seed)
        self._start(len(seeds) * min(self.lanes_per_seed, episodes))
        spaces = self.spaces
        schedule = Schedule(seeds, episodes, self.lanes_per_seed)
        observations = np.zeros((*shape, spaces.observation_dim), np.float32)
        actions = np.zeros((*shape, spaces.action_dim), np.float32)
        seed_column = np.array(seeds, np.uint32)[:, None]
        progress(0, schedule.total)
        while schedule.finished < schedule.total:
            acting = schedule.acting
            if acting.any():
                keys = action_keys(
                    seed_column, np.maximum(schedule.episode, 0).astype(np.uint32), schedule.steps
                )
                actions = self._checked_actions(act(observations, keys), actions.shape, schedule, seeds)
            outcome = self._round(schedule.commands, schedule.seeds, actions)
            self._check_outcome(outcome, schedule, seeds)
            observations = np.where((schedule.commands != 0)[..., None], outcome.observations, observations)
            before = schedule.finished
            schedule.absorb(outcome)
            if schedule.finished > before:
                progress(schedule.finished, schedule.total)
        return EvaluationResult(
            environment=self.name,
            seeds=seeds,
            returns=schedule.returns,
            lengths=schedule.lengths,
            successes=schedule.successes if schedule.reports_success else None,
        )

    def _start(self, lanes: int) -> None:
        """Have as many groups as there is work for. Those that build at once are asked at once."""
        wanted = max(1, min(self.workers, lanes))
        kind = WorkerGroup if self.workers else LocalGroup
        fresh: list[Group] = []
        try:
            while len(self._groups) + len(fresh) < wanted:
                fresh.append(kind(self._factory, draws_globally_in_step=self._draws_globally_in_step))
            for group in fresh:
                self._spaces = group.spaces()
        except BaseException:
            for group in fresh:
                group.close()
            raise
        self._groups.extend(fresh)

    def _round(
        self,
        commands: Int[np.ndarray, "seeds lanes"],
        seeds: UInt[np.ndarray, "seeds lanes"],
        actions: Float[np.ndarray, "seeds lanes act"],
    ) -> Outcome:
        """One step of all lanes. Lanes are dealt to groups in turn, so that each seed's last lanes are spread
        too.
        """
        n_seeds, lanes = commands.shape
        flat = commands.reshape(-1), seeds.reshape(-1), actions.reshape(n_seeds * lanes, -1)
        count = len(self._groups)
        for number, group in enumerate(self._groups):
            group.send(*(column[number::count] for column in flat))
        answers = [group.receive() for group in self._groups]
        merged = []
        for parts in zip(*answers, strict=True):
            column = np.empty((n_seeds * lanes, *parts[0].shape[1:]), parts[0].dtype)
            for number, part in enumerate(parts):
                column[number::count] = part
            merged.append(column.reshape(n_seeds, lanes, *column.shape[1:]))
        return Outcome(*merged)

    def _checked_actions(
        self, actions: Any, shape: tuple[int, ...], schedule: Schedule, seeds: tuple[int, ...]
    ) -> Float[np.ndarray, "seeds lanes act"]:
        values = np.asarray(actions, dtype=np.float32)
        if values.shape != shape:
            raise AstroError(
                f"The policy's actions have the wrong shape for {self.name}.",
                field="act",
                found=values.shape,
                expected=f"{shape}: seeds, lanes, action",
            )
        bad = ~np.isfinite(values).all(axis=-1) & schedule.acting
        if bad.any():
            row, lane = np.argwhere(bad)[0].tolist()
            raise TrainingError(
                f"The policy of seed {seeds[row]} gave an action that is not finite in {self.name}.",
                field=schedule.place(row, lane),
                found=values[row, lane].tolist(),
                fix="its training has diverged: look at its losses, then lower the learning rate or α",
            )
        return values

    def _check_outcome(self, outcome: Outcome, schedule: Schedule, seeds: tuple[int, ...]) -> None:
        used = schedule.commands != 0
        bad = used & ~(np.isfinite(outcome.observations).all(axis=-1) & np.isfinite(outcome.rewards))
        if bad.any():
            row, lane = np.argwhere(bad)[0].tolist()
            raise AstroError(
                f"The environment {self.name} gave an observation or a reward that is not finite.",
                field=f"seed {seeds[row]}, {schedule.place(row, lane)}",
                found=f"reward {outcome.rewards[row, lane]} and {outcome.observations[row, lane].tolist()}",
            )
        if int(schedule.steps.max()) >= self._step_limit:
            raise AstroError(
                f"An episode of {self.name} does not end.",
                field="step_limit",
                found=f"{self._step_limit} steps",
                fix="give the environment a time limit (gymnasium.wrappers.TimeLimit) or raise step_limit",
            )


@jax.jit
def _fold(
    seeds: UInt[Array, "seeds 1"], episodes: UInt[Array, "seeds lanes"], steps: UInt[Array, "seeds lanes"]
) -> Key[Array, "seeds lanes"]:
    def one(seed: Array, episode: Array, step: Array) -> Array:
        key = jax.random.key(ACTION_STREAM)
        for number in (seed, episode, step):
            key = jax.random.fold_in(key, number)
        return key

    n_seeds, lanes = episodes.shape
    columns = (jax.numpy.broadcast_to(seeds, (n_seeds, lanes)), episodes, steps)
    return jax.vmap(jax.vmap(one))(*columns)


def action_keys(
    seeds: UInt[np.ndarray, "seeds 1"],
    episodes: UInt[np.ndarray, "seeds lanes"],
    steps: Int[np.ndarray, "seeds lanes"],
) -> Key[Array, "seeds lanes"]:
    """The key of each lane's next action: a function of training seed, episode and step alone."""
    return _fold(seeds, episodes, steps.astype(np.uint32))
