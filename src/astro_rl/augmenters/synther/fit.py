"""SynthER behind the protocol: settings, the fit, and what is left of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from astro_rl.augment.fittable import checked_normaliser
from astro_rl.augment.fitting import Bar, Forgetful, Keeper, no_bar, run_updates
from astro_rl.augment.lineage import source_digest
from astro_rl.augment.models import weights_digest
from astro_rl.augment.settings import changed
from astro_rl.augmenters.base import ReadWeights
from astro_rl.augmenters.synther.columns import Columns, columns_of, transition_table
from astro_rl.augmenters.synther.generate import ORIGIN_COLUMNS, SyntherProposer
from astro_rl.augmenters.synther.settings import GENERATING, SyntherSettings
from astro_rl.data.normaliser import Normaliser
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError
from astro_rl.tasks.relabel import check_width, relabel
from astro_rl.tasks.task import Task

SYNTHER, STAGE = "synther", "denoiser"


@dataclass(frozen=True)
class SyntherAugmenter:
    """SynthER's settings."""

    settings: SyntherSettings = dataclasses.field(default_factory=SyntherSettings)

    @property
    def method(self) -> str:
        return SYNTHER

    def as_json(self) -> dict[str, Any]:
        return self.settings.as_json()

    def fit(
        self,
        dataset: Dataset,
        *,
        task: Task | None = None,
        seed: int = 0,
        keeper: Keeper | None = None,
        bar: Bar = no_bar,
    ) -> FittedSynther:
        """One stage, over all transitions. Rewards are a column where no task gives them."""
        if task is not None:
            check_width(dataset, task)
        checked_normaliser(dataset)
        source, rewards = self._labelled(dataset, task)
        columns = columns_of(source, rewards=rewards)
        table, normaliser = transition_table(source, columns, self.settings.training_transitions)
        own = self.settings.denoiser
        denoiser = own.build(columns, self.settings.noise, len(table))
        init_key, fit_key = jax.random.split(jax.random.key(seed))
        state = run_updates(
            STAGE,
            denoiser,
            denoiser.init(init_key),
            jnp.asarray(table),
            fit_key,
            own.steps,
            own.log_every,
            keeper or Forgetful(),
            bar,
        )
        return FittedSynther(
            source_digest=source_digest(dataset),
            columns=columns,
            normaliser=normaliser,
            network=state.average,
            settings=self.settings,
            task=None if task is None else task.name,
            transitions=len(table),
            seed=seed,
        )

    def _labelled(self, dataset: Dataset, task: Task | None) -> tuple[Dataset, bool]:
        """The data with the rewards that are modelled, and whether any are."""
        if task is None:
            if self.settings.rewards == "modelled" and dataset.rewards is None:
                raise ConfigError(
                    "There are no rewards to model.",
                    field="rewards",
                    found="modelled, and a dataset without rewards",
                    fix="name the task whose rewards are meant (--task), or leave the setting at task",
                )
            return dataset, dataset.rewards is not None
        if self.settings.rewards == "modelled":
            return relabel(dataset, task), True
        return dataset, False


@dataclass(frozen=True, eq=False)
class FittedSynther:
    """A denoiser of one dataset's transitions."""

    source_digest: str
    columns: Columns
    normaliser: Normaliser
    network: Any
    """The moving average of the weights."""
    settings: SyntherSettings
    task: str | None
    """What the fit was told; modelled rewards are this task's, or without one the data's own."""
    transitions: int
    """Learned from."""
    seed: int

    @property
    def method(self) -> str:
        return SYNTHER

    def digest(self) -> str:
        return weights_digest(self.networks())

    def propose(self, dataset: Dataset, *, task: Task | None, seed: int) -> SyntherProposer:
        return SyntherProposer(
            self.network,
            self.columns,
            self.normaliser,
            self.settings,
            dataset,
            task=task,
            modelled_task=self.task,
            seed=seed,
        )

    def lineage(self) -> dict[str, Any]:
        return {
            "columns": list(ORIGIN_COLUMNS),
            "modelled": {"rewards": self.columns.rewards, "ends": self.columns.ends, "task": self.task},
            "settings": self.settings.as_json(),
        }

    def networks(self) -> dict[str, Any]:
        return {STAGE: self.network}

    def description(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "task": self.task,
            "transitions": self.transitions,
            "columns": asdict(self.columns),
            "normaliser": self.normaliser._asdict(),
            "settings": self.settings.as_json(),
        }


def restore_synther(saved: Mapping[str, Any], weights: ReadWeights) -> FittedSynther:
    """From `FittedSynther.description`, with the source's digest, and the weights."""
    settings = SyntherSettings.from_json(saved["settings"])
    columns = Columns(**saved["columns"])
    denoiser = settings.denoiser.build(columns, settings.noise, saved["transitions"])
    template = jax.eval_shape(lambda: denoiser.fresh(jax.random.key(0)))
    return FittedSynther(
        source_digest=saved["source_digest"],
        columns=columns,
        normaliser=Normaliser(**{name: np.asarray(v, np.float32) for name, v in saved["normaliser"].items()}),
        network=weights(STAGE, template),
        settings=settings,
        task=saved["task"],
        transitions=saved["transitions"],
        seed=saved["seed"],
    )


def adjusted(fitted: FittedSynther, settings: Mapping[str, Any]) -> FittedSynther:
    """With other settings of generating. Those of the fit cannot be changed behind it."""
    for name in settings:
        if str(name).partition(".")[0] not in GENERATING:
            changed(fitted.settings, {name: settings[name]})  # a name that does not exist is told as such
            raise ConfigError(
                "This setting was decided by the fit.",
                field=str(name),
                expected=", ".join(GENERATING),
                fix="fit again with it (astro-rl fit --method synther --set …)",
            )
    return dataclasses.replace(fitted, settings=changed(fitted.settings, settings))
