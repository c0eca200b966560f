"""Pages in a headless Chromium, where one is installed: what a script finds there, and what was asked for."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-default-apps",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--virtual-time-budget=4000", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
FAULTS = (
    "<script>window.faults = []; "
    "addEventListener('error', (e) => faults.push(String(e.message || e.target.outerHTML)), true); "
    "addEventListener('securitypolicyviolation', (e) => faults.push('policy: ' + e.blockedURI));</script>"
)
PROBE = """
<script>
addEventListener("load", async () => {{
  const wait = () => new Promise((done) => setTimeout(done, 30));
  let found;
  try {{ found = await (async () => {{ {script} }})(); }} catch (error) {{ found = null; faults.push(String(error)); }}
  parent.postMessage(JSON.stringify({{ found, faults }}), "*");
}});
</script>
"""
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="answer"></pre>
<script>addEventListener("message", (e) => {{ document.getElementById("answer").textContent = e.data; }});</script>
<iframe style="border:0" width="{width}" height="1200" srcdoc="{page}"></iframe></body>"""


@dataclass(frozen=True)
class Visit:
    found: Any
    """What the script returned."""
    faults: list[str]
    """Errors, and requests that the page's own policy stopped."""
    addresses: set[str]
    """What the page made the browser ask the network for."""


def visit(page: str, script: str, folder: Path, *, width: int = 1200) -> Visit:
    """Open the page in a frame of that width (a window cannot be as narrow as a phone) and run the body of an async
    function in it."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    # Behind the policy, which has to come first to be heeded.
    probed = page.replace("<title>", FAULTS + "<title>", 1) + PROBE.format(script=script)
    (folder / "frame.html").write_text(FRAME.format(width=width, page=html.escape(probed)), encoding="utf-8")
    log = folder / "network.json"
    own = (f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--window-size=1400,1300")
    done = subprocess.run(
        [program, *FLAGS, *own, "--dump-dom", (folder / "frame.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answer = re.search(r'<pre id="answer">(.+?)</pre>', done.stdout, re.S)
    assert answer, f"the page gave no answer: {done.stderr[-2000:]}"
    said = json.loads(html.unescape(answer[1]))
    return Visit(said["found"], said["faults"], _addresses(log))


def _addresses(log: Path) -> set[str]:
    """Requests that an origin began. Chromium's own, which it makes whatever page is open, have none."""
    lines = [line for line in log.read_text().splitlines() if '"initiator":' in line]
    asked = [line for line in lines if '"initiator":"not an origin"' not in line]
    return {address for line in asked for address in re.findall(r'"url":"((?:https?|wss?|ftp):[^"]*)"', line)}
