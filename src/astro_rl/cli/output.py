"""What commands print: bars on a terminal's standard error, tables or JSON on standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from astro_rl.errors import AstroError


def bar(description: str, total: int, unit: str) -> AbstractContextManager[Callable[[int, int], None]]:
    from astro_rl.progress import progress_bar

    return progress_bar(description, total, unit)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left", show_header=any(header))
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console = Console()
    if console.is_terminal:
        console.print(table)
        return
    # Into a pipe: no width to fit, so that nothing is cut or wrapped, and no padding at the ends of lines.
    wide = Console(width=240)
    with wide.capture() as captured:
        wide.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def command_for_options(error: AstroError) -> str | None:
    """Messages name options as Python has them; how they are given here, where a fix names one for reading."""
    from astro_rl.data.registry import read_options

    named = [name for name in re.findall(r"([a-z_]+)=", error.fix or "") if name in read_options()]
    if not named:
        return None
    return f"  here:     astro-rl data convert FILE NAME.astro --read {named[0]}=…"


def print_scores(results: Mapping[str, Any], *, folder: Path, as_json: bool) -> None:
    """A run's scores, with how many seeds and episodes stand behind them."""
    evaluation = results.get("evaluation")
    if as_json:
        print_json({**results, "folder": str(folder)})
        return
    if evaluation is None:
        print(f"trained; nothing was evaluated (no task). The policy lies in {folder}")
        return
    from astro_rl.evaluate import EvaluationResult

    episodes = evaluation["episodes"]
    summary = EvaluationResult.from_json(episodes).summary()
    rows = [
        (seed, f"{score:.1f}", f"{sum(returns) / len(returns):.1f}", f"{sum(lengths) / len(lengths):.0f}")
        for seed, score, returns, lengths in zip(
            episodes["seeds"], evaluation["scores"], episodes["returns"], episodes["lengths"], strict=True
        )
    ]
    print_table(evaluation["task"], ("seed", "success %", "mean return", "mean length"), rows)
    print(f"success %: {summary}; {len(episodes['returns'][0])} episodes a seed")
    print(f"everything lies in {folder}")
