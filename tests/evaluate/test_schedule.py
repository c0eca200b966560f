import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.evaluate.lanes import IDLE, RESET, STEP, Outcome
from astro_rl.evaluate.schedule import Schedule, episode_seeds

FEW = settings(deadline=None, max_examples=40)


@FEW
@given(
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3, unique=True),
    episodes=st.integers(1, 7),
    lanes=st.integers(1, 9),
    data=st.data(),
)
def test_every_episode_is_played_once_whatever_their_lengths(
    seeds: list[int], episodes: int, lanes: int, data: st.DataObject
) -> None:
    n = len(seeds)
    lengths = np.array(
        data.draw(st.lists(st.integers(1, 6), min_size=n * episodes, max_size=n * episodes))
    ).reshape(n, episodes)
    of_seed = {int(s): i for i, s in enumerate(episode_seeds(tuple(seeds), episodes).reshape(-1))}
    schedule = Schedule(tuple(seeds), episodes, lanes)
    playing = np.full((n, lanes), -1)
    age = np.zeros((n, lanes), int)
    begun = []
    while schedule.finished < schedule.total:
        commands = schedule.commands.copy()
        for place in zip(*np.nonzero(commands == RESET), strict=True):
            playing[place], age[place] = of_seed[int(schedule.seeds[place])], 0
            begun.append(playing[place])
        stepping = commands == STEP
        age[stepping] += 1
        # A simulator of one number: each episode pays its own number at every step.
        ended = np.where(stepping & (age == lengths.reshape(-1)[playing]), 1, 0)
        reward = np.where(commands == IDLE, 1e9, np.where(stepping, playing, 0.0))
        schedule.absorb(
            Outcome(np.zeros((n, lanes, 1), np.float32), reward, ended, np.zeros((n, lanes), int))
        )
    assert sorted(begun) == list(range(n * episodes))
    np.testing.assert_array_equal(schedule.lengths, lengths)
    np.testing.assert_array_equal(schedule.returns.reshape(-1), np.arange(n * episodes) * lengths.reshape(-1))
    assert (schedule.commands == IDLE).all()


def test_episode_seeds_do_not_collide_between_neighbouring_seeds() -> None:
    seeds = episode_seeds((0, 1, 2, 10), 50)
    assert len(np.unique(seeds)) == seeds.size
    np.testing.assert_array_equal(episode_seeds((2,), 10)[0], seeds[2, :10])
