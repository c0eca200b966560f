"""DiffStitch in files: a fit or an augmentation that is killed goes on to the same bytes; what cannot be is refused."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from astro_rl import load
from astro_rl.augmenters.base import Augmenter, FittedAugmenter
from astro_rl.augmenters.diffstitch.method import FittedDiffStitch
from astro_rl.augmenters.registry import METHODS, augmenter_for
from astro_rl.data import from_arrays
from astro_rl.data.schema import Dataset
from astro_rl.errors import ConfigError, DataError
from astro_rl.run.methods import augment_method, fit_method, load_method
from tests.augmenters.diffstitch.conftest import Stitched, augmenter
from tests.fitted import walks


def cut(length: int, count: int = 8) -> Dataset:
    """The first `count` walks, each of so many states."""
    whole = walks()
    rows = (whole.offsets[:count, None] + np.arange(length)).ravel()
    return from_arrays(whole.observations[rows], whole.actions[rows], offsets=np.arange(count + 1) * length)


def test_a_fit_goes_on_from_what_a_kill_leaves(stitched: Stitched) -> None:
    expected = {
        path.relative_to(stitched.folder): path.read_bytes()
        for path in stitched.folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "environment.json")
    }
    assert {name.name for name in expected} >= {
        "models.json",
        *(f"{model}.safetensors" for model in ("states", "inverse", "onestep")),
        *(f"{stage}.jsonl" for stage in ("states", "inverse", "onestep")),
    }
    for moment in stitched.moments:
        assert not (moment / "models").exists()
        fit_method(stitched.dataset, augmenter(), out=moment)
        for name, content in expected.items():
            assert (moment / name).read_bytes() == content, f"{moment.name}: {name}"
        assert not (moment / "checkpoints").exists()


def test_a_saved_fit_proposes_the_same(stitched: Stitched) -> None:
    read = load_method(stitched.folder, stitched.dataset)
    assert isinstance(read, FittedDiffStitch) and isinstance(read, FittedAugmenter)
    assert read.digest() == stitched.fitted.digest()
    assert read.lineage() == stitched.fitted.lineage()
    one, other = (
        fitted.propose(stitched.dataset, task=None, seed=3).batch(0).dataset
        for fitted in (read, stitched.fitted)
    )
    assert one is not None and other is not None and one.digest() == other.digest()
    with pytest.raises(DataError, match="another dataset"):
        load_method(stitched.folder, walks(1))


class Killed(BaseException):
    pass


def test_an_augmentation_goes_on_after_a_kill(stitched: Stitched, tmp_path: Path) -> None:
    fitted, dataset, wanted = stitched.fitted, stitched.dataset, 600
    made = augment_method(fitted, dataset, wanted)
    assert made.n_transitions >= wanted

    @contextmanager
    def killing(described: str, total: int, unit: str) -> Iterator[Callable[[int, int], None]]:
        def report(now: int, total: int) -> None:
            raise Killed

        yield report

    out = tmp_path / "augmented.npz"
    with pytest.raises(Killed):
        augment_method(fitted, dataset, wanted, out=out, bar=killing)
    assert not out.exists() and (tmp_path / "augmented.npz.parts" / "round0-00000.astro").exists()
    augment_method(fitted, dataset, wanted, out=out)
    read = load(out)
    assert read.digest() == made.digest()
    told = read.info["lineage"]
    assert told["method"] == "diffstitch" and told["source_digest"] == fitted.source_digest
    assert told["chains"]["proposed"] > 0 and told["generate"]["piece"] == 4
    assert set(told["columns"]) <= set(read.extras)
    assert [path.name for path in tmp_path.iterdir()] == ["augmented.npz"]


def test_where_nothing_passes_an_error_says_what_to_change(stitched: Stitched) -> None:
    strict = augmenter(**{"generate.threshold": 1.0, "generate.give_up_after": 2})
    fitted = dataclasses.replace(stitched.fitted, settings=strict.settings)
    with pytest.raises(DataError, match=r"(?s)no target is near.*similarity_quantile"):
        augment_method(fitted, stitched.dataset, 10)


def test_data_without_room_is_refused_before_anything_is_learned() -> None:
    with pytest.raises(DataError, match=r"(?s)horizon.*12 states; the longest trajectory has 11.*shorten"):
        augmenter().fit(cut(11))
    with pytest.raises(DataError, match=r"(?s)1 trajectories that hold a piece.*2 or more"):
        augmenter().fit(cut(20, count=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"longest": 24}, r"(?s)longest.*24.*< 24"),
        ({"shortest": 1}, r"2 <= shortest <= longest"),
        ({"horizon": 25}, r"(?s)states\.net\.patch.*25 states in patches of 2"),
        ({"onestep.steps": 0}, r"(?s)onestep\.steps.*>= 1"),
        ({"generate.threshold": 1.5}, r"(?s)cosine.*threshold.*1\.5"),
        ({"generate.similarity": "euclidean", "generate.threshold": 0.5}, r"(?s)euclidean.*threshold"),
        ({"generate.target_share": 0.0}, r"(?s)target_share"),
        ({"generate.piece": 1}, r"(?s)piece.*>= 2"),
        ({"generate.discount": 1.0}, r"(?s)discount"),
        ({"generate.similar": "cosine"}, r"(?s)no setting 'generate\.similar'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        augmenter_for("diffstitch", "tiny", settings)


def test_every_preset_makes_an_augmenter_that_its_own_json_makes_again() -> None:
    method = METHODS["diffstitch"]
    for preset in method.presets:
        made = augmenter_for("diffstitch", preset)
        assert isinstance(made, Augmenter) and made.method == "diffstitch"
        assert method.settings.from_json(made.as_json()) == made.settings  # type: ignore[attr-defined]
