"""The process that makes episodes: one line of JSON in for each shard, one out for each thing that happens.

It ends by itself when its parent is gone, however the parent ended: its input is then at an end, and its
output broken.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astro_rl.collect.episodes import build_collector
from astro_rl.collect.shards import Shard, make_shard
from astro_rl.data.catalogue import RECIPES
from astro_rl.errors import AstroError


def main(dataset: str, seed: int, folder: Path) -> None:
    say = _private_output()
    try:
        collector = build_collector(RECIPES[dataset])
        say({"event": "ready"})
        for line in sys.stdin:
            shard = Shard(**json.loads(line))
            make_shard(
                collector, shard, seed, folder, lambda number: say({"event": "episode", "number": number})
            )
            say({"event": "done"})
    except BrokenPipeError:
        return
    except OSError as error:
        say({"event": "refused", "errno": error.errno, "text": error.strerror, "path": error.filename})
    except AstroError as error:
        say({"event": "failed", "text": str(error)})
    except Exception:
        say({"event": "failed", "text": traceback.format_exc()})


def _private_output() -> Callable[[dict[str, Any]], None]:
    """Keeps the way to the parent for messages: what simulators print goes where errors go."""
    to_parent = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return lambda message: print(json.dumps(message), file=to_parent, flush=True)
