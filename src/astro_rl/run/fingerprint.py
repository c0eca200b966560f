"""What a run ran on: versions, processor, devices. No host names and no paths, so that it can be published as
it is.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "orbax-checkpoint",
    "numpy",
    "gymnasium",
    "ogbench",
    "mujoco",
    "gymnasium-robotics",
    "minari",
)
"""Those whose version can change a result."""


def fingerprint() -> dict[str, Any]:
    """Everything that `environment.json` holds."""
    import jax

    devices = jax.devices()
    settings: Any = jax.config
    return {
        "astro_rl": package_version("astro-rl"),
        "commit": package_commit(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: package_version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "devices": [
            {"platform": kind[0], "kind": kind[1], "count": sum(_kind(device) == kind for device in devices)}
            for kind in dict.fromkeys(_kind(device) for device in devices)
        ],
        "jax_enable_x64": settings.jax_enable_x64,
        "jax_default_matmul_precision": settings.jax_default_matmul_precision,
    }


def package_version(name: str) -> str | None:
    """An installed distribution's version, without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def package_commit(package: Path | None = None) -> dict[str, Any] | None:
    """The commit of this package's own checkout; None for an installed copy, even one inside another
    repository.
    """
    package = (package or Path(__file__).parents[1]).resolve()
    top = _git(package, "rev-parse", "--show-toplevel")
    if top is None or (Path(top) / "src" / package.name).resolve() != package:
        return None
    commit = _git(package, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"hash": commit, "modified": bool(_git(package, "status", "--porcelain", "--", str(package)))}


def cpu_model() -> str:
    """The processor's own name for itself, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What has changed between two fingerprints, in words."""
    before, after = flatten(then), flatten(now)
    return [
        f"{key}: {before.get(key)} before, {after.get(key)} now"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as one with dotted names. Lists are values."""
    flat: dict[str, Any] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict) and item:
            flat.update(flatten(item, f"{name}."))
        else:
            flat[name] = item
    return flat


def _kind(device: Any) -> tuple[str, str]:
    return device.platform, device.device_kind


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
