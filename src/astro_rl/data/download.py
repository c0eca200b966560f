"""One file over HTTP: continued where it broke off, never longer or shorter than promised."""

from __future__ import annotations

import http.client
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from astro_rl.data.atomic import is_disk_full, readable_bytes
from astro_rl.errors import DataError

BLOCK_BYTES = 2**20
GONE = frozenset({401, 403, 404, 410, 451})
"""Answers that asking again does not change."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a host, and how often to ask it again."""

    timeout: float = 30.0
    """Seconds without a byte after which a connection counts as dead."""
    attempts: int = 5
    """Attempts in a row without progress before the host is given up."""
    backoff: float = 1.0
    """Seconds before the second attempt; doubled for each further one, up to a minute."""
    sleep: Callable[[float], None] = time.sleep


class DiskFull(DataError):
    """There is no room for the download, from whichever host."""


class HostFailed(Exception):
    """This host does not have the file or does not deliver it; the next one may."""


def download(
    url: str, partial: Path, patience: Patience, progress: Callable[[int, int], None] | None = None
) -> int:
    """Bring `partial` to its full length, starting with what it holds; its length is given back.

    What it holds may come from another host: mirrors hold the same bytes, and the caller checks the whole.
    """
    fruitless, farthest = 0, _length(partial)
    while True:
        try:
            total = _attempt(url, partial, patience.timeout, progress)
            if total is None or _length(partial) == total:
                return _length(partial)
            reason = f"the connection ended after {_length(partial):,} of {total:,} bytes"
        except urllib.error.HTTPError as error:
            if error.code in GONE:
                raise HostFailed(f"{error.code} {error.reason}") from error
            if error.code == 416:
                if error.headers.get("Content-Range", "").strip() == f"bytes */{_length(partial)}":
                    return _length(partial)  # it was whole already
                partial.unlink(missing_ok=True)
            reason = f"{error.code} {error.reason}"
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", None) or error) or type(error).__name__
        fruitless = 1 if _length(partial) > farthest else fruitless + 1
        farthest = max(farthest, _length(partial))
        if fruitless >= patience.attempts:
            raise HostFailed(f"{reason} ({fruitless} attempts)")
        patience.sleep(min(60.0, patience.backoff * 2 ** (fruitless - 1)))


def _attempt(
    url: str, partial: Path, timeout: float, progress: Callable[[int, int], None] | None
) -> int | None:
    """Append what one connection delivers. Gives the file's full length, None where the host does not tell
    it."""
    held = _length(partial)
    headers = {"User-Agent": "astro-rl", "Accept-Encoding": "identity"}
    if held:
        headers["Range"] = f"bytes={held}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:
        start, total = _span(answer.status, answer.headers, held)
        if start != held:
            held = 0  # the host does not continue files: from the start again
        _check_room(partial, (total or 0) - held)
        try:
            with partial.open("r+b" if partial.exists() else "wb") as file:
                file.truncate(held)
                file.seek(held)
                while block := answer.read(BLOCK_BYTES):
                    file.write(block)
                    held += len(block)
                    if progress is not None and total is not None:
                        progress(held, total)
        except OSError as error:
            if is_disk_full(error):
                raise _disk_full(partial, (total or 0) - held) from error
            raise
    return total


def _span(status: int, headers: http.client.HTTPMessage, held: int) -> tuple[int, int | None]:
    """Where the answer's body starts in the file, and how long the whole file is."""
    if status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", "").strip())
        if match and int(match[1]) == held:
            return held, None if match[2] == "*" else int(match[2])
        raise http.client.HTTPException(f"an answer for another range: {headers.get('Content-Range')}")
    length = headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _check_room(partial: Path, needed: int) -> None:
    free = shutil.disk_usage(partial.parent).free
    if needed > free:
        raise _disk_full(partial, needed)


def _disk_full(partial: Path, needed: int) -> DiskFull:
    free = shutil.disk_usage(partial.parent).free
    partial.unlink(missing_ok=True)
    return DiskFull(
        "The disk is too full for the download; nothing was kept.",
        file=partial.parent,
        found=f"{readable_bytes(free)} free",
        expected=f"{readable_bytes(max(needed, 0))} more",
        fix="free some room, or choose another folder",
    )


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
