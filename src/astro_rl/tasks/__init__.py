"""The one table that knows what an environment is: goals, rewards of observations, horizons, learners'
settings.

Nothing here imports an environment, so all of it works on a machine that has none.
"""

from astro_rl.tasks.d4rl import normalised_score, with_labelled_goal
from astro_rl.tasks.lookup import all_tasks, get_task, paper_tasks, tasks_of_dataset
from astro_rl.tasks.published import SUITE_AVERAGES
from astro_rl.tasks.relabel import Successes, relabel, successes
from astro_rl.tasks.states import NoState, StateMap
from astro_rl.tasks.task import AblationScore, PublishedScore, Rewards, Task
from astro_rl.tasks.valid import project, state_of

__all__ = [
    "SUITE_AVERAGES",
    "AblationScore",
    "NoState",
    "PublishedScore",
    "Rewards",
    "StateMap",
    "Successes",
    "Task",
    "all_tasks",
    "get_task",
    "normalised_score",
    "paper_tasks",
    "project",
    "relabel",
    "state_of",
    "successes",
    "tasks_of_dataset",
    "with_labelled_goal",
]
