"""`astro-rl fit --method` and `astro-rl augment` for other methods than ASTRO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astro_rl.cli.output import bar, print_json
from astro_rl.cli.train import parse_settings
from astro_rl.errors import ConfigError

if TYPE_CHECKING:
    from astro_rl.cli.astro import Augment, Fit
    from astro_rl.data import Dataset


def fit_rival(command: Fit) -> int:
    from astro_rl.augmenters.registry import METHODS, augmenter_for
    from astro_rl.data import load
    from astro_rl.run.methods import fit_method
    from astro_rl.stitch.geometry import ChainShape
    from astro_rl.tasks import get_task

    shape = None if command.shape is None else ChainShape(*command.shape)
    augmenter = augmenter_for(command.method, command.preset, parse_settings(command.set), shape=shape)
    task = None if command.task is None else get_task(command.task)
    fitted = fit_method(load(command.data), augmenter, task=task, seed=command.seed, out=command.out, bar=bar)
    if command.json:
        told = {"folder": str(command.out), "method": fitted.method, "models_digest": fitted.digest()}
        print_json(told)
        return 0
    print(f"{METHODS[fitted.method].title} is fitted; everything lies in {command.out}")
    print(f"next: astro-rl augment {command.out} {command.data} --transitions N --out FILE")
    return 0


def augment_rival(command: Augment) -> Dataset:
    from astro_rl.data import load
    from astro_rl.run.methods import augment_method, load_method
    from astro_rl.tasks import get_task

    if command.rounds != 1:
        raise ConfigError(
            "Only ASTRO augments in rounds, with chains from what rounds before have added.",
            field="rounds",
            found=command.rounds,
            fix="leave it out",
        )
    task = None if command.task is None else get_task(command.task)
    dataset = load(command.data)
    return augment_method(
        load_method(command.fit, dataset),
        dataset,
        command.transitions,
        out=command.out,
        format=command.format,
        overwrite=command.overwrite,
        task=task,
        seed=command.seed,
        settings=parse_settings(command.set),
        bar=bar,
    )
