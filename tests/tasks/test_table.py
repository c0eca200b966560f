"""The table against the paper, the catalogue and its own rules."""

import pytest

from astro_rl.errors import AstroError
from astro_rl.tasks import SUITE_AVERAGES, Task, all_tasks, get_task, paper_tasks, tasks_of_dataset


def published(task: Task, learner: str, method: str) -> float:
    return next(p.score for p in task.published if (p.learner, p.method) == (learner, method))


def test_every_horizon_is_five_segments_with_their_masks() -> None:
    for task in all_tasks():
        assert task.horizon == 5 * (task.segment + task.mask)
        assert task.segment == task.mask


def test_the_papers_hyperparameters() -> None:
    """Appendix B, both tables: L, IQL α, FQL α, discount."""
    paper = {
        "antmaze-large-stitch": (180, 10, 10, 0.99),
        "antmaze-giant-stitch": (180, 10, 10, 0.995),
        "humanoidmaze-medium-stitch": (340, 10, 30, 0.995),
        "humanoidmaze-large-stitch": (340, 10, 30, 0.995),
        "antsoccer-arena-stitch": (180, 1, 10, 0.995),
        "scene-play": (180, 10, 100, 0.99),
        "cube-single-play": (180, 1, 300, 0.99),
        "cube-double-play": (180, 0.3, 100, 0.99),
    }
    for name, (horizon, iql_alpha, fql_alpha, discount) in paper.items():
        task = get_task(name)
        assert (task.horizon, task.iql_alpha, task.fql_alpha, task.discount) == (
            *(horizon, iql_alpha, fql_alpha),
            discount,
        )
        assert not task.chosen_by_us
    for size, fql_alpha in (("umaze", 10), ("umaze-diverse", 10), ("medium-play", 10), ("large-diverse", 3)):
        task = get_task(f"antmaze-{size}-v2")
        assert (task.horizon, task.fql_alpha, task.discount) == (180, fql_alpha, 0.99)
        assert task.chosen_by_us == ("iql_alpha",)


def test_the_papers_tasks_and_scores() -> None:
    tasks = paper_tasks()
    assert [task.suite for task in tasks] == ["ogbench"] * 8 + ["d4rl"] * 6
    assert [task.goal for task in tasks] == [1, 1, 1, 1, 4, 2, 2, 2] + [1] * 6
    ogbench = [task for task in tasks if task.published]
    assert len(ogbench) == 8
    # Two of the paper's averages follow from its cells: +9.68 over both learners, and table 2's.
    for method, mean in (("original", 29.59), ("astro", 39.28)):
        scores = [published(task, learner, method) for task in ogbench for learner in ("iql", "fql")]
        assert sum(scores) / 16 == pytest.approx(mean, abs=0.006)
    ablated = [task for task in tasks if task.ablation]
    means = (18.60, 36.75, 24.55, 25.85, 31.80, 22.20)
    for column, mean in enumerate(means):
        assert sum(task.ablation[column].score for task in ablated) / 4 == pytest.approx(mean, abs=0.006)


def test_printed_averages_are_the_means_of_the_cells() -> None:
    ogbench = [task for task in paper_tasks() if task.published]
    for group, members in (("maze", ogbench[:5]), ("manipulation", ogbench[5:])):
        for printed in SUITE_AVERAGES[group]:
            cells = [published(task, printed.learner, printed.method) for task in members]
            assert sum(cells) / len(cells) == pytest.approx(printed.score, abs=0.07)
    for k, printed in enumerate(SUITE_AVERAGES["total"]):
        groups = [SUITE_AVERAGES[group][k].score for group in ("maze", "manipulation", "d4rl")]
        assert sum(groups) / 3 == pytest.approx(printed.score, abs=0.07)


@pytest.mark.parametrize(
    ("name", "goal", "dataset"),
    [
        ("antmaze-large-stitch-singletask-task3-v0", 3, "antmaze-large-stitch-v0"),
        ("antmaze-large-stitch-singletask-v0", 1, "antmaze-large-stitch-v0"),
        ("antsoccer-arena-stitch", 4, "antsoccer-arena-stitch-v0"),
        ("cube-double-play-task5", 5, "cube-double-play-v0"),
        ("antmaze-umaze-diverse-v2", 1, "antmaze-umaze-diverse-v2"),
        ("antmaze-medium-explore-task2", 2, "antmaze-medium-explore-v0"),
    ],
)
def test_tasks_are_found_by_all_their_names(name: str, goal: int, dataset: str) -> None:
    task = get_task(name)
    assert (task.goal, task.dataset) == (goal, dataset)
    assert get_task(task.name) == task
    assert task in tasks_of_dataset(dataset)


def test_names_are_unique_and_lead_back() -> None:
    names = [task.name for task in all_tasks()]
    assert len(set(names)) == len(names) == 12 * 5 + 6
    assert all(get_task(task.name) == task for task in all_tasks())
    assert {len(tasks_of_dataset(task.dataset)) for task in all_tasks()} == {5, 1}
    assert tasks_of_dataset("my-robot-v0") == ()
    assert tasks_of_dataset("antmaze-large-stitch-v0-val") == tasks_of_dataset("antmaze-large-stitch-v0")


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(AstroError, match="antmaze-large-stitch"):
        get_task("antmaze-lrge-stitch")
    with pytest.raises(AstroError, match="a goal from 1 to 5"):
        get_task("antmaze-large-stitch-task6")
    for nonsense in ("", "hopper", "antmaze-large-stitch-singletask-taskx-v0"):
        with pytest.raises(AstroError, match="No task is called"):
            get_task(nonsense)


def test_other_data_of_a_known_environment_has_no_published_scores() -> None:
    task = get_task("antmaze-large-navigate")
    assert task.env_id == get_task("antmaze-large-stitch").env_id
    assert not task.published and not task.ablation and "horizon" in task.chosen_by_us


def test_what_fqls_authors_do_differently_is_recorded() -> None:
    assert get_task("antmaze-giant-stitch").fql_settings == {"q_aggregation": "min"}
    assert get_task("humanoidmaze-large-stitch").fql_settings == {}
    assert get_task("cube-double-play").fql_authors_alpha == 300
    assert get_task("antmaze-large-play-v2").fql_authors_steps == 500_000
