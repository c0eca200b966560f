"""Independent jobs in processes of their own: started once, dealt one job at a time, answered in order.

A worker is a fresh interpreter for the reasons that `astro_rl.evaluate.workers` gives. It imports the module of the job
and nothing else, so the simulator's workers never pay for JAX. Results do not depend on how many workers there are, as
long as a job's result follows from its arguments.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

from astro_rl.errors import AstroError, ConfigError
from astro_rl.evaluate.workers import GOODBYE_SECONDS, ONE_THREAD, error_from_wire, error_to_wire

Progress = Callable[[int, int], None]


def available_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def run_jobs(
    job: str, arguments: Sequence[tuple[Any, ...]], workers: int | None = 0, progress: Progress | None = None
) -> list[Any]:
    """`job` ("module:function") called with each of the arguments; answers in the order of the arguments.

    `workers` None is one a core, 0 this process.
    """
    with Crew(workers) as crew:
        return crew.run(job, arguments, progress)


class Crew:
    """Workers that stay between calls: each builds its simulator once. None is started before there is work for it."""

    def __init__(self, workers: int | None = 0) -> None:
        if workers is not None and workers < 0:
            raise ConfigError("The number of workers cannot be negative.", field="workers", found=workers)
        self._most = available_cores() if workers is None else workers
        self._alone = self._most <= (1 if workers is None else 0)
        self._processes: dict[Connection, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """A closed pipe ends a worker; one that does not notice in time is killed."""
        for connection in self._processes:
            connection.close()
        for process in self._processes.values():
            try:
                process.wait(GOODBYE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = {}

    def run(
        self, job: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None = None
    ) -> list[Any]:
        """As :func:`run_jobs`. After an error the crew is sent home."""
        if self._alone:
            return _run_here(job, arguments, progress)
        while len(self._processes) < min(self._most, len(arguments)):
            connection, process = _start()
            self._processes[connection] = process
        try:
            return self._deal(job, arguments, progress)
        except BaseException:
            self.close()
            raise

    def _deal(self, job: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None) -> list[Any]:
        answers: list[Any] = [None] * len(arguments)
        waiting, done = iter(range(len(arguments))), 0
        holds: dict[Connection, int] = {}
        for connection in self._processes:
            _give(connection, job, arguments, waiting, holds)
        while holds:
            for ready in wait(list(holds)):
                assert isinstance(ready, Connection)
                answers[holds[ready]] = self._answer(ready)
                del holds[ready]
                done += 1
                if progress is not None:
                    progress(done, len(arguments))
                _give(ready, job, arguments, waiting, holds)
        return answers

    def _answer(self, connection: Connection) -> Any:
        try:
            error, answer = connection.recv()
        except (EOFError, OSError) as gone:
            raise AstroError(
                "A process that runs the simulator is gone.",
                found=f"exit status {self._processes[connection].poll()}",
                fix="its last words, if any, stand above; fewer workers need less memory, and workers=0 runs "
                "everything in this process",
            ) from gone
        if error is not None:
            raise error_from_wire(error)
        return answer


def _run_here(job: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None) -> list[Any]:
    function, answers = _function(job), []
    for number, given in enumerate(arguments):
        answers.append(function(*given))
        if progress is not None:
            progress(number + 1, len(arguments))
    return answers


def _give(connection: Connection, job: str, arguments: Any, waiting: Any, holds: dict[Any, int]) -> None:
    number = next(waiting, None)
    if number is None:
        return
    holds[connection] = number
    with contextlib.suppress(OSError):  # it has died; its end of the pipe is closed, and `recv` says so
        connection.send((job, arguments[number]))


def _start() -> tuple[Connection, subprocess.Popen[bytes]]:
    ours, theirs = Pipe()
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "astro_rl.quality.workers", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=2,
    )
    theirs.close()
    return ours, process


def _function(job: str) -> Callable[..., Any]:
    module, _, name = job.partition(":")
    return getattr(importlib.import_module(module), name)


def _serve(connection: Connection) -> None:
    while True:
        try:
            job, given = connection.recv()
        except (EOFError, OSError):
            return  # whoever asked is gone
        try:
            answer = None, _function(job)(*given)
        except AstroError as error:
            answer = error_to_wire(error), None
        except Exception as error:
            traceback.print_exc()
            told = AstroError(
                "A job of the simulator's worker failed.", found=f"{type(error).__name__}: {error}"
            )
            answer = error_to_wire(told), None
        try:
            connection.send(answer)
        except OSError:
            return


if __name__ == "__main__":
    # An interrupt at the terminal reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(Connection(int(sys.argv[1])))
