import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from astro_rl.errors import DataError
from astro_rl.evaluate import EvaluationResult

RESULT = EvaluationResult(
    environment="maze",
    seeds=(4, 2),
    returns=np.array([[-1.0, 0.1 + 0.2], [-1e-300, 5.0]]),
    lengths=np.array([[3, 4], [5, 6]]),
    successes=np.array([[True, False], [False, False]]),
)


@settings(deadline=None, max_examples=40)
@given(hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_json_keeps_every_bit(returns: np.ndarray) -> None:
    result = EvaluationResult("maze", (0, 1), returns, np.ones((2, 3), np.int64), None)
    again = EvaluationResult.from_json(json.loads(result.dumps()))
    assert again.returns.tobytes() == returns.tobytes()
    assert again.successes is None


def test_files_round_trip(tmp_path: Path) -> None:
    RESULT.save(tmp_path / "evaluation.json")
    again = EvaluationResult.load(tmp_path / "evaluation.json")
    assert again.to_json() == RESULT.to_json()
    assert (again.lengths.dtype, again.seeds, again.episodes) == (np.dtype(np.int64), (4, 2), 2)


def test_the_summary_is_over_seeds_and_not_over_episodes() -> None:
    assert RESULT.scores.tolist() == [50.0, 0.0]
    summary = RESULT.summary()
    assert (summary.seeds, summary.mean, summary.std, summary.never_learned) == (2, 25.0, 25.0, 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"format": "other"}, "format"),
        ({"format_version": 2}, "format_version"),
        ({"environment": 3}, "environment"),
        ({"seeds": [1, 2.0]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"returns": [[1.0, 2.0]]}, "returns"),
        ({"returns": [[1.0, 2.0], [1.0]]}, "returns"),
        ({"returns": [[1.0, "2"], [1.0, 1.0]]}, "returns"),
        ({"returns": [[1.0, math.nan], [1.0, 1.0]]}, "returns"),
        ({"returns": [[1.0, True], [1.0, 1.0]]}, "returns"),
        ({"lengths": [[1, 2], [3, 4.0]]}, "lengths"),
        ({"successes": [[True, False], [0, 1]]}, "successes"),
        ({"successes": [[True], [False]]}, "successes"),
        ({"successes": "none"}, "successes"),
    ],
)
def test_records_that_are_not_exact_are_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError) as caught:
        EvaluationResult.from_json({**RESULT.to_json(), **change}, source="evaluation.json")
    assert caught.value.field == field and caught.value.file == "evaluation.json"


def test_missing_and_unknown_keys_are_refused() -> None:
    record = RESULT.to_json()
    for wrong in ({**record, "mean": 1}, {key: record[key] for key in list(record)[:-1]}):
        with pytest.raises(DataError, match="expected"):
            EvaluationResult.from_json(wrong)


def test_a_file_with_nan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(RESULT.dumps().replace("-1.0", "NaN"))
    with pytest.raises(DataError, match="NaN"):
        EvaluationResult.load(path)
