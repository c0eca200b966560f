"""Lane groups behind one interface: in this process, or in a process of their own at the other end of a pipe.

A worker is a fresh interpreter, not a fork (JAX's threads do not survive one) and not multiprocessing's
`spawn` (which runs the user's own script again in each worker, JAX and all). Nothing waits for a worker that
is gone: its end of the pipe closes with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from astro_rl import errors
from astro_rl.errors import AstroError, ConfigError
from astro_rl.evaluate.lanes import EnvironmentFactory, LaneGroup, Outcome, Spaces, factory_name, failure_of

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
GOODBYE_SECONDS = 5.0


class Group(Protocol):
    """Lanes that run somewhere. `send` starts a round and `receive` waits for it, so that groups work at
    once.
    """

    def spaces(self) -> Spaces: ...
    def send(self, commands: np.ndarray, seeds: np.ndarray, actions: np.ndarray) -> None: ...
    def receive(self) -> Outcome: ...
    def close(self) -> None: ...


class LocalGroup:
    """Lanes in this process."""

    def __init__(self, factory: EnvironmentFactory, *, draws_globally_in_step: bool) -> None:
        name = factory_name(factory)
        try:
            self._lanes = LaneGroup(factory, draws_globally_in_step=draws_globally_in_step)
        except Exception as error:
            raise failure_of(error, name, "being built") from error
        self._pending: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def spaces(self) -> Spaces:
        return self._lanes.spaces

    def send(self, commands: np.ndarray, seeds: np.ndarray, actions: np.ndarray) -> None:
        self._pending = (commands, seeds, actions)

    def receive(self) -> Outcome:
        assert self._pending is not None
        try:
            return self._lanes.advance(*self._pending)
        except Exception as error:
            raise failure_of(error, self._lanes.name, "stepping") from error

    def close(self) -> None:
        self._lanes.close()


class WorkerGroup:
    """Lanes in a process of their own (`python -m astro_rl.evaluate.worker`)."""

    def __init__(self, factory: EnvironmentFactory, *, draws_globally_in_step: bool) -> None:
        self._name = factory_name(factory)
        ours, theirs = Pipe()
        environment = dict(os.environ)
        environment.update(dict.fromkeys(ONE_THREAD, "1"), JAX_PLATFORMS="cpu")
        environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
        # Standard output belongs to the command's own answer, so a chatty environment goes to standard error.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "astro_rl.evaluate.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
        )
        theirs.close()
        self._connection = ours
        self._finalizer = weakref.finalize(self, _say_goodbye, ours, self._process)
        self._doing = "being built"
        self._post((factory, draws_globally_in_step))

    def spaces(self) -> Spaces:
        return self._answer()

    def send(self, commands: np.ndarray, seeds: np.ndarray, actions: np.ndarray) -> None:
        self._doing = "stepping"
        self._post((commands, seeds, actions))

    def receive(self) -> Outcome:
        return self._answer()

    def close(self) -> None:
        self._finalizer()

    def _post(self, message: object) -> None:
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._gone() from error

    def _answer(self) -> Any:
        try:
            error, answer = self._connection.recv()
        except (EOFError, OSError) as gone:
            raise self._gone() from gone
        if error is not None:
            raise error_from_wire(error)
        return answer

    def _gone(self) -> AstroError:
        try:
            code = self._process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        return AstroError(
            f"The process that runs the environment {self._name} is gone; it died while {self._doing}.",
            found=_how_it_ended(code),
            fix="its last words, if any, stand above on standard error; `workers=0` runs the environments "
            "in this process, where a debugger reaches them",
        )


def check_factory(factory: EnvironmentFactory) -> None:
    """Refuse what another process could not import, before one is started."""
    if isinstance(factory, str):
        return
    name, fix = (
        factory_name(factory),
        "define it at the top of a module that can be imported, or use workers=0",
    )
    inner = getattr(factory, "func", factory)
    if getattr(inner, "__module__", None) == "__main__":
        raise ConfigError(
            f"Worker processes cannot import {name} from a script that is being run.",
            field="env_factory",
            fix=fix,
        )
    try:
        pickle.dumps(factory)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"Worker processes cannot be handed {name}.", field="env_factory", found=error, fix=fix
        ) from error


def error_to_wire(error: AstroError) -> tuple[str, str, dict[str, str | None]]:
    """An error as plain text and fields: its constructor may take other arguments than those it keeps."""
    fields = {key: value if value is None else str(value) for key, value in vars(error).items()}
    return type(error).__name__, str(error), fields


def error_from_wire(wire: tuple[str, str, dict[str, str | None]]) -> AstroError:
    name, text, fields = wire
    kind = getattr(errors, name, AstroError)
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    vars(error).update(fields)
    return error


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "the process closed its pipe and does not end"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}" + (
            " (out of memory?)" if code == -signal.SIGKILL else ""
        )
    return f"exit status {code}"


def _say_goodbye(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    """A closed pipe ends a worker; one that does not notice in time is killed."""
    connection.close()
    try:
        process.wait(GOODBYE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
