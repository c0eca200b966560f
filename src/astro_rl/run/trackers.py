"""Watching a run elsewhere: TensorBoard, Weights & Biases, trackio. The run's own records never depend on any
of them.

A package that is missing is an error before training starts. After that a tracker may fail as it likes: it is
dropped, the run's notes say so once, and training goes on.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from astro_rl.errors import ConfigError, MissingDependency

PROJECT = "astro-rl"


class Tracker(Protocol):
    """What a plug-in does. Metrics are plain numbers; `finish` gets None where the run did not finish."""

    def start(self, config: Mapping[str, Any], folder: Path) -> None: ...
    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...
    def finish(self, results: Mapping[str, Any] | None) -> None: ...


class TensorBoard:
    """Event files under `RUN/trackers/tensorboard`, written by tensorboardX."""

    def __init__(self) -> None:
        self._module = _import("tensorboardX", "logging to TensorBoard")
        self._writer: Any = None
        self._config: Mapping[str, Any] = {}
        self._folder, self._step = Path(), 0

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        self._config, self._folder = config, folder / "trackers" / "tensorboard"

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        if self._writer is None:
            # What a killed run logged from this step on is hidden, so that a resumed curve has no second
            # branch.
            self._writer = self._module.SummaryWriter(str(self._folder), purge_step=step)
            self._writer.add_text("config", f"```json\n{json.dumps(self._config, indent=2)}\n```", step)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._step = step
        self._writer.flush()

    def finish(self, results: Mapping[str, Any] | None) -> None:
        if self._writer is not None:
            for name, value in numbers_of(results or {}, "results").items():
                self._writer.add_scalar(name, value, self._step)
            self._writer.close()


class WandB:
    """A run of the same name as the folder; offline where there is no key and no mode set."""

    def __init__(self) -> None:
        self._module = _import("wandb", "logging to Weights & Biases")
        self._run: Any = None

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        home = folder / "trackers"
        home.mkdir(exist_ok=True)
        settings: dict[str, Any] = {
            "project": os.environ.get("WANDB_PROJECT", PROJECT),
            "name": folder.resolve().name,
            "id": run_id(home / "wandb.id"),
            "resume": "allow",
            "config": dict(config),
            "dir": str(home),
        }
        mode = os.environ.get("WANDB_MODE") or ("online" if self._module.api.api_key else "offline")
        try:
            self._run = self._module.init(**settings, mode=mode)
        except Exception:
            if mode != "online":
                raise
            self._run = self._module.init(**settings, mode="offline")  # `wandb sync` uploads it later
        # Steps as an axis of their own: wandb drops what is logged at an earlier one, as a resumed run does.
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log({"step": step, **metrics})

    def finish(self, results: Mapping[str, Any] | None) -> None:
        self._run.summary.update(numbers_of(results or {}, "results"))
        self._run.finish(exit_code=1 if results is None else 0)


class Trackio:
    """Local by default: trackio keeps a database on this machine and sends nothing away."""

    def __init__(self) -> None:
        self._module = _import("trackio", "logging to trackio")
        self._step = 0

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        home = folder / "trackers"
        home.mkdir(exist_ok=True)
        name = f"{folder.resolve().name}-{run_id(home / 'trackio.id')}"
        project = os.environ.get("TRACKIO_PROJECT", PROJECT)
        self._module.init(project=project, name=name, config=dict(config), resume="allow")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._module.log(dict(metrics), step=step)
        self._step = step

    def finish(self, results: Mapping[str, Any] | None) -> None:
        if numbers := numbers_of(results or {}, "results"):
            self._module.log(numbers, step=self._step)
        self._module.finish()


TRACKERS: dict[str, Callable[[], Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB, "trackio": Trackio}


class TrackerGroup:
    """The trackers of a run as one that never fails."""

    def __init__(self, names: Sequence[str], *, note: Callable[[str], None]) -> None:
        for name in names:
            if name not in TRACKERS:
                raise ConfigError(
                    "No such tracker.", field="trackers", found=name, expected=", ".join(TRACKERS)
                )
        self._trackers = {name: TRACKERS[name]() for name in dict.fromkeys(names)}
        self._note = note

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        self._each("start", config, folder)

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Numbers as they are; several (one a seed) as their mean and each."""
        if self._trackers:
            self._each("log", step, numbers_of(metrics))

    def finish(self, results: Mapping[str, Any] | None) -> None:
        self._each("finish", results)
        self._trackers = {}

    def close(self) -> None:
        """For a run that ends without results. Nothing is left to do after `finish`."""
        self.finish(None)

    def _each(self, action: str, *arguments: Any) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                getattr(tracker, action)(*arguments)
            except Exception as error:
                del self._trackers[name]
                self._note(
                    f"the tracker {name} failed in {action} and was dropped: {type(error).__name__}: {error}"
                )


def numbers_of(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """What a tracker can draw: finite numbers by name; lists of numbers as a mean and their parts; nothing
    else.
    """
    found: dict[str, float] = {}
    for key, value in values.items():
        name = f"{prefix}/{key}" if prefix else key
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, Mapping):
            found.update(numbers_of(value, name))
        elif isinstance(value, list | tuple) and value and all(_is_number(item) for item in value):
            parts = [float(item) for item in value]
            found[name] = sum(parts) / len(parts)
            if len(parts) > 1:
                found.update({f"{name}/{position}": part for position, part in enumerate(parts)})
        elif _is_number(value):
            found[name] = float(value)
    return {name: value for name, value in found.items() if value - value == 0}


def run_id(path: Path) -> str:
    """An identity for the run on a tracker's side, kept in its folder so that a resumed run stays the same
    one.
    """
    if not path.exists() or not path.read_text().strip():
        path.write_text(f"{uuid.uuid4().hex[:12]}\n")
    return path.read_text().strip()


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _import(package: str, needed_for: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependency(package, "trackers", needed_for) from error
