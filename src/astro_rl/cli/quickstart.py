"""`astro-rl quickstart`: the whole path on a small task, nothing downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from astro_rl.cli.output import bar, print_scores

DATASET, TASK = "pointmaze-medium-stitch-v0", "pointmaze-medium-stitch-task3"
EPISODES, STEPS, SEEDS, EVALUATION_EPISODES = 1_000, 100_000, 2, 20
# Small and quick: a plane has two coordinates, and the whole of it has to fit into minutes on two cores.
SMALL = {"hidden": (64, 64), "batch_size": 256, "learning_rate": 1e-3}


@dataclass(frozen=True)
class Quickstart:
    """Make a small pointmaze dataset, train IQL on it, evaluate it. Started again, it continues."""

    out: Path = Path("quickstart")
    """Where everything goes."""
    json: bool = False
    """Print the results as JSON."""

    def run(self) -> int:
        from astro_rl.agents.presets import learner_for
        from astro_rl.collect import make_dataset
        from astro_rl.data import load
        from astro_rl.report.value_map import value_map_of_policy
        from astro_rl.run.devices import use_all_cores
        from astro_rl.run.policy import load_policy
        from astro_rl.run.train import Execution, TrainSettings, train
        from astro_rl.tasks import get_task, relabel

        use_all_cores()
        with bar("making data", EPISODES + EPISODES // 10, "episodes") as report:
            data, _ = make_dataset(DATASET, episodes=EPISODES, out=self.out / "data", seed=0, progress=report)
        task = get_task(TASK)
        dataset = relabel(load(data), task)
        result = train(
            dataset,
            learner_for("iql", preset="tiny", task=task, **SMALL),
            TrainSettings(steps=STEPS, seeds=tuple(range(SEEDS)), episodes=EVALUATION_EPISODES),
            out=self.out / "iql",
            task=task,
            execution=Execution(progress=bar),
        )
        picture = self.out / "value.png"
        if task.xy_indices is not None and not picture.exists():
            title = f"{TASK}: {EPISODES:,} episodes, IQL after {STEPS:,} updates, seed 0"
            value_map_of_policy(picture, load_policy(result.folder), dataset, task.xy_indices, title)
        print_scores(result.results, folder=result.folder, as_json=self.json)
        if not self.json:
            print(f"picture: {picture}")
        return 0
