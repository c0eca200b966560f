import json
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astro_rl.errors import AstroError, ConfigError, DataError
from astro_rl.run.records import RecordFile

FEW = settings(deadline=None, max_examples=40)


def fill(path: Path, steps: list[int]) -> RecordFile:
    records = RecordFile(path)
    for number, step in enumerate(steps):
        records.write(step, {"loss": number / 7})
    return records


@FEW
@given(
    steps=st.lists(st.integers(0, 9), min_size=1, max_size=8).map(sorted),
    cut=st.integers(0, 400),
    at=st.integers(0, 9),
)
def test_a_file_torn_at_any_byte_continues_as_if_it_had_not_been(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], cut: int, at: int
) -> None:
    folder = tmp_path_factory.mktemp("records")
    whole = fill(folder / "whole.jsonl", steps)
    whole.close()
    content = whole.path.read_bytes()
    # A kill leaves everything up to the checkpoint's step, and any number of bytes after it.
    kept = sum(len(line) for line, step in zip(content.splitlines(True), steps, strict=True) if step <= at)
    torn = folder / "torn.jsonl"
    torn.write_bytes(content[: kept + cut])
    records = RecordFile(torn)
    records.truncate_after(at)
    assert torn.read_bytes() == content[:kept]
    for number, step in enumerate(steps):
        if step > at:
            records.write(step, {"loss": number / 7})
    records.close()
    assert torn.read_bytes() == content


def test_lines_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    records = fill(tmp_path / "train.jsonl", [1, 2])
    assert [json.loads(line)["step"] for line in (tmp_path / "train.jsonl").read_text().splitlines()] == [
        1,
        2,
    ]
    records.close()


def test_writing_after_a_torn_line_replaces_it(tmp_path: Path) -> None:
    fill(tmp_path / "train.jsonl", [1, 2]).close()
    with (tmp_path / "train.jsonl").open("ab") as file:
        file.write(b'{"step":3,"lo')
    records = RecordFile(tmp_path / "train.jsonl")
    assert [record["step"] for record in records.read()] == [1, 2]
    records.write(3, {"loss": 1.0})
    records.close()
    assert [record["step"] for record in records.read()] == [1, 2, 3]


def test_all_kinds_of_numbers_are_plain_afterwards(tmp_path: Path) -> None:
    records = RecordFile(tmp_path / "train.jsonl")
    values = {
        "jax": jnp.float32(0.5),
        "numpy": np.int64(3),
        "per_seed": np.array([1.0, np.nan]),
        "infinite": float("inf"),
        "flag": True,
        "word": "ant",
    }
    records.write(1, values)
    records.close()
    assert records.read() == [
        {
            "step": 1,
            "jax": 0.5,
            "numpy": 3,
            "per_seed": [1.0, None],
            "infinite": None,
            "flag": True,
            "word": "ant",
        }
    ]


def test_steps_never_go_back(tmp_path: Path) -> None:
    fill(tmp_path / "train.jsonl", [1, 5]).close()
    records = RecordFile(tmp_path / "train.jsonl")
    with pytest.raises(AstroError, match="forward"):
        records.write(4, {})
    with pytest.raises(AstroError, match="by itself"):
        records.write(6, {"step": 6})
    with pytest.raises(ConfigError, match="cannot be recorded"):
        records.write(6, {"thing": object()})
    records.close()
    assert len(records.read()) == 2


def test_damage_in_the_middle_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"step":1}\n{"st\n{"step":3}\n')
    with pytest.raises(DataError) as caught:
        RecordFile(path).truncate_after(1000)
    assert caught.value.field == "line 2" and caught.value.file == str(path)
    path.write_text('{"step":1}\n{"loss":1}\n{"step":3}\n')
    with pytest.raises(DataError, match="without a step"):
        RecordFile(path).truncate_after(1000)


def test_the_parquet_copy_has_every_column_of_every_line(tmp_path: Path) -> None:
    records = RecordFile(tmp_path / "train.jsonl")
    records.write(1, {"loss": 1, "per_seed": [0.5, 1.5]})
    records.write(2, {"loss": 2.5, "late": True, "mixed": "text"})
    records.write(3, {"mixed": 4})
    table = parquet.read_table(records.write_parquet())
    records.close()
    assert table.column_names == ["step", "loss", "per_seed", "late", "mixed"]
    assert table["step"].to_pylist() == [1, 2, 3]
    assert table["loss"].to_pylist() == [1.0, 2.5, None]
    assert table["per_seed"].to_pylist() == [[0.5, 1.5], None, None]
    assert table["late"].to_pylist() == [None, True, None]
    assert table["mixed"].to_pylist() == [None, '"text"', "4"]


def test_a_full_disk_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = fill(tmp_path / "train.jsonl", [1])

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DataError, match="No space left"):
        records.write(2, {})
    monkeypatch.undo()
    records.close()
    assert len(records.read()) == 1
