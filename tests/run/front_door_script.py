"""A fit or an augmentation that kills itself (`kill -9`) at a chosen moment, as a process.

python front_door_script.py fit FOLDER {} "fitting planner" 20
python front_door_script.py augment FILE '{"fit": FOLDER, "transitions": 600}' augmenting 1
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tests.conftest  # noqa: F401  types are checked as in the tests: other code would be compiled again
from astro_rl import Astro
from astro_rl.run import fit as fit_module
from tests.fitted import fit, walks


def killed_at(description: str, done: int) -> Callable:
    @contextmanager
    def bar(described: str, total: int, unit: str) -> Iterator[Callable[[int, int], None]]:
        def report(now: int, total: int) -> None:
            if described == description and now >= done:
                os.kill(os.getpid(), signal.SIGKILL)

        yield report

    return bar


def main(what: str, out: Path, options: str, description: str, done: str) -> None:
    bar = killed_at(description, int(done))
    told = json.loads(options)
    if what == "fit":
        # At this size a whole fit takes less than the time between two checkpoints.
        fit_module.SAVE_SECONDS = 0.0
        fit(walks(), out=out, bar=bar, **told)
    else:
        Astro.load(told.pop("fit"), walks()).augment(told.pop("transitions"), out=out, bar=bar, **told)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
