"""Any method in files: a fit and its augmented data, killed and continued, are those of one that was left alone."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from astro_rl import load
from astro_rl.augmenters.synther.fit import FittedSynther
from astro_rl.errors import ConfigError, DataError
from astro_rl.run import fit as fit_module
from astro_rl.run import shards as shards_module
from astro_rl.run.methods import augment_method, load_method
from astro_rl.run.models import load_models, method_of
from tests.augmenters.tiny_synther import fit_synther
from tests.fitted import walks

WANTED = 300
"""Three batches of 128."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("synther") / "fit"
    fit_synther(walks(), out=place)
    return place


@pytest.fixture(scope="module")
def fitted(folder: Path) -> FittedSynther:
    found = load_method(folder, walks())
    assert isinstance(found, FittedSynther)
    return found


@pytest.fixture(scope="module")
def whole(fitted: FittedSynther, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "augmented.npz"
    augment_method(fitted, walks(), WANTED, out=out)
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (".lock", "environment.json")
    }


def test_the_folder_says_what_was_fitted(folder: Path) -> None:
    assert set(files(folder)) == {
        "config.json",
        "records/denoiser.jsonl",
        "records/denoiser.parquet",
        "models/models.json",
        "models/denoiser.safetensors",
    }
    assert method_of(folder) == "synther"
    assert json.loads((folder / "config.json").read_text())["method"] == "synther"
    lines = (folder / "records" / "denoiser.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [20, 40, 60]


def test_what_the_disk_holds_at_any_moment_of_a_fit_can_be_continued(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of the folder, taken while the fit writes it, are what a kill would have left there."""
    monkeypatch.setattr(fit_module, "SAVE_SECONDS", 0.0)

    @contextmanager
    def bar(described: str, total: int, unit: str) -> Iterator[Callable[[int, int], None]]:
        def report(now: int, total: int) -> None:
            if now in (20, 60):
                shutil.copytree(tmp_path / "whole", tmp_path / f"at {now}")

        yield report

    fit_synther(walks(), out=tmp_path / "whole", bar=bar)
    with pytest.raises(DataError, match=r"(?s)has not finished.*same astro-rl fit command"):
        load_method(tmp_path / "at 20", walks())
    for now in (20, 60):
        fit_synther(walks(), out=tmp_path / f"at {now}")
        assert files(tmp_path / f"at {now}") == files(folder)


def test_a_finished_fit_is_read_and_another_is_refused_by_what_differs(folder: Path) -> None:
    before = (folder / "models" / "models.json").stat().st_mtime_ns
    again = fit_synther(walks(), out=folder)
    assert again.digest() == load_method(folder, walks()).digest()
    assert (folder / "models" / "models.json").stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match=r"(?s)other settings.*seed: 0 there, 1 asked for"):
        fit_synther(walks(), out=folder, seed=1)
    with pytest.raises(ConfigError, match=r"settings\.denoiser\.network"):
        fit_synther(walks(), {"denoiser.network": "dit"}, out=folder)
    with pytest.raises(ConfigError, match="labels_digest"):
        fit_synther(walks(rewards=False), out=folder)


def test_the_file_holds_what_memory_would(fitted: FittedSynther, whole: Path) -> None:
    made, read = augment_method(fitted, walks(), WANTED), load(whole)
    assert read.digest() == made.digest() and read.n_transitions == WANTED
    assert read.info["lineage"] == made.info["lineage"]
    assert [path.name for path in whole.parent.iterdir()] == [whole.name]


def test_a_full_disk_leaves_finished_shards_and_the_same_call_goes_on(
    fitted: FittedSynther, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, written = tmp_path / "augmented.npz", shards_module._write, []

    def full_after_one(batch: Any, folder: Path, prefix: str, number: int) -> Any:
        if number == 1 and not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(batch, folder, prefix, number)

    monkeypatch.setattr(shards_module, "_write", full_after_one)
    with pytest.raises(DataError, match=r"(?s)disk is full.*same command continues"):
        augment_method(fitted, walks(), WANTED, out=out)
    assert (
        not out.exists()
        and load(tmp_path / "augmented.npz.parts" / "round0-00000.astro").n_transitions == 128
    )
    with pytest.raises(ConfigError, match=r"(?s)other settings.*seed: 0 there, 1 asked for"):
        augment_method(fitted, walks(), WANTED, out=out, seed=1)
    written.append("room")
    augment_method(fitted, walks(), WANTED, out=out)
    assert out.read_bytes() == whole.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_a_finished_file_is_found_again_and_another_is_not_replaced(
    fitted: FittedSynther, whole: Path
) -> None:
    before = whole.stat().st_mtime_ns
    assert augment_method(fitted, walks(), WANTED, out=whole).n_transitions == WANTED
    assert whole.stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match=r"(?s)something else at the destination.*other settings"):
        augment_method(fitted, walks(), WANTED, out=whole, settings={"sampling.churn": 0.0})


def test_another_dataset_and_another_methods_door_are_refused(folder: Path, fitted: FittedSynther) -> None:
    for ask in (lambda: load_method(folder, walks(5)), lambda: augment_method(fitted, walks(5), 10)):
        with pytest.raises(DataError, match=r"(?s)fit belongs to another dataset.*fit this one"):
            ask()
    with pytest.raises(DataError, match=r"(?s)another method than ASTRO.*synther"):
        load_models(folder)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("method", "sunther", "another version.*sunther"),
        ("columns", {"observation_dim": 2}, "damaged"),
        ("models_digest", "0" * 64, "not those of the description"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, name: str, value: Any, named: str
) -> None:
    shutil.copytree(folder / "models", tmp_path / "models")
    place = tmp_path / "models" / "models.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), name: value}))
    with pytest.raises(DataError, match=f"(?s){named}"):
        load_method(tmp_path / "models", walks())
