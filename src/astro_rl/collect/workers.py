"""Worker processes: started, fed with shards, listened to, and never waited for in vain."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from astro_rl.collect.partial import explain
from astro_rl.collect.request import Request
from astro_rl.collect.shards import Shard
from astro_rl.errors import AstroError, UnavailableError

_START = (
    "import signal, sys; from pathlib import Path; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from astro_rl.collect.worker import main; main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass
class _Worker:
    number: int
    process: subprocess.Popen[bytes]
    log: Path
    shard: Shard | None = None
    episode: int | None = None
    unread: bytes = field(default=b"")

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def give(self, shard: Shard | None) -> None:
        """The next shard, or the end of the input, at which the worker leaves."""
        self.shard, self.episode = shard, None
        try:
            if shard is None:
                self.input.close()
            else:
                self.input.write(json.dumps(asdict(shard)).encode() + b"\n")
                self.input.flush()
        except BrokenPipeError:
            pass  # It has died; its output is at an end, and that is where deaths are handled.

    def messages(self) -> list[dict[str, Any]] | None:
        """What it has said since, or None when it has left."""
        said = os.read(self.output.fileno(), 65536)
        if not said:
            return None
        *lines, self.unread = (self.unread + said).split(b"\n")
        return [json.loads(line) for line in lines]


def make_in_processes(
    request: Request,
    shards: list[Shard],
    folder: Path,
    logs: Path,
    workers: int,
    on_shard: Callable[[Shard], None],
) -> None:
    """Makes all shards, in any order. On any failure all workers are stopped before the error is raised."""
    waiting = list(reversed(shards))
    crew: list[_Worker] = []
    selector = selectors.DefaultSelector()
    try:
        for number in range(workers):
            crew.append(_start(request, folder, logs, number))
            selector.register(crew[-1].output, selectors.EVENT_READ, crew[-1])
        while selector.get_map():
            for key, _ in selector.select():
                worker: _Worker = key.data
                messages = worker.messages()
                if messages is None:
                    selector.unregister(worker.output)
                    if worker.process.wait() != 0 or worker.shard is not None:
                        raise _died(worker)
                    continue
                for message in messages:
                    _handle(worker, message, waiting, folder, on_shard)
    finally:
        selector.close()
        for worker in crew:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()
            worker.output.close()
            worker.give(None)


def _start(request: Request, folder: Path, logs: Path, number: int) -> _Worker:
    # A plain process and not `multiprocessing`: that runs the user's main module again in each worker,
    # which fails in notebooks, in scripts read from a pipe, and in every script without an `if __name__ ==
    # "__main__"`.
    arguments = [request.recipe.dataset, str(request.seed), str(folder.absolute())]
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    log = logs / f"worker-{number}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
    return _Worker(number, process, log)


def _handle(
    worker: _Worker,
    message: dict[str, Any],
    waiting: list[Shard],
    folder: Path,
    on_shard: Callable[[Shard], None],
) -> None:
    event = message["event"]
    if event == "episode":
        worker.episode = message["number"]
    elif event in ("ready", "done"):
        finished = worker.shard
        worker.give(waiting.pop() if waiting else None)
        if finished is not None:
            on_shard(finished)
    elif event == "refused":
        raise explain(OSError(message["errno"], message["text"], message["path"]), folder.parent.parent)
    else:
        raise UnavailableError(
            f"Making {_what(worker)} failed.", found=message["text"].strip(), fix="finished episodes are kept"
        )


def _died(worker: _Worker) -> AstroError:
    code = worker.process.returncode
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    last_words = worker.log.read_text(errors="replace").strip().splitlines()[-8:]
    out_of_memory = " (9 is what the system does to a process when memory runs out)" if code == -9 else ""
    return UnavailableError(
        f"A worker process died while making {_what(worker)}.",
        found="\n            ".join([f"{how}{out_of_memory}", *last_words]),
        fix="give the same command again: finished episodes are kept; fewer workers need less memory",
    )


def _what(worker: _Worker) -> str:
    if worker.shard is None:
        return "its environment"
    return (
        f"episode {worker.shard.first if worker.episode is None else worker.episode} of {worker.shard.split}"
    )
