"""Environments by name: OGBench's and D4RL's, built quietly and without a window."""

from __future__ import annotations

import copy
import difflib
import re
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astro_rl.errors import MissingDependency, UnavailableError

if TYPE_CHECKING:
    import gymnasium

_D4RL_ANTMAZE = re.compile(r"antmaze-(umaze(-diverse)?|(medium|large)-(play|diverse))-v[012]")


def is_d4rl(env_id: str) -> bool:
    return _D4RL_ANTMAZE.fullmatch(env_id) is not None


def make_env(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """Builds an environment; `kwargs` go to it. It is not reset: see :mod:`astro_rl.envs.seeding`.

    Building takes up to five seconds for OGBench's manipulation environments, so build once and keep.
    """
    if is_d4rl(env_id):
        from astro_rl.envs.d4rl_antmaze import make

        return make(env_id, **kwargs)
    # What is silenced, nobody can act on: glfw misses a display that is not needed, and gymnasium dislikes
    # that OGBench's action bounds are float64.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gymnasium = _gymnasium_with_ogbench(env_id)
        if env_id not in gymnasium.registry:
            raise _unknown(env_id, list(gymnasium.registry))
        env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
        _remove_temporary_model(env)
        if hasattr(env.unwrapped, "_mjcf_model"):
            _settle_manipulation(env)
    return env


def _gymnasium_with_ogbench(env_id: str) -> Any:
    try:
        import gymnasium
        import ogbench  # noqa: F401 registers its environments
    except ModuleNotFoundError as error:
        package = (error.name or "ogbench").partition(".")[0]
        raise MissingDependency(package, "ogbench", f"The environment {env_id!r}") from error
    return gymnasium


def _unknown(env_id: str, registered: list[str]) -> UnavailableError:
    near = difflib.get_close_matches(env_id, registered, n=3)
    return UnavailableError(
        f"No environment is called {env_id!r}.",
        expected=f"an id such as {', '.join(near)}" if near else "an id that OGBench or D4RL registers",
        fix="environment ids name no dataset type: antmaze-medium-stitch-v0 is data of antmaze-medium-v0",
    )


def _remove_temporary_model(env: gymnasium.Env) -> None:
    """OGBench's mazes leave their model in the temporary folder, one file an environment."""
    written = getattr(env.unwrapped, "fullpath", None)
    if isinstance(written, str) and Path(written).parent == Path(tempfile.gettempdir()):
        Path(written).unlink(missing_ok=True)


def _settle_manipulation(env: gymnasium.Env) -> None:
    """Removes what makes an episode of the manipulation environments depend on earlier ones, or on chance.

    - The action space is a new, unseeded one each time it is asked for. The random steps before a goal
      observation draw from it, and what they leave in the solver reaches the episode's first steps.
    - The last target is remembered across resets, for each kind of target, in attributes and in the places of
      marker sites. OGBench's closed-loop controllers read it once before they learn of a new one.
    """
    from astro_rl.envs.seeding import reset_seeded

    base: Any = env.unwrapped
    targets = copy.deepcopy(
        {name: value for name, value in vars(base).items() if name.startswith("_target_")}
    )
    # The model is compiled by a reset; a seeded one leaves the caller's generator alone.
    reset_seeded(env, seed=0)
    sites = base.model.site_pos.copy()
    parent = type(base)

    class SettledEnv(parent):
        action_space = base.action_space
        observation_space = base.observation_space

        def reset(self, *args: Any, **kwargs: Any) -> Any:
            self.__dict__.update(copy.deepcopy(targets))
            self.model.site_pos[:] = sites
            return super().reset(*args, **kwargs)

    SettledEnv.__name__, SettledEnv.__qualname__ = parent.__name__, parent.__qualname__
    base.__class__ = SettledEnv
