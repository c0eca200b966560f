"""`astro-rl quickstart`: the whole method on a small task, from made data to a page, nothing downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from astro_rl.cli.output import bar

TASK = "pointmaze-medium-stitch-task1"
"""One of the two goals of this maze on which the baseline neither always nor never arrives (docs/results/astro.md)."""
EPISODES, TRANSITIONS = 1_000, 100_000
STEPS, SEEDS, EVALUATION_EPISODES = 100_000, (0, 1, 2), 20

# Small and quick: a plane has two coordinates, and all of it has to fit into ten minutes on two cores.
NET = {"width": 64, "depth": 3, "heads": 4, "patch": 6, "step_width": 64}
MODELS = {
    "temporal": {"steps": 8_000, "hidden": (128, 128, 128), "members": 1, "batch_size": 256},
    "dynamics": {"steps": 4_000, "net": NET, "batch_size": 64, "average_rate": 0.005},
    "planner": {"steps": 3_000, "net": NET, "batch_size": 64, "average_rate": 0.005},
    "onestep": {"steps": 3_000, "hidden": (128, 128, 128), "members": 1, "batch_size": 256},
}
LEARNER = {"hidden": (64, 64), "batch_size": 256, "learning_rate": 1e-3}


@dataclass(frozen=True)
class Quickstart:
    """Make a small pointmaze dataset, fit ASTRO, augment, train IQL without and with it, evaluate, write a page.

    Minutes on two cores. Started again, it continues.
    """

    out: Path = Path("quickstart")
    """Where everything goes."""
    json: bool = False
    """Print scores and times as JSON."""

    def run(self) -> int:
        from astro_rl.cli.run import show
        from astro_rl.run.devices import use_all_cores
        from astro_rl.run.pipeline import Plan, run_pipeline
        from astro_rl.run.train import TrainSettings
        from astro_rl.tasks import get_task

        use_all_cores()
        plan = Plan(
            task=get_task(TASK),
            episodes=EPISODES,
            preset="cpu",
            settings=MODELS,
            transitions=TRANSITIONS,
            learners=("iql",),
            learner_preset="tiny",
            learner_settings=LEARNER,
            training=TrainSettings(steps=STEPS, seeds=SEEDS, episodes=EVALUATION_EPISODES),
        )
        outcome = run_pipeline(plan, self.out, bar=bar, say=(lambda text: None) if self.json else print)
        show(outcome, self.json)
        return 0
