"""The worker process: builds a lane group, then answers rounds until its pipe closes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from astro_rl.evaluate.lanes import LaneGroup, factory_name, failure_of
from astro_rl.evaluate.workers import error_to_wire


def serve(connection: Connection) -> None:
    """Answer each message with (error, answer). After an error the lanes are in no known state, so the worker
    ends.
    """
    name, doing, lanes = "environment", "being built", None

    def answer(make: Callable[[], Any], show: Callable[[Any], Any]) -> Any:
        try:
            made = make()
        except Exception as error:
            connection.send((error_to_wire(failure_of(error, name, doing)), None))
            raise SystemExit(0) from error
        connection.send((None, show(made)))
        return made

    try:
        factory, draws_globally_in_step = connection.recv()
        name = factory_name(factory)
        lanes = answer(
            lambda: LaneGroup(factory, draws_globally_in_step=draws_globally_in_step),
            lambda made: made.spaces,
        )
        doing = "stepping"
        while True:
            commands, seeds, actions = connection.recv()
            answer(lambda: lanes.advance(commands, seeds, actions), lambda outcome: outcome)  # noqa: B023
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # whoever asked is gone
    except Exception as error:  # the factory could not be imported here
        connection.send((error_to_wire(failure_of(error, name, doing)), None))
    finally:
        if lanes is not None:
            lanes.close()


if __name__ == "__main__":
    # An interrupt at the terminal reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
