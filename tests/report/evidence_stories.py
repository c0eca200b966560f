"""The further parts of a story, invented: pairs, measures, curves, a film, a table."""

from dataclasses import replace

import numpy as np

from astro_rl.report.evidence import Attempt, ChosenPair, Curves, Film, Measure, Measures, Pair, Reading
from astro_rl.report.measures import metrics_of
from astro_rl.report.story import RunStory
from astro_rl.report.table_story import Cell, Row, TableStory, TextTable
from tests.report.stories import EVIL, full_story, line

KNOWN = np.repeat([True, False, True], [4, 6, 4])


def pair(shift: float = 0.0) -> Pair:
    """Along x at y = 2. ASTRO's states lie 0.5 above throughout; MB's drift up to 3, SI's are exact and its actions
    lead 4 away."""
    given = line((1, 2 + shift), (7.5, 2 + shift), 14)
    up = np.array([0.0, 1.0])
    return Pair(
        given=np.where(KNOWN[:, None], given, 0.0),
        known=KNOWN,
        attempts={
            "ASTRO": Attempt(given + 0.5 * up, given + 0.75 * up),
            "MB": Attempt(given + np.linspace(0, 3, 14)[:, None] * up, given + 2 * up),
            "SI": Attempt(given, given + 4 * up),
        },
        lead=line((0.2, 2 + shift), (1, 2 + shift), 5),
        recordings=(12, 40),
    )


def geometry() -> Measures:
    """Table 3's figures beside invented ones."""
    return Measures(
        (
            Measure(
                "Direction change |Δθ|",
                {
                    "pregenerated, Euclidean": Reading(1.1, 0.9, paper=3.147, paper_spread=2.621),
                    "recorded": Reading(0.31, 0.3, paper=2.089, paper_spread=1.455),
                    "temporal distance": Reading(0.42, 0.4, paper=1.253, paper_spread=0.451),
                },
                unit="rad",
                better="lower",
                note="mean angle between consecutive steps",
            ),
            Measure(
                "Targets behind a wall",
                {
                    "pregenerated, Euclidean": Reading(31.5, low=29.0, high=34.0),
                    "temporal distance": Reading(2.25, low=1.5, high=3.0),
                },
                unit="%",
            ),
        ),
        reference="recorded",
        about="2,000 pairs of each rule.",
    )


def chosen() -> dict[str, tuple[ChosenPair, ...]]:
    def one(y: float, **marks: bool) -> ChosenPair:
        return ChosenPair(line((1, y), (3, y), 5), line((5, y + 1), (7, y + 1), 5), **marks)

    return {
        "temporal distance": (one(1), one(3), one(5, never_joined=True)),
        "random": (one(2, behind_wall=True, never_joined=True), one(4, out_of_reach=True), one(7)),
    }


def metrics() -> Measures:
    """Read as the makers of measurements write them."""
    figures = [
        ("data/trajectories", "trajectories", 30.0, 40.0, "count", ""),
        ("simulator/replay", "one-step replay error, median", 0.35, 0.012, "", "in lengths of a step"),
        ("walls/crossed", "transitions through a wall", 0.004, 0.0, "%", ""),
        ("novelty/joined", "joined cells that no recording joins", 0.31, None, "%", ""),
        ("values/q", "Q(s, π(s)), mean", -31.5, -44.25, "", ""),
    ]
    names = ("key", "text", "augmented", "real", "unit", "note")
    return metrics_of(
        {
            "format": "astro-rl measurement",
            "figures": [dict(zip(names, figure, strict=True)) for figure in figures],
            "left_out": [{"what": "dynamics violation rate", "why": EVIL}],
            "data": {"held_out": "8 trajectories held out of training"},
        }
    )


def curves(seeds: int = 4) -> tuple[Curves, ...]:
    generator, steps = np.random.default_rng(1), np.arange(1, 41) * 250

    def arms(level: float) -> dict[str, np.ndarray]:
        return {
            arm: level * (1 - np.exp(-steps / 2500))[None] * factor
            + 0.05 * level * generator.normal(size=(seeds, 40))
            for arm, factor in (("original", 1.0), ("ASTRO", 1.3))
        }

    return (
        Curves("iql", "value/probe_mean", steps, arms(-40.0)),
        Curves("iql", f"critic/loss {EVIL}", steps, arms(2.0)),
        Curves("fit: planner", "loss", steps[:20], {"fit": np.exp(-steps[:20] / 1000)[None]}),
    )


def film(frames: int = 9) -> Film:
    """A square that moves to the right over a checkered floor."""
    rows, columns = np.mgrid[:90, :120]
    floor = np.where((rows // 15 + columns // 15) % 2, 60, 90)[..., None] * np.array([1, 1, 1.4])
    pictures = np.repeat(floor[None], frames, axis=0).astype(np.uint8)
    for number in range(frames):
        pictures[number, 35:55, 10 + 9 * number : 30 + 9 * number] = (230, 180, 60)
    return Film(
        pictures, np.arange(frames) * 5, np.arange(frames) % 4 > 1, "Trajectory 3, every fifth state."
    )


def evidence_story(seeds: int = 4) -> RunStory:
    """A full story with every further part."""
    return replace(
        full_story(seeds),
        pairs=(pair(), pair(2.0), pair(5.0)),
        geometry=geometry(),
        chosen=chosen(),
        metrics=metrics(),
        curves=curves(seeds),
        film=film(),
    )


def results_table() -> TableStory:
    """Three tasks, two learners, one failed cell."""

    def cell(mean: float, paper: float | None = None) -> Cell:
        return Cell(mean, 2.5, mean - 3, mean + 3, mean + 0.5, 8, 1, paper)

    columns = ("Original", "SynthER", "DiffStitch", "ASTRO")
    rows = tuple(
        Row(
            task,
            {
                "Original": cell(level, level - 5),
                "SynthER": cell(level + 1, level - 3),
                "DiffStitch": cell(level - 2, level),
                "ASTRO": cell(level + 9.25, level + 10),
            },
            group=learner,
        )
        for learner, shift in (("IQL", 0.0), ("FQL", 4.0))
        for task, level in (
            ("pointmaze-medium-stitch-task1", 50 + shift),
            ("antmaze-medium-stitch-task1", 20 - shift),
            ("antmaze-large-stitch-task1", 10.5),
        )
    )
    failed = replace(rows[5], cells={**rows[5].cells, "DiffStitch": Cell(note=f"failed: {EVIL}")})
    average = Row("mean", {name: Cell(26.0 + number) for number, name in enumerate(columns)})
    regimes = TextTable(
        "Regimes: gain by the original's score",
        ("original", "tasks", "gain"),
        (("below 20", "4", "+9.25"), ("above 80", None, None)),
    )
    return TableStory(
        f"Table 1 {EVIL}",
        columns,
        (*rows[:5], failed),
        baseline="Original",
        averages=(average,),
        caption="Success in percent, at a size for tests.",
        notes=("Invented figures.", EVIL),
        more=(regimes,),
        settings={"preset": "tiny"},
        commands=("astro-rl bench table1 --preset tiny",),
        machine="2 cores",
    )
