"""Every table from raw records, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from astro_rl.bench import paper
from astro_rl.bench.averages import (
    Average,
    arms_of,
    mean_of_cells,
    mean_of_groups,
    paper_pairs,
    regime_averages,
)
from astro_rl.bench.records import Records, Scores
from astro_rl.bench.render import Table
from astro_rl.bench.summary import ORIGINAL, ArmSummary, overall, pairs_of, summaries
from astro_rl.bench.sweeps import (
    amount_tables,
    completion_table,
    geometry_table,
    horizon_table,
    selection_tables,
)
from astro_rl.evaluate.statistics import Estimate

REGIME_NAMES = {"low": "< 20", "moderate": "20 to 80", "high": "> 80"}


def tables_of(records: Records) -> list[Table]:
    """All tables that the records have something for."""
    whole = [one for one in records.scores if "=" not in one.arm]
    found: list[Table] = []
    if whole:
        found_summaries = summaries(whole)
        found += [
            grid(found_summaries),
            statistics(found_summaries),
            over_tasks(whole),
            averages(found_summaries),
            regimes(found_summaries),
        ]
    found += [*selection_tables(records), *amount_tables(records)]
    found += [geometry_table(records), completion_table(records), horizon_table(records)]
    if records.failures:
        rows = tuple(records.failures.items())
        found.append(Table("failed", "Cells that failed", ("cell", "error"), rows))
    return [table for table in found if table.rows]


def grid(found: Sequence[ArmSummary]) -> Table:
    """As the paper's tables 1 and 2 stand: a task a row, an arm a column."""
    arms = arms_of((one.task, one.learner, one.arm) for one in found)
    places = dict.fromkeys((one.learner, one.task, one.setup) for one in found)
    rows = []
    for learner, task, setup in places:
        own = {one.arm: one for one in found if (one.learner, one.task, one.setup) == (learner, task, setup)}
        rows.append((learner.upper(), task, *(_cell(own.get(arm)) for arm in arms)))
    setups = dict.fromkeys(f"{learner}: {setup}" for learner, _, setup in places)
    return Table(
        "scores",
        "Success in percent, mean ± std over seeds (the paper's mean)",
        ("learner", "task", *arms),
        tuple(rows),
        ("std is divided by the number of seeds, not by one less. " + "; ".join(setups) + ".",),
    )


def statistics(found: Sequence[ArmSummary]) -> Table:
    """One row an arm, with all that a mean hides."""
    rows = tuple(
        (
            one.learner.upper(),
            one.task,
            one.arm,
            str(one.summary.seeds),
            f"{one.summary.mean:.1f}",
            f"{one.summary.std:.1f}",
            str(one.summary.iqm),
            _share(one.improvement),
            _signed(one.difference),
            None if one.summary.never_learned is None else str(one.summary.never_learned),
            _plain(one.paper),
        )
        for one in found
    )
    return Table(
        "statistics",
        "Each arm by itself and against the original data",
        (
            "learner",
            "task",
            "data",
            "seeds",
            "mean",
            "std",
            "IQM",
            "P(better)",
            "difference",
            "never learned",
            "paper",
        ),
        rows,
        (
            "Brackets: 95 % bootstrap intervals over seeds. Difference: seed by seed, over the seeds that both have.",
            "P(better): that a seed of this arm beats one of the original's, ties counting half.",
        ),
    )


def over_tasks(scores: Sequence[Scores]) -> Table:
    rows = tuple(
        (
            one.learner.upper(),
            one.arm,
            str(len(one.tasks)),
            str(one.seeds),
            f"{one.mean:.1f}",
            str(one.iqm),
            _share(one.improvement),
        )
        for one in overall(scores)
    )
    return Table(
        "overall",
        "All tasks at once",
        ("learner", "data", "tasks", "seeds", "mean", "IQM", "P(better)"),
        rows,
        ("Stratified by task: seeds are drawn again within a task, never across tasks.",),
    )


def averages(found: Sequence[ArmSummary]) -> Table:
    """“+32.7 %” and “+26.2 %”: both, over what was run, beside the paper's over what it ran."""
    own, theirs = pairs_of(found), paper_pairs()
    arms = arms_of(own)
    learners = sorted({learner for _, learner, _ in own})
    rows = []
    for arm in arms:
        pairs = [("both", mean_of_cells(own, arm), mean_of_cells(theirs, arm))]
        pairs += [
            (learner.upper(), mean_of_groups(own, arm, learner), mean_of_groups(theirs, arm, learner))
            for learner in learners
        ]
        rows += [(learner, arm, ours, paper_s) for learner, ours, paper_s in pairs if ours is not None]
    return Table(
        "averages",
        "The paper's two averages",
        ("average", "learner", "data", "cells", "ours", "gain", "the paper's", "gain"),
        tuple(
            (
                ours.name,
                learner,
                arm,
                str(ours.cells),
                _told(ours),
                _gain(ours),
                _told(theirs),
                _gain(theirs),
            )
            for learner, arm, ours, theirs in rows
        ),
        (
            "Ours are over the tasks that were run, the paper's over all of its own.",
            "Groups are mazes, manipulation and D4RL; the paper gives D4RL as one average.",
            "An arm with fewer seeds than the original is held against the same seeds of it.",
        ),
    )


def regimes(found: Sequence[ArmSummary]) -> Table:
    """Tasks by what the original data scores: all that fall into a regime, where the paper left some out."""
    own, theirs = pairs_of(found), paper_pairs()
    printed = {(one.learner, one.name): one for one in paper.REGIMES}
    rows = []
    for learner in sorted({learner for _, learner, _ in own}):
        originals = {
            one.task: one.summary.mean for one in found if (one.learner, one.arm) == (learner, ORIGINAL)
        }
        for arm in arms_of(own):
            all_of_paper = {one.name: one for one in regime_averages(theirs, arm, learner)}
            for one in regime_averages(own, arm, learner, originals):
                said = printed.get((learner, one.name))  # pyright: ignore[reportArgumentType]
                rows.append(
                    (
                        REGIME_NAMES[one.name],
                        learner.upper(),
                        arm,
                        str(one.cells),
                        f"{one.before:.1f} → {one.after:.1f}",
                        f"{one.gain:+.1f}",
                        _gain(all_of_paper.get(one.name)),
                        None if said is None or arm not in said.after else _printed_gain(said, arm),
                    )
                )
    return Table(
        "regimes",
        "By what the original data scores",
        ("original", "learner", "data", "tasks", "ours", "gain", "paper, all tasks", "paper, as printed"),
        tuple(rows),
        (
            "“Paper, all tasks” is computed from its table 1; “as printed” is its text, which leaves out four of them.",
        ),
    )


def _printed_gain(said: paper.Regime, arm: str) -> str:
    return f"{said.after[arm] - (said.before or 0.0):+.2f}"


def _told(one: Average | None) -> str | None:
    # A hair more, so that 39.275 reads 39.28 as in the paper and not 39.27 as floats have it.
    return None if one is None else f"{one.before + 1e-9:.2f} → {one.after + 1e-9:.2f}"


def _gain(one: Average | None) -> str | None:
    if one is None:
        return None
    return f"{one.gain:+.2f}" if one.percent is None else f"{one.gain:+.2f} ({one.percent:+.1f} %)"


def _cell(one: ArmSummary | None) -> str | None:
    if one is None:
        return None
    told = f"{one.summary.mean:.1f} ± {one.summary.std:.1f}"
    return told if one.paper is None else f"{told} ({one.paper:.1f})"


def _formatted(one: Estimate | None, text: Callable[[float], str]) -> str | None:
    return None if one is None else f"{text(one.value)} [{text(one.low)}, {text(one.high)}]"


def _share(one: Estimate | None) -> str | None:
    return _formatted(one, lambda value: f"{value:.2f}")


def _signed(one: Estimate | None) -> str | None:
    return _formatted(one, lambda value: f"{value:+.1f}")


def _plain(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"
