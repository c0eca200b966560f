"""Further parts from their sources: completers, records, measurements, lineage, the simulator."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astro_rl.augment.generate import Account
from astro_rl.data import from_arrays
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.report.completions import completed_pairs, load_pairs, pair_rows, save_pairs
from astro_rl.report.curves import band, curves_of_fit, curves_of_runs
from astro_rl.report.evidence import NoFilm
from astro_rl.report.film import film_of
from astro_rl.report.gather import gather
from astro_rl.report.measures import geometry_of, metrics_of, share_interval
from astro_rl.report.provenance import accounts_of, lineage_texts
from astro_rl.run.records import RecordFile
from astro_rl.stitch.geometry import ChainShape
from astro_rl.tasks import get_task
from tests.augment.stub_completer import StubCompleter, plain
from tests.report.evidence_stories import chosen
from tests.report.stories import augmented_from, recorded

SHAPE = ChainShape(pieces=3, segment=4, mask=3)
STARTS = np.array([[2, 60], [35, 100]])


def straight(states: np.ndarray, known: np.ndarray) -> np.ndarray:
    return states


def raised(states: np.ndarray, known: np.ndarray) -> np.ndarray:
    return states + np.array([0.0, 1.0, 0.0, 0.0])


def completers(horizon: int = 21) -> dict[str, StubCompleter]:
    return {
        "exact": StubCompleter(horizon, straight, action_dim=2),
        "raised": StubCompleter(horizon + 4, raised, action_dim=2),
    }


def test_each_method_is_given_the_same_pair() -> None:
    dataset, found = recorded(), completers()
    pairs = completed_pairs(found, dataset, plain(4), SHAPE, STARTS, (0, 1))
    assert len(pairs) == 2
    first = pairs[0]
    assert first.known.tolist() == [True] * 4 + [False] * 3 + [True] * 4
    assert first.recordings == (0, 2)
    assert first.given[0].tolist() == [2.0, 0.0]
    assert first.given[-1].tolist() == [3.0, 2.0]
    assert first.lead is None
    assert {name: first.miss(attempt.xy) for name, attempt in first.attempts.items()} == {
        "exact": 0.0,
        "raised": 1.0,
    }
    (_, states, known), (_, wider, more) = (found[name].asked[0] for name in ("exact", "raised"))
    np.testing.assert_array_equal(states[:, :11], wider[:, :11])
    np.testing.assert_array_equal(known[:, :11], more[:, :11])
    assert not known[:, 11:].any()


def test_short_horizons_are_given_the_last_state_and_the_rest_is_shown_as_lead() -> None:
    (pair, _) = completed_pairs(completers(8), recorded(), plain(4), SHAPE, STARTS, (0, 1))
    assert pair.known.tolist() == [True] + [False] * 3 + [True] * 4
    assert pair.given[0].tolist() == [5.0, 0.0]
    assert pair.lead is not None
    assert pair.lead[:, 0].tolist() == [2.0, 3.0, 4.0, 5.0]
    with pytest.raises(ConfigError, match="too short"):
        pair_rows(SHAPE, STARTS, 7)


def test_actions_are_driven_where_a_simulator_can() -> None:
    """A point at rest is moved by its actions alone, from the pair's own first place. Of the stub, actions are a
    thousandth of the first state number: next to nothing."""
    task = get_task("pointmaze-medium-stitch-task1")
    places = np.tile(np.array([[4.0, 4.0]], np.float32), (60, 1))
    dataset = from_arrays(places, np.zeros((60, 2), np.float32), offsets=np.array([0, 30, 60]))
    found = {"raised": StubCompleter(11, lambda states, known: states + 1.0, action_dim=2)}
    (pair,) = completed_pairs(found, dataset, plain(2), SHAPE, np.array([[0, 40]]), (0, 1), task=task)
    driven = pair.attempts["raised"].driven
    assert driven is not None
    np.testing.assert_allclose(driven[0], [4.0, 4.0])
    assert 0 < pair.miss(driven) < 0.1
    assert pair.miss(pair.attempts["raised"].xy) == pytest.approx(np.sqrt(2))


def test_pairs_are_kept_in_a_file(tmp_path: Path) -> None:
    pairs = completed_pairs(completers(8), recorded(), plain(4), SHAPE, STARTS, (0, 1))
    save_pairs(pairs, tmp_path / "pairs.json")
    again = load_pairs(tmp_path / "pairs.json")
    for one, other in zip(pairs, again, strict=True):
        np.testing.assert_array_equal(one.given, other.given)
        np.testing.assert_array_equal(one.known, other.known)
        assert other.recordings == one.recordings
        assert other.miss(other.attempts["raised"].xy) == one.miss(one.attempts["raised"].xy)
    (tmp_path / "pairs.json").write_text('{"format": "astro-rl pairs", "pairs": [{}]}')
    with pytest.raises(DataError, match="damaged"):
        load_pairs(tmp_path / "pairs.json")


def records(folder: Path, seeds: tuple[int, ...], steps: int = 6, factor: float = 1.0) -> Path:
    path = folder / "records" / "train.jsonl"
    path.parent.mkdir(parents=True)
    file = RecordFile(path)
    for step in range(1, steps + 1):
        for seed in seeds:
            loss = float("nan") if (step, seed) == (2, 0) else factor * step * (seed + 1)
            file.write(step * 10, {"seed": seed, "actor/loss": loss, "value/probe_mean": -1.0})
    file.close()
    return folder


def test_curves_put_an_arms_runs_together_and_compare_shared_steps(tmp_path: Path) -> None:
    """Two runs of seed 0 are two seeds of the arm. The shorter arm ends at step 40, and so do all curves."""
    one, two = records(tmp_path / "a", (0, 1)), records(tmp_path / "b", (0,))
    short = records(tmp_path / "c", (0,), steps=4, factor=10)
    values, losses = curves_of_runs("iql", {"original": [one, two], "ASTRO": [short]})
    assert (values.quantity, losses.quantity) == ("value/probe_mean", "actor/loss")
    assert losses.steps.tolist() == [10, 20, 30, 40]
    np.testing.assert_array_equal(
        losses.arms["original"], [[1, np.nan, 3, 4], [2, 4, 6, 8], [1, np.nan, 3, 4]]
    )
    assert losses.arms["ASTRO"][0, 2] == 30
    assert curves_of_runs("iql", {"original": [tmp_path / "nowhere"]}) == ()


def test_a_fits_stages_have_curves_of_one_seed(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records" / "planner.jsonl")
    file.path.parent.mkdir()
    for step in (5, 10):
        file.write(step, {"loss": 1 / step, "seconds": "n/a"})
    file.close()
    (found,) = curves_of_fit(tmp_path)
    assert (found.group, found.quantity) == ("fit: planner", "loss")
    assert found.arms["fit"].tolist() == [[0.2, 0.1]]


def test_a_band_is_the_bootstraps_and_one_seed_has_none() -> None:
    """Means of two draws from {0, 2} are 0, 1, 1, 2: at the 2.5 % tails 0 and 2. A point that one seed alone has is
    that seed's; one that none has is nothing."""
    found = band(np.array([[0.0, 5.0, np.nan], [2.0, np.nan, np.nan]]))
    assert found.low is not None
    assert found.high is not None
    assert (found.mean[0], found.low[0], found.high[0]) == (1.0, 0.0, 2.0)
    assert (found.mean[1], found.low[1], found.high[1]) == (5.0, 5.0, 5.0)
    assert np.isnan([found.mean[2], found.low[2], found.high[2]]).all()
    assert band(np.array([[1.0, 2.0]])).low is None


def selection() -> dict[str, Any]:
    """As `quality.selection_geometry` writes it."""

    def moments(mean: float | None) -> dict[str, Any]:
        return {"mean": mean, "std": 0.5, "median": mean, "count": 9}

    def rule(turn: float | None, wall: float) -> dict[str, Any]:
        shapes = {key: moments(turn) for key in ("turn", "turn_sum", "curvature", "straightness")}
        pair = {"source": [[0, 0], [1, 0]], "target": [[3, 0], [4, 0]], "behind_wall": True}
        return {
            "pairs": 400,
            "steps": shapes,
            "pieces": shapes,
            "behind_wall": wall,
            "out_of_reach": 0.0,
            "never_joined": 0.5,
            "examples": [{**pair, "out_of_reach": False, "never_joined": True}],
        }

    return {
        "rules": {"temporal": rule(0.4, 0.02), "random": rule(None, 0.3)},
        "paper": {"temporal": {"turn": [1.253, 0.451]}},
        "reach": 5.0,
        "cell": 1.25,
    }


def test_selection_is_read_with_the_papers_figures_beside() -> None:
    measures, pairs = geometry_of(json.loads(json.dumps(selection())))
    by_name = {measure.name: measure.readings for measure in measures.measures}
    turn = by_name["Direction change |Δθ| from step to step"]
    assert list(turn) == ["temporal distance"]
    assert (turn["temporal distance"].value, turn["temporal distance"].paper) == (0.4, 1.253)
    assert by_name["Direction change |Δθ| between whole pieces"]["temporal distance"].paper is None
    wall = by_name["Targets behind a wall"]["random"]
    assert wall.value == 30
    assert wall.low is not None
    assert wall.high is not None
    assert 25 < wall.low < 30 < wall.high < 35
    assert pairs["random"][0].behind_wall
    assert pairs["random"][0].target[0].tolist() == [3, 0]
    with pytest.raises(DataError, match="damaged"):
        geometry_of({"rules": {"temporal": {}}})


def test_a_shares_interval_is_wilsons() -> None:
    """0 of 10: 0 to 1.96² / (10 + 1.96²) = 0.2775. 5 of 10 is even either side of a half: 0.5 ± 0.2634."""
    assert share_interval(0.0, 10) == pytest.approx((0.0, 0.27753), abs=1e-4)
    assert share_interval(0.5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-4)


def test_metrics_of_something_else_are_refused() -> None:
    with pytest.raises(DataError, match="no measurement"):
        metrics_of({"format": "astro-rl table"}, file="measure.json")
    with pytest.raises(DataError, match="damaged"):
        metrics_of({"format": "astro-rl measurement", "figures": [{}], "left_out": [], "data": {}})


def transitions_only(dataset: Dataset) -> Dataset:
    """What SynthER makes: trajectories of one transition, nothing recorded in them."""
    states = np.random.default_rng(0).uniform(0, 5, (400, 4)).astype(np.float32)
    made = from_arrays(
        states,
        np.zeros((400, 2), np.float32),
        offsets=np.arange(0, 401, 2),
        extras={name: np.full(400, -1, np.int32) for name in ("source_trajectory", "source_step")},
    )
    told = {"chains": Account().as_json(), "completions": Account(210, 200, 0, {"not finite": 10}).as_json()}
    settings = {"sampler": {"steps": 128, "churn": 80.0}}
    return replace(made, info={"lineage": {"method": "synther", "source_digest": "abc", **settings, **told}})


def test_a_rivals_data_tells_facts_rejections_and_lineage_without_chains() -> None:
    dataset = recorded()
    story = gather(None, dataset, transitions_only(dataset), xy=(0, 1), chosen=chosen())
    assert story.method == "SynthER"
    assert story.augmented is not None
    assert (story.augmented.generated_share, story.augmented.sources) == (1.0, 0.0)
    assert (story.chains, story.stitched) == ((), ())
    assert story.generated is not None
    assert (story.generated.total, len(story.generated.tracks)) == (200, 200)
    (account,) = story.accounts
    assert (account.title, account.proposed, account.kept) == ("Generated transitions", 210, 200)
    assert story.lineage["sampler"] == "steps 128, churn 80"
    assert "completions" not in story.lineage
    assert set(story.chosen) == set(chosen())


def test_cut_completions_are_kept_and_said() -> None:
    told = {"completions": Account(10, 8, 3, {"deviates": 2}).as_json()}
    (account,) = accounts_of(told)
    assert (account.kept, account.note[:14]) == (8, "3 of the kept ")
    assert accounts_of({"completions": {"proposed": 10, "kept": 7, "cut": 3}})[0].kept == 10


def test_long_settings_are_counted_and_not_shown() -> None:
    texts = lineage_texts({"seed": 4, "settings": {str(n): n for n in range(40)}, "shape": {"pieces": 2}})
    assert texts == {
        "seed": "4",
        "settings": "40 settings; they stand in the data's own lineage",
        "shape": "pieces 2",
    }


def test_a_film_without_a_renderer_or_a_state_map_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = recorded()
    humanoid = film_of(
        augmented_from(dataset), dataset, get_task("humanoidmaze-medium-stitch-singletask-task1-v0")
    )
    assert isinstance(humanoid, NoFilm)
    assert "heading" in humanoid.reason
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    none = film_of(*half_generated(), get_task("pointmaze-medium-stitch-task1"))
    assert isinstance(none, NoFilm)
    assert none.reason.startswith("No renderer works here. nonsense:")


def half_generated() -> tuple[Dataset, Dataset]:
    """Augmented and recorded: a point that moves along x, of which the first twelve states are generated."""
    x = np.linspace(0, 6, 24, dtype=np.float32)
    places = np.stack([x, np.zeros(24, np.float32)], axis=1)
    dataset = from_arrays(places, np.zeros((24, 2), np.float32), offsets=np.array([0, 24]))
    known, rows = np.arange(24) >= 12, np.arange(24)
    marks = {
        "source_trajectory": np.where(known, 0, -1).astype(np.int32),
        "source_step": np.where(known, rows, -1).astype(np.int32),
    }
    return replace(dataset, extras=marks), dataset


def test_a_film_shows_where_the_body_is() -> None:
    film = film_of(*half_generated(), get_task("pointmaze-medium-stitch-task1"), frames=3)
    if isinstance(film, NoFilm):
        pytest.skip(film.reason)
    assert film.states.tolist() == [0, 12, 23]
    assert film.generated.tolist() == [True, False, False]
    assert film.frames.shape == (3, 240, 320, 3)
    assert np.abs(film.frames[0].astype(int) - film.frames[2]).mean() > 1
    assert "50 % of them generated" in film.about
