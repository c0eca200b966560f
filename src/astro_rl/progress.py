"""A progress bar for people at a terminal, and nothing for anybody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""(done, total). What every long function here takes."""


@contextmanager
def progress_bar(description: str, total: int, unit: str) -> Iterator[Progress]:
    """A bar on standard error with rate and time left; silent where standard error is no terminal."""
    import sys

    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {unit}/s")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(description, total=total)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report
