"""D4RL's ant in a maze as a MuJoCo model, written down from its measures.

A sphere with four legs, each a fixed stub, a hip link and an ankle link. Motors have D4RL's ±30 torque: there
as control limits behind a wrapper that scales actions from [−1, 1], here as gear 30 on controls in [−1, 1],
which is the same force.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from astro_rl.tasks.d4rl import MAZE_SCALE, Maze

TIMESTEP = 0.02
FRAME_SKIP = 5
TORQUE = 30.0
WALL_HEIGHT = 2.0


@dataclass(frozen=True)
class Leg:
    """One leg: which diagonal it points along, and how its ankle turns (in degrees)."""

    number: int
    toward: tuple[int, int]
    ankle_axis: tuple[int, int]
    ankle_range: tuple[int, int]


LEGS = (
    Leg(1, (1, 1), (-1, 1), (30, 70)),
    Leg(2, (-1, 1), (1, 1), (-70, -30)),
    Leg(3, (-1, -1), (-1, 1), (-70, -30)),
    Leg(4, (1, -1), (1, 1), (30, 70)),
)
MOTOR_ORDER = (4, 1, 2, 3)
"""Actions run hip, ankle for these legs in turn; observations run through legs 1 to 4."""


def maze_xml(maze: Maze) -> str:
    """The whole model: options, floor, walls, goal mark (without contacts), ant."""
    root = ET.Element("mujoco", model="d4rl antmaze")
    _add(root, "compiler", inertiafromgeom="true", angle="degree")
    _add(root, "option", timestep=str(TIMESTEP), integrator="RK4")
    defaults = _add(root, "default")
    _add(defaults, "joint", limited="true", armature="1", damping="1")
    _add(
        defaults,
        "geom",
        condim="3",
        conaffinity="0",
        margin="0.01",
        friction="1 0.5 0.5",
        solref="0.02 1",
        solimp="0.8 0.8 0.01",
        density="5",
        rgba="0.8 0.6 0.4 1",
    )
    world = _add(root, "worldbody")
    _add(world, "light", directional="true", pos="0 0 30", dir="0 0 -1", diffuse="0.9 0.9 0.9")
    _add(world, "geom", name="floor", type="plane", conaffinity="1", size="40 40 40", rgba="0.3 0.4 0.5 1")
    _add_ant(world)
    for row, column in maze.walls:
        x, y = maze.center((row, column))
        _add(
            world,
            "geom",
            name=f"block_{row}_{column}",
            type="box",
            contype="1",
            conaffinity="1",
            pos=f"{x} {y} {WALL_HEIGHT / 2}",
            size=f"{MAZE_SCALE / 2} {MAZE_SCALE / 2} {WALL_HEIGHT / 2}",
        )
    # A site compiled at its body's origin would stay there: MuJoCo then never looks at its position again.
    _add(world, "site", name="goal", type="cylinder", pos="0 0 0.05", size="0.5 0.05", rgba="0.9 0.2 0.2 1")
    motors = _add(root, "actuator")
    for number in MOTOR_ORDER:
        for part in ("hip", "ankle"):
            joint = f"{part}_{number}"
            _add(motors, "motor", joint=joint, gear=str(TORQUE), ctrllimited="true", ctrlrange="-1 1")
    return ET.tostring(root, encoding="unicode")


def _add_ant(world: ET.Element) -> None:
    torso = _add(world, "body", name="torso", pos="0 0 0.75")
    _add(torso, "geom", name="torso_geom", type="sphere", size="0.25")
    _add(torso, "joint", name="root", type="free", limited="false", margin="0.01", armature="0", damping="0")
    for leg in LEGS:
        stub = _add(torso, "body", name=f"leg_{leg.number}")
        _capsule(stub, leg, 0.2)
        hip = _add(stub, "body", name=f"aux_{leg.number}", pos=_along(leg, 0.2))
        _hinge(hip, f"hip_{leg.number}", "0 0 1", (-30, 30))
        _capsule(hip, leg, 0.2)
        ankle = _add(hip, "body", name=f"foot_{leg.number}", pos=_along(leg, 0.2))
        _hinge(ankle, f"ankle_{leg.number}", f"{leg.ankle_axis[0]} {leg.ankle_axis[1]} 0", leg.ankle_range)
        _capsule(ankle, leg, 0.4)


def _along(leg: Leg, length: float) -> str:
    return f"{leg.toward[0] * length} {leg.toward[1] * length} 0"


def _capsule(body: ET.Element, leg: Leg, length: float) -> None:
    _add(body, "geom", type="capsule", size="0.08", fromto=f"0 0 0 {_along(leg, length)}")


def _hinge(body: ET.Element, name: str, axis: str, limits: tuple[int, int]) -> None:
    _add(body, "joint", name=name, type="hinge", axis=axis, range=f"{limits[0]} {limits[1]}")


def _add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)
