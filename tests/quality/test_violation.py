"""The violation rate of real data is small by calibration, and what breaks the dynamics is seen."""

import json

import numpy as np
import pytest

from astro_rl.data import Dataset, from_arrays
from astro_rl.errors import ConfigError
from astro_rl.quality.truth import known_rows
from astro_rl.quality.violation import calibrate, violation_rate
from astro_rl.tasks import Task
from tests.quality.conftest import with_gaps

Made = dict[str, tuple[Dataset, Task]]


def test_real_data_scores_low_and_teleports_score_high(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    calibration = calibrate(real, task, rows=150, samples=(4, 24))
    assert calibration.samples == 24, "more actions see more"
    assert calibration.compares == ("x-y",)
    assert calibration.real_rate <= 0.04
    assert calibration.skip_rate > 5 * calibration.real_rate
    honest = with_gaps(real, 8)
    found = violation_rate(honest, task, calibration, rows=150)
    assert found.rows == 150
    assert found.stitched is not None
    assert found.stitched <= 0.04
    apart = np.array(honest.observations)
    apart[~known_rows(honest)] += 1.0  # five steps away
    broken = from_arrays(apart, honest.actions, offsets=honest.offsets, extras=dict(honest.extras))
    found = violation_rate(broken, task, calibration, rows=150)
    assert found.by_kind["into gap"] == found.by_kind["out of gap"] == 1.0
    # Within the gap all states are off alike, which breaks nothing but where it puts them into a wall.
    assert found.by_kind["generated"] < 0.4
    assert "pool" not in json.loads(json.dumps(found.as_json()))["calibration"]


def test_an_ants_skipped_step_is_seen(made: Made) -> None:
    real, task = made["antmaze-medium-stitch"]
    calibration = calibrate(real, task, rows=60, samples=(4,))
    assert calibration.real_rate <= 0.1
    assert calibration.skip_rate > 0.8
    assert calibration.actions in ("box", "data")


def test_real_data_has_no_stitched_transition_and_too_few_rows_are_refused(made: Made) -> None:
    real, task = made["pointmaze-medium-stitch"]
    with pytest.raises(ConfigError, match="rows"):
        calibrate(real, task, rows=10)
    calibration = calibrate(real, task, rows=50, samples=(4,))
    steps = np.concatenate([np.arange(rows) for rows in np.diff(real.offsets)]).astype(np.int32)
    known = from_arrays(real.observations, real.actions, offsets=real.offsets, extras={"source_step": steps})
    assert violation_rate(known, task, calibration).stitched is None
