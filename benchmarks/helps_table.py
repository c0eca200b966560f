"""The table of `benchmarks.helps` from its records: `python -m benchmarks.helps_table helps.jsonl`.

Mean ± std and IQM with its 95 % interval over seeds; the difference to the original arm seed by seed, over the seeds
that both have, with a bootstrap interval.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from astro_rl.evaluate.statistics import interval, mean_score, summarise

Scores = dict[int, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path)
    parser.add_argument("--original", default="original")
    given = parser.parse_args()
    arms: dict[tuple[str, str], dict[str, Scores]] = {}
    for line in given.records.read_text().splitlines():
        row = json.loads(line)
        arm = arms.setdefault((row["learner"], row["task"]), {}).setdefault(row["arm"], {})
        arm.update(zip(row["seeds"], row["scores"], strict=True))
    print("| learner | task | data | seeds | mean ± std | IQM | difference |\n" + "| --- " * 7 + "|")
    for (learner, task), found in sorted(arms.items()):
        for name, scores in found.items():
            summary = summarise(np.array(list(scores.values())))
            apart = "" if name == given.original else difference(scores, found[given.original])
            print(
                f"| {learner} | {task} | {name} | {summary.seeds} | {summary.mean:.1f} ± {summary.std:.1f} | "
                f"{summary.iqm} | {apart} |"
            )


def difference(scores: Scores, original: Scores) -> str:
    both = sorted(scores.keys() & original.keys())
    apart = np.array([[scores[seed] - original[seed]] for seed in both])
    found = interval(apart, mean_score)
    return f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


if __name__ == "__main__":
    main()
