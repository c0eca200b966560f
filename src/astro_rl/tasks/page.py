"""The tables of docs/tasks.md, written from the task table so that page and code cannot drift apart."""

from __future__ import annotations

from pathlib import Path

from astro_rl.tasks.lookup import all_tasks, paper_tasks
from astro_rl.tasks.published import SUITE_AVERAGES
from astro_rl.tasks.states import StateMap
from astro_rl.tasks.task import PublishedScore, Task

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
REWRITE = "python -c \"from astro_rl.tasks.page import rewrite; rewrite('docs/tasks.md')\""


def tables() -> str:
    """All generated tables, as Markdown."""
    first = [task for task in all_tasks() if task.is_default_goal]
    parts = [
        "### Environments",
        _table(
            ("task", "default goal", "obs", "act", "steps", "x-y", "state from observation", "rewarded for"),
            [_environment(task) for task in first],
        ),
        "### Settings",
        "Values marked ° are not in the paper; they were chosen by us.",
        _table(
            ("task", "L", "l = M", "γ", "IQL α", "FQL α", "FQL authors' α", "their other settings"),
            [_settings(task) for task in first],
        ),
        "### Published scores (the paper's table 1, percent)",
        _table(
            ("task", *(f"{score.learner.upper()} {score.method}" for score in SUITE_AVERAGES["total"])),
            [
                *((_short(task), *_cells(task.published)) for task in paper_tasks() if task.published),
                *((f"average: {group}", *_cells(scores)) for group, scores in SUITE_AVERAGES.items()),
            ],
        ),
        "### Published ablation (table 2, FQL, percent)",
        _ablation(),
    ]
    return "\n\n".join(parts)


def rewrite(page: str | Path) -> None:
    """Puts the present tables between the page's two marks."""
    page = Path(page)
    text = page.read_text(encoding="utf-8")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{head}{BEGIN}\n\n{tables()}\n\n{END}{tail}", encoding="utf-8")


def generated_part(page: str | Path) -> str:
    """What stands between the marks."""
    return Path(page).read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def _short(task: Task) -> str:
    return task.dataset.removesuffix("-v0")


def _environment(task: Task) -> tuple[str, ...]:
    planar = "–" if task.xy_indices is None else ", ".join(map(str, task.xy_indices))
    return (
        _short(task),
        str(task.goal) if task.suite == "ogbench" else "drawn",
        str(task.observation_dim),
        str(task.action_dim),
        str(task.max_episode_steps),
        planar,
        "yes" if isinstance(task.state, StateMap) else "no",
        {"pre": "state left", "post": "state entered"}[task.success_timing],
    )


def _settings(task: Task) -> tuple[str, ...]:
    def mark(field: str) -> str:
        return f"{getattr(task, field):g}" + ("°" if field in task.chosen_by_us else "")

    ours = "°" if "fql_settings" in task.chosen_by_us else ""
    others = [f"{name} = {value}{ours}" for name, value in task.fql_settings.items()]
    if task.fql_authors_steps not in (None, 1_000_000):
        others.append(f"{task.fql_authors_steps:,} steps")
    return (
        _short(task),
        mark("horizon"),
        mark("segment"),
        mark("discount"),
        mark("iql_alpha"),
        mark("fql_alpha"),
        "–" if task.fql_authors_alpha is None else f"{task.fql_authors_alpha:g}",
        ", ".join(others) or "–",
    )


def _cells(scores: tuple[PublishedScore, ...]) -> list[str]:
    return [f"{score.score:g}" for score in scores]


def _ablation() -> str:
    ablated = [task for task in paper_tasks() if task.ablation]
    variants = [score.variant.replace("_", " ") for score in ablated[0].ablation]
    rows = [(_short(task), *(f"{score.score:g}" for score in task.ablation)) for task in ablated]
    return _table(("task", *variants), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
