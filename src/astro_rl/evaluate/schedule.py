"""Which lane plays which episode, and what has come of each: the bookkeeping of an evaluation, and nothing
else.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, UInt

from astro_rl.evaluate.lanes import ENDED, IDLE, RESET, STEP, UNREPORTED, Outcome

NOTHING = -1
EPISODE_STREAM = 0x0E5A
"""Sets the seeds of evaluation episodes apart from others that are drawn from the same small numbers."""


def episode_seeds(seeds: tuple[int, ...], episodes: int) -> UInt[np.ndarray, "seeds episodes"]:
    """The environment's seed in each episode: a function of training seed and episode number, and of nothing
    else.
    """
    return np.array(
        [
            [
                np.random.SeedSequence([EPISODE_STREAM, seed, episode]).generate_state(1)[0]
                for episode in range(episodes)
            ]
            for seed in seeds
        ],
        dtype=np.uint32,
    )


class Schedule:
    """Each lane of a training seed takes that seed's next unplayed episode; with none left it idles."""

    def __init__(self, seeds: tuple[int, ...], episodes: int, lanes: int) -> None:
        n = len(seeds)
        self.total = n * episodes
        self.finished = 0
        self.returns = np.zeros((n, episodes), np.float64)
        self.lengths = np.zeros((n, episodes), np.int64)
        self.successes = np.zeros((n, episodes), np.bool_)
        self.reports_success = False
        self._environment_seeds = episode_seeds(seeds, episodes)
        self._next = np.zeros(n, np.int64)
        self.episode = np.full((n, lanes), NOTHING, np.int64)
        self.commands = np.full((n, lanes), IDLE, np.int8)
        self.seeds = np.zeros((n, lanes), np.uint32)
        for lane in range(lanes):  # lane by lane, so that all seeds begin at once
            for row in range(n):
                self._assign(row, lane)

    @property
    def acting(self) -> Bool[np.ndarray, "seeds lanes"]:
        """Lanes that step in the coming round, and so need an action."""
        return self.commands == STEP

    @property
    def steps(self) -> Int[np.ndarray, "seeds lanes"]:
        """Steps that each lane's episode has taken."""
        rows = np.arange(len(self._next))[:, None]
        return np.where(self.episode >= 0, self.lengths[rows, np.maximum(self.episode, 0)], 0)

    def place(self, row: int, lane: int) -> str:
        """Where a lane is, for an error's text."""
        return f"episode {self.episode[row, lane]}, step {self.steps[row, lane]}"

    def absorb(self, outcome: Outcome) -> None:
        """Book a round (arrays shaped (seeds, lanes)), and decide on the next."""
        rows, lanes = np.nonzero(self.commands == STEP)
        episodes = self.episode[rows, lanes]
        self.returns[rows, episodes] += outcome.rewards[rows, lanes]
        self.lengths[rows, episodes] += 1
        success = outcome.successes[rows, lanes]
        self.reports_success |= bool(np.any(success != UNREPORTED))
        self.successes[rows, episodes] |= success == 1
        self.commands[self.commands == RESET] = STEP
        for row, lane in np.argwhere((outcome.ended == ENDED) & (self.episode >= 0)):
            self.finished += 1
            self._assign(int(row), int(lane))

    def _assign(self, row: int, lane: int) -> None:
        episode = self._next[row]
        if episode == self.returns.shape[1]:
            self.episode[row, lane], self.commands[row, lane] = NOTHING, IDLE
            return
        self._next[row] += 1
        self.episode[row, lane], self.commands[row, lane] = episode, RESET
        self.seeds[row, lane] = self._environment_seeds[row, episode]
