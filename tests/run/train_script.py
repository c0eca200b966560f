"""A training run small enough to be killed again and again: what `tests/run/test_train.py` starts as a
process.
"""

import sys
from pathlib import Path

from astro_rl.agents.presets import learner_for
from astro_rl.run.train import TrainSettings, train
from tests.training.stubs import counting_dataset

SETTINGS = TrainSettings(steps=120, seeds=(0, 1), log_every=10, checkpoint_every=20, episodes=0)


def run(folder: Path) -> None:
    dataset = counting_dataset((9, 4, 6))
    train(dataset, learner_for("iql", preset="tiny", task=None), SETTINGS, out=folder)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
