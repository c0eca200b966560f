"""`astro-rl doctor`: what is installed, what works, what is missing, and the line that mends it."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from astro_rl.errors import AstroError
from astro_rl.run.fingerprint import PACKAGES, cpu_model, package_commit, package_version, usable_cores

PACKAGE = "astro-rl"
PROBE_ENVIRONMENT = "pointmaze-medium-v0"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?\s*([^;]*)(?:;(.*))?")


def collect_report() -> dict[str, Any]:
    """Everything the command prints, in JSON's terms. Building an environment and compiling take some
    seconds.
    """
    extras = missing_extras()
    checks = [
        check("a compiled function runs", _compile_and_run),
        check(f"an environment builds and steps ({PROBE_ENVIRONMENT})", _build_and_step),
    ]
    devices = _devices()
    return {
        "astro_rl": package_version(PACKAGE),
        "commit": package_commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_gib": _memory_gib(),
        "packages": {name: package_version(name) for name in PACKAGES},
        "devices": devices,
        "gl": gl_backend(),
        "extras": extras,
        "checks": checks,
        "problems": problems_of(checks, devices),
    }


def render(report: dict[str, Any]) -> str:
    """The report for people."""
    commit = report["commit"]
    version = report["astro_rl"] or "not installed"
    if commit is not None:
        version += f" at {commit['hash'][:12]}{' with changes' if commit['modified'] else ''}"
    gl = report["gl"]
    drawing = (
        f"MUJOCO_GL={gl['MUJOCO_GL'] or '(not set)'}; here: {', '.join(gl['libraries']) or 'no GL library'}"
    )
    memory = "unknown" if report["memory_gib"] is None else f"{report['memory_gib']:.1f} GiB"
    rows = [
        ("astro-rl", version),
        ("python", f"{report['python']} on {report['system']}"),
        ("processor", f"{report['cpu']}, {report['cores']} cores for this process, {memory} of memory"),
        ("devices", ", ".join(report["devices"]) or "none"),
        ("pictures", drawing),
        *((name, version or "not installed") for name, version in report["packages"].items()),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    lines.append("")
    for item in report["checks"]:
        told = f"{item['seconds']:.1f} s" if item["ok"] else item["found"]
        lines.append(f"{'ok    ' if item['ok'] else 'FAILED'}  {item['name']}: {told}")
    lines.append("")
    for name, extra in report["extras"].items():
        if extra["missing"]:
            lines.append(f"extra {name}: without {', '.join(extra['missing'])}.  {extra['fix']}")
        else:
            lines.append(f"extra {name}: complete")
    lines.append("")
    lines.extend(f"problem: {problem['what']}\n  fix: {problem['fix']}" for problem in report["problems"])
    lines.append("No problems found." if not report["problems"] else f"{len(report['problems'])} to mend.")
    return "\n".join(lines)


def check(name: str, attempt: Callable[[], None]) -> dict[str, Any]:
    """Try something; a failure is a finding, never a traceback."""
    start = time.perf_counter()
    found, fix = None, None
    try:
        attempt()
    except Exception as error:
        found = error.what if isinstance(error, AstroError) else f"{type(error).__name__}: {error}"
        fix = error.fix if isinstance(error, AstroError) else None
    return {
        "name": name,
        "ok": found is None,
        "seconds": round(time.perf_counter() - start, 3),
        "found": found,
        "fix": fix,
    }


def problems_of(checks: list[dict[str, Any]], devices: list[str]) -> list[dict[str, str]]:
    """What keeps this machine from doing what it could."""
    problems = [
        {
            "what": f"{item['name']}: {item['found']}",
            "fix": item["fix"] or f"pip install --upgrade '{PACKAGE}[ogbench]'",
        }
        for item in checks
        if not item["ok"]
    ]
    if nvidia_present() and not any(
        "gpu" in device.lower() or "cuda" in device.lower() for device in devices
    ):
        problems.append(
            {
                "what": "there is an NVIDIA GPU, and JAX does not use it",
                "fix": f"pip install '{PACKAGE}[cuda]'",
            }
        )
    return problems


def missing_extras() -> dict[str, dict[str, Any]]:
    """For each extra of this package, what is not there (or too old), and the line that installs it."""
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for extra in distribution.metadata.get_all("Provides-Extra") or []:
        missing = sorted(set(_missing(PACKAGE, extra)))
        found[extra] = {"missing": missing, "fix": f"pip install '{PACKAGE}[{extra}]'" if missing else None}
    return found


def gl_backend() -> dict[str, Any]:
    """What could draw here. Training and evaluation never draw, so that none of it is needed for them."""
    libraries = [name for name in ("EGL", "OSMesa", "GL") if ctypes.util.find_library(name)]
    return {
        "MUJOCO_GL": os.environ.get("MUJOCO_GL"),
        "libraries": libraries,
        "display": "DISPLAY" in os.environ,
    }


def nvidia_present() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _missing(package: str, extra: str) -> Iterator[str]:
    """Requirements of `package[extra]` that are not met; extras of requirements are followed."""
    for line in metadata.requires(package) or []:
        match = REQUIREMENT.match(line)
        if match is None:
            continue
        name, inner, bounds, marker = match.groups()
        if re.search(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""", marker or "") is None:
            continue
        version = package_version(name)
        if version is None:
            yield name
            continue
        lower = re.search(r">=\s*([0-9.]+)", bounds or "")
        if lower and _numbers(version) < _numbers(lower.group(1)):
            yield f"{name}>={lower.group(1)} (here: {version})"
        for part in (inner or "").split(","):
            if part.strip():
                yield from _missing(name, part.strip())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def _devices() -> list[str]:
    try:
        import jax

        return [f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()]
    except Exception:  # a broken driver or a jaxlib that does not fit; the check that compiles says which
        return []


def _memory_gib() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return None


def _compile_and_run() -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    matrix = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
    product = jax.jit(lambda x: jnp.tanh(x @ x.T))(matrix)
    if not np.allclose(np.asarray(product), np.tanh(matrix @ matrix.T), atol=2e-2):
        raise AstroError(
            "The device computes another product than NumPy does.", fix="update its driver and jaxlib"
        )


def _build_and_step() -> None:
    from astro_rl.envs.build import make_env
    from astro_rl.envs.seeding import reset_seeded

    environment = make_env(PROBE_ENVIRONMENT)
    try:
        reset_seeded(environment, 0)
        for _ in range(10):
            environment.step(environment.action_space.sample())
    finally:
        environment.close()
