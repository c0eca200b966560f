"""The bodies that tasks are about: how their observations are laid out, and how a state follows from one.

Joint limits are soft in MuJoCo, and a reset may start outside of them. Each bound below is the joint's range,
widened to what resets draw and by a slack larger than any overshoot seen in thousands of steps of full-force
random actions (the ant 0.13 rad, the humanoid 0.69 rad), so that no real row is touched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from astro_rl.tasks.layout import Bound, Layout, OneHot, angle, quaternion, upward
from astro_rl.tasks.states import NoState, StateMap


@dataclass(frozen=True)
class Body:
    """What all tasks of one robot share."""

    observation_dim: int
    action_dim: int
    layout: Layout
    state: StateMap | NoState
    xy_indices: tuple[int, int] | None = None


def _hinges(
    first: int, degrees: tuple[tuple[int, int], ...], slack: float, reset: float | None
) -> tuple[Bound, ...]:
    """Bounds of consecutive hinge joints. `reset`: resets put every joint within ± this of zero."""
    bounds = []
    for index, (low, high) in enumerate(degrees, start=first):
        limits = [math.radians(low), math.radians(high), *([] if reset is None else [-reset, reset])]
        bounds.append(Bound(index, min(limits) - slack, max(limits) + slack))
    return tuple(bounds)


_HIP, _ANKLE_UP, _ANKLE_DOWN = (-30, 30), (30, 70), (-70, -30)
_ANT_JOINTS = (_HIP, _ANKLE_UP, _HIP, _ANKLE_DOWN, _HIP, _ANKLE_DOWN, _HIP, _ANKLE_UP)
_ANT_BOUNDS = _hinges(7, _ANT_JOINTS, slack=0.25, reset=0.1)

_RIGHT_LEG = ((-25, 5), (-60, 35), (-110, 20), (-160, 2), (-50, 50), (-50, 50))
_LEFT_LEG = ((-25, 5), (-60, 35), (-120, 20), (-160, 2), (-50, 50), (-50, 50))
_HUMANOID_JOINTS = (
    *((-45, 45), (-75, 30), (-35, 35)),
    *_RIGHT_LEG,
    *_LEFT_LEG,
    *((-85, 60), (-85, 60), (-90, 50)),
    *((-60, 85), (-60, 85), (-90, 50)),
)

POINT = Body(
    observation_dim=2,
    action_dim=2,
    layout=Layout(2),
    state=StateMap(n_qpos=2, n_qvel=2, velocities_observed=False),
    xy_indices=(0, 1),
)

ANT = Body(
    observation_dim=29,
    action_dim=8,
    layout=Layout(29, unit_vectors=(quaternion(3),), bounds=_ANT_BOUNDS),
    state=StateMap(n_qpos=15, n_qvel=14),
    xy_indices=(0, 1),
)

ANT_AND_BALL = Body(
    observation_dim=42,
    action_dim=8,
    layout=Layout(42, unit_vectors=(quaternion(3), quaternion(18)), bounds=_ANT_BOUNDS),
    state=StateMap(n_qpos=22, n_qvel=20),
    xy_indices=(0, 1),
)
BALL_XY = (15, 16)

HUMANOID = Body(
    observation_dim=69,
    action_dim=21,
    # x-y, 21 joints, head height, 12 limb coordinates, the vertical, the centre of mass's velocity, 27
    # velocities
    layout=Layout(69, unit_vectors=(upward(36),), bounds=_hinges(2, _HUMANOID_JOINTS, slack=1.0, reset=None)),
    state=NoState(
        "the observation leaves out the heading, on which nothing depends but the difference between two "
        "velocities that vanishes at rest"
    ),
    xy_indices=(0, 1),
)

# Manipulation: 6 arm joints, their velocities, effector x-y-z (scaled), cosine and sine of its yaw, gripper
# opening (scaled), gripper contact; then for each cube x-y-z (scaled), quaternion, cosine and sine of its
# yaw.
XYZ_CENTER, XYZ_SCALE = (0.425, 0.0, 0.0), 10.0
GRIPPER_SCALE, BUTTON_SCALE, DRAWER_SCALE, WINDOW_SCALE = 3.0, 120.0, 18.0, 15.0
CUBES_START, CUBE_SIZE = 19, 9
BUTTONS_START, BUTTON_SIZE, BUTTON_STATES = 28, 4, 2
DRAWER_INDEX, WINDOW_INDEX = 36, 38

_TURNS = (2 * math.pi, 2 * math.pi, math.pi, 2 * math.pi, 2 * math.pi, 2 * math.pi)
_ARM_BOUNDS = tuple(Bound(index, -limit - 0.05, limit + 0.05) for index, limit in enumerate(_TURNS))
_GRIPPER_BOUNDS = (Bound(17, 0.0, GRIPPER_SCALE), Bound(18, 0.0, 1.0))
_ARM_STATE = NoState(
    "the observation leaves out the gripper's linkage, the cubes' velocities and the controller's set points"
)


def _cubes(count: int) -> Layout:
    starts = [CUBES_START + CUBE_SIZE * number for number in range(count)]
    poses = [part for start in starts for part in (quaternion(start + 3), angle(start + 7))]
    size = CUBES_START + CUBE_SIZE * count
    return Layout(size, unit_vectors=(angle(15), *poses), bounds=(*_ARM_BOUNDS, *_GRIPPER_BOUNDS))


def _scene() -> Layout:
    cube = _cubes(1)
    buttons = [BUTTONS_START + BUTTON_SIZE * number for number in range(2)]
    return Layout(
        size=40,
        unit_vectors=cube.unit_vectors,
        one_hot=tuple(OneHot(start, start + BUTTON_STATES) for start in buttons),
        bounds=(
            *cube.bounds,
            # Ranges: drawer −0.16 to 0, window 0 to 0.2. The arm pushes neither more than 3 mm past its end.
            # Buttons (−0.024 to 0) fly out by 15 cm when they are let go, so they are left free.
            Bound(DRAWER_INDEX, -0.17 * DRAWER_SCALE, 0.01 * DRAWER_SCALE),
            Bound(WINDOW_INDEX, -0.01 * WINDOW_SCALE, 0.21 * WINDOW_SCALE),
        ),
    )


ONE_CUBE = Body(observation_dim=28, action_dim=5, layout=_cubes(1), state=_ARM_STATE)
TWO_CUBES = Body(observation_dim=37, action_dim=5, layout=_cubes(2), state=_ARM_STATE)
SCENE = Body(observation_dim=40, action_dim=5, layout=_scene(), state=_ARM_STATE)
