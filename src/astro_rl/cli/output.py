"""What commands print: bars on a terminal's standard error, tables or JSON on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any


def bar(description: str, total: int, unit: str) -> AbstractContextManager[Callable[[int, int], None]]:
    from astro_rl.progress import progress_bar

    return progress_bar(description, total, unit)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    # Not a terminal: no width to fit, so that nothing is cut or wrapped for whoever reads the pipe.
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)
    console.print(table)


def print_scores(results: Mapping[str, Any], *, folder: Path, as_json: bool) -> None:
    """A run's scores, with how many seeds and episodes stand behind them."""
    evaluation = results.get("evaluation")
    if as_json:
        print_json({**results, "folder": str(folder)})
        return
    if evaluation is None:
        print(f"trained; nothing was evaluated (no task). The policy lies in {folder}")
        return
    by_seed = [100 * rate for rate in evaluation["success_by_seed"]]
    rows = [
        (seed, f"{score:.1f}", f"{mean_return:.1f}", f"{mean_length:.0f}")
        for seed, score, mean_return, mean_length in zip(
            evaluation["seeds"], by_seed, evaluation["return_by_seed"], evaluation["length_by_seed"], strict=True
        )
    ]
    print_table(f"{evaluation['task']}", ("seed", "success %", "mean return", "mean length"), rows)
    summary = evaluation["summary"]
    low, high = summary["iqm_interval"]
    print(
        f"success: {summary['mean']:.1f} ± {summary['std']:.1f} %, IQM {summary['iqm']:.1f} "
        f"[{low:.1f}, {high:.1f}], {len(by_seed)} seed(s) × {evaluation['episodes']} episodes"
    )
    print(f"everything lies in {folder}")
