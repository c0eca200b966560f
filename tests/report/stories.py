"""Small invented stories and datasets for the page."""

from dataclasses import replace

import numpy as np

from astro_rl.augment.generate import Account as Proposed
from astro_rl.data import from_arrays
from astro_rl.data.schema import Dataset
from astro_rl.report.story import (
    Account,
    Chain,
    DistanceMap,
    Facts,
    Fragments,
    Link,
    PlaceMap,
    RunStory,
    Scores,
    Stage,
    Stitched,
    Truth,
    ValueMaps,
    Walls,
)

EVIL = 'a<b>"c"&</script><script>bad()</script>'
"""A text that would break a page which does not escape it."""


def facts(name: str = "recorded", **changes: object) -> Facts:
    base = Facts(name, 40, 8_000, 200, 200.0, 200, 4, 2)
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def line(start: tuple[float, float], stop: tuple[float, float], states: int = 20) -> np.ndarray:
    return np.linspace(start, stop, states)


def bare_story() -> RunStory:
    """What data without a plane and without training has to tell."""
    return RunStory(task="robot-arm", original=facts())


def full_story(seeds: int = 2) -> RunStory:
    generator = np.random.default_rng(0)
    places = generator.uniform(0.1, 11.9, (600, 2))
    steps = np.linalg.norm(places, axis=1)
    corners = np.array(
        [[x, y] for x in range(-4, 16, 4) for y in range(-4, 16, 4) if x in (-4, 12) or y in (-4, 12)]
    )
    real = np.repeat([True, False, True], [8, 6, 6])
    tracks = [
        Stitched(line((1, 1), (10, 2 + number)), ~real, np.where(real, np.repeat([3, 5, 7], [8, 6, 6]), -1))
        for number in range(4)
    ]
    pieces = (line((1, 1), (3, 1)), line((5, 2), (7, 4)), line((8, 6), (9, 9)))
    return RunStory(
        task=f"maze {EVIL}",
        original=facts(),
        augmented=facts(
            "augmented", trajectories=30, longest=500, median=420.0, generated_share=0.4, sources=3.0
        ),
        goal=(9.0, 9.0),
        goal_radius=0.5,
        walls=Walls(corners.astype(float), 4.0),
        fragments=Fragments((line((1, 1), (5, 5)), line((5, 5), (9, 9))), total=40),
        distance=DistanceMap(np.array([0.5, 0.5]), PlaceMap(places, steps, 0.5)),
        chains=(Chain(pieces, 1.5), Chain(pieces[::-1])),
        stitched=tuple(tracks),
        values=(ValueMaps("iql", places, -steps, -steps / 2, 0.5, seeds),),
        scores=(
            Scores(
                "iql",
                {"original": 30 + 2.0 * np.arange(seeds), "ASTRO": 60 + 2.0 * np.arange(seeds)},
                episodes=50,
                updates=1_000,
            ),
        ),
        accounts=(Account("Chains", 100, 60, {"no target at the right distance": 30, EVIL: 10}),),
        truth=(Truth("x, y", 0.04, 0.2, 0.0, 0.01),),
        stages=(Stage("fit", 65.0), Stage("augment", 4.2)),
        machine="2 cores",
        lineage={"source digest": "abc"},
        settings={"preset": "tiny"},
        commands=("astro-rl run maze --out RUN",),
        links=(Link("augmented data", "augmented.npz"),),
        limits=("Invented figures.",),
    )


def recorded(trajectories: int = 6, states: int = 30) -> Dataset:
    """Trajectory k moves along x at height y = k; two more numbers tell step and trajectory."""
    x, y = np.meshgrid(np.arange(states, dtype=np.float32), np.arange(trajectories, dtype=np.float32))
    observations = np.stack([x.ravel(), y.ravel(), 100 + x.ravel(), y.ravel()], axis=1)
    offsets = np.arange(trajectories + 1) * states
    return from_arrays(observations, np.zeros((len(observations), 2), np.float32), offsets=offsets)


def augmented_from(dataset: Dataset) -> Dataset:
    """One trajectory: ten states of trajectory 0, four generated ones, then ten of trajectory 2 from its step 15 on."""
    first, second = np.arange(10), dataset.offsets[2] + np.arange(15, 25)
    invented = np.full((4, 4), 0.25, np.float32)
    observations = np.concatenate([dataset.observations[first], invented, dataset.observations[second]])
    trajectory = np.repeat([0, -1, 2], [10, 4, 10]).astype(np.int32)
    step = np.concatenate([np.arange(10), np.full(4, -1), np.arange(15, 25)]).astype(np.int32)
    made = from_arrays(
        observations,
        np.zeros((24, 2), np.float32),
        offsets=np.array([0, 24]),
        extras={
            "source_trajectory": trajectory,
            "source_step": step,
            "filter_statistic": np.full(24, 1.25, np.float32),
        },
    )
    # As `run` writes them: `augment.generate.Account.as_json` at the top of the lineage.
    told = {
        "chains": Proposed(8, 5, 1, {"not finite": 3}).as_json(),
        "completions": Proposed().as_json(),
    }
    return replace(made, info={"lineage": {"seed": 4, "source_digest": "abc", **told}})
