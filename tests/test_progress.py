import os
import pty
import subprocess
import sys

import pytest

from astro_rl.progress import progress_bar

SNIPPET = """
import time
from astro_rl.progress import progress_bar
with progress_bar("training", 200, "updates") as report:
    report(50, 200)
    for done in (100, 150, 200):
        time.sleep(0.05)
        report(done, 200)
"""


def test_silent_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("training", 10, "updates") as report:
        report(5, 10)
    assert capfd.readouterr() == ("", "")


def test_a_bar_with_rate_at_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    child = subprocess.Popen(
        [sys.executable, "-c", SNIPPET], stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other end of a terminal has gone
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert child.stdout is not None and child.stdout.read() == b""
    child.stdout.close()
    assert child.wait() == 0
    text = shown.decode()
    assert "training" in text and "200/200" in text and "updates/s" in text
    # The first report says where a continued run stands; it is no speed.
    rates = [float(part.split()[-1].replace(",", "")) for part in text.split(" updates/s")[:-1]]
    assert 0 < rates[-1] < 2500


def test_an_error_inside_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), progress_bar("training", 10, "updates"):
        raise ZeroDivisionError
