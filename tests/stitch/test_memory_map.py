"""Chains from latents in a file are the chains from latents in memory."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from astro_rl.stitch.geometry import ChainShape
from astro_rl.stitch.search import ChainSearch, SearchSettings
from astro_rl.stitch.windows import find_windows
from tests.stitch.test_stitch import LITERAL, line_of_trajectories


@pytest.mark.parametrize(("rule", "threshold"), [("shell", 1.5), ("argmin", 6.0)])
def test_a_mapped_table_gives_the_same_windows_chains_and_accounts(
    rule: Literal["shell", "argmin"], threshold: float, tmp_path: Path
) -> None:
    latents, offsets = line_of_trajectories(60, 40)
    np.save(tmp_path / "latents.npy", latents)
    mapped = np.load(tmp_path / "latents.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap) and not mapped.flags.writeable
    shape = ChainShape(pieces=3, segment=4, mask=4)
    settings = SearchSettings(
        threshold=threshold, rule=rule, tolerance=1.0, pool=512, shortlist=32, batch=64, filter_pairs=50
    )
    found = []
    for table in (latents, mapped):
        windows = find_windows(table, offsets, shape.segment, LITERAL, settings.threshold)
        search = ChainSearch(table, windows, LITERAL, shape, settings)
        assert search.latents is table, "a map is not read into memory"
        found.append((windows, search.batch(seed=3, number=1)))
    (windows, chains), (mapped_windows, mapped_chains) = found
    assert np.array_equal(windows.starts, mapped_windows.starts)
    assert len(chains) > 0
    assert np.array_equal(chains.starts, mapped_chains.starts)
    assert np.array_equal(chains.statistic, mapped_chains.statistic)
    assert chains.rejected == mapped_chains.rejected and chains.proposed == mapped_chains.proposed
