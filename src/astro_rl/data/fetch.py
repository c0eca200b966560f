"""Datasets by name: what is there already, else the official host, else a mirror; whole and checked, or not
at all."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from astro_rl.data.atomic import synchronise
from astro_rl.data.catalogue import KnownDataset, known_dataset
from astro_rl.data.download import DiskFull, HostFailed, Patience, download
from astro_rl.data.formats.hdf5_io import leaves, open_hdf5
from astro_rl.data.npz import open_npz
from astro_rl.errors import AstroError, DataError, UnavailableError

Hosts = Sequence[str]
"""Addresses with `{folder}` and `{file}` in them, in the order in which they are asked."""

OGBENCH_HOSTS: Hosts = (
    "https://rail.eecs.berkeley.edu/datasets/{folder}/{file}",
    "https://huggingface.co/datasets/zhouzypaul/ogbench_datasets/resolve/main/{file}",
)
"""The official host, then a copy of its files that a colleague of OGBench's authors keeps."""

D4RL_HOSTS: Hosts = (
    "https://rail.eecs.berkeley.edu/datasets/{folder}/{file}",
    "http://rail.eecs.berkeley.edu/datasets/{folder}/{file}",
)
"""D4RL has no mirror that we know to be faithful; its own code fetches from the second address."""

REQUIRED = {
    "ogbench": ("observations", "actions", "terminals"),
    "d4rl": ("observations", "actions", "rewards", "terminals", "timeouts"),
}


def fetch(
    name: str,
    directory: str | Path,
    *,
    hosts: Hosts | None = None,
    any_size: bool = False,
    patience: Patience | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """The dataset's files in `directory`: training data, then validation data where there is any.

    A file that is there already is checked and kept. Beside each file stands NAME.sha256, written when the
    file first was found whole (`sha256sum -c` reads it), against which later calls check. A broken-off
    download continues with the next call. `any_size` accepts files with other numbers of rows than were
    published.
    """
    return fetch_known(
        known_dataset(name),
        Path(directory),
        hosts=hosts,
        any_size=any_size,
        patience=patience,
        progress=progress,
    )


def fetch_known(
    known: KnownDataset,
    directory: Path,
    *,
    hosts: Hosts | None = None,
    any_size: bool = False,
    patience: Patience | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """`fetch` for an entry of the catalogue."""
    if directory.exists() and not directory.is_dir():
        raise DataError("A folder was expected.", file=directory, found="a file", fix="give a folder")
    paths = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError("The folder cannot be made.", file=directory, found=str(error)) from error
    if not os.access(directory, os.W_OK):
        raise DataError("The folder cannot be written to.", file=directory, fix="give another folder")
    for file, remote, rows in zip(known.files, known.remote_files, known.rows, strict=True):
        path, wanted = directory / file, None if any_size else rows
        if path.exists():
            _check_present(path, known, wanted)
        else:
            asked = (D4RL_HOSTS if known.suite == "d4rl" else OGBENCH_HOSTS) if hosts is None else hosts
            urls = [host.format(folder=known.remote_path, file=remote) for host in asked]
            with _alone(path):
                _bring(path, urls, known, wanted, patience or Patience(), progress)
        paths.append(path)
    return paths


def _bring(
    path: Path,
    urls: Sequence[str],
    known: KnownDataset,
    rows: int | None,
    patience: Patience,
    progress: Callable[[int, int], None] | None,
) -> None:
    partial = path.with_name(f".{path.name}.part")
    failures: list[tuple[str, str]] = []
    for url in urls:
        # A damaged file is fetched a second time: the first may have been pieced together from two versions.
        for _ in range(2):
            fresh = not partial.exists()
            try:
                download(url, partial, patience, progress)
                check_file(partial, known.suite, rows)
            except HostFailed as failure:
                failures.append((url, str(failure)))
                break
            except DiskFull:
                raise
            except DataError as fault:
                partial.unlink(missing_ok=True)
                failures.append((url, f"{fault.what} {fault.found or ''}".strip()))
                if fresh:
                    break
                continue
            _note_digest(path, _digest(partial))
            synchronise(partial)
            partial.replace(path)
            synchronise(path.parent)
            return
    raise _not_fetched(path, known, failures)


def _not_fetched(path: Path, known: KnownDataset, failures: Sequence[tuple[str, str]]) -> AstroError:
    ways = [f"try again later, what arrived is kept; or put {path.name} from elsewhere into {path.parent}"]
    if known.remote_files[0] != known.files[0]:
        published = known.remote_files[known.files.index(path.name)]
        ways.append(f"(published as {published}; rename it)")
    if known.makeable:
        ways.append(f"or make it by simulation: astro-rl data make {known.name}")
    return UnavailableError(
        f"{path.name} could not be fetched.",
        file=path,
        found="; ".join(f"{url}: {reason}" for url, reason in failures) or "no host to ask",
        fix=" ".join(ways),
    )


def check_file(path: Path, suite: str, rows: int | None) -> None:
    """Raise `DataError` unless every byte can be read back, the columns are there and the rows as many as
    published."""
    if suite == "d4rl":
        with open_hdf5(path) as file:
            arrays = leaves(file)
            names = {name: array.shape for name, array in arrays.items()}
            for array in arrays.values():
                # Reading is the check: compressed chunks carry checksums, truncated files end too soon.
                for chunk in array.iter_chunks() if array.chunks else ():
                    array[chunk]
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
        except (zipfile.BadZipFile, OSError, EOFError) as fault:
            raise DataError("This is not a whole archive.", file=path, found=str(fault)) from fault
        if damaged is not None:
            raise DataError("The archive is damaged.", file=path, field=damaged, found="a wrong checksum")
        names = {name: column.shape for name, column in open_npz(path).items()}
    for name in REQUIRED[suite]:
        if name not in names:
            raise DataError("A column is missing.", file=path, field=name, found=", ".join(names))
    if rows is not None and names["observations"][0] != rows:
        raise DataError(
            "The file holds another number of rows than was published.",
            file=path,
            field="observations",
            found=f"{names['observations'][0]:,} rows",
            expected=f"{rows:,} rows",
            fix="pass any_size=True (--any-size) if this is meant",
        )


def _check_present(path: Path, known: KnownDataset, rows: int | None) -> None:
    """A file that is there: compared with its noted digest, or checked like a fresh one and noted."""
    if path.is_dir():
        raise DataError("A file was expected.", file=path, found="a directory", fix="move it away")
    noted = _sidecar(path).read_text().split()[:1] if _sidecar(path).exists() else []
    digest = _digest(path)
    if noted and noted[0] != digest:
        raise DataError(
            "The file has changed since it was fetched.",
            file=path,
            found=f"sha256 {digest}",
            expected=noted[0],
            fix=f"delete it to fetch it again, or delete {_sidecar(path).name} if the change was meant",
        )
    if not noted:
        try:
            check_file(path, known.suite, rows)
        except DataError as fault:
            raise DataError(
                f"A file of that name is there, but it is not the dataset. {fault.what}",
                file=path,
                field=fault.field,
                found=fault.found,
                expected=fault.expected,
                fix=fault.fix or "move it away or delete it, and fetch again",
            ) from fault
        _note_digest(path, digest)


def _sidecar(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note_digest(path: Path, digest: str) -> None:
    partial = path.with_name(f".{path.name}.sha256.part")
    partial.write_text(f"{digest}  {path.name}\n")
    partial.replace(_sidecar(path))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time: two that append to the same file would spoil it. The lock dies with its
    process."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover (not on POSIX)
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    handle = os.open(lock, os.O_CREAT | os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(
                "Another process is fetching this file.", file=path, fix="wait until it is done"
            ) from error
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
    finally:
        os.close(handle)
