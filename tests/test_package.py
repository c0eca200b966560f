"""The package's front door."""

import subprocess
import sys

import astro_rl


def test_every_public_name_is_there() -> None:
    for name in astro_rl.__all__:
        assert getattr(astro_rl, name) is not None


def test_importing_the_package_loads_no_numerics() -> None:
    code = "import sys, astro_rl; print(*(m for m in ('jax', 'numpy', 'h5py', 'rich') if m in sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == []


def test_asking_for_help_loads_no_numerics() -> None:
    """`--help` has to answer at once: JAX alone takes more than a second."""
    code = (
        "import sys\nfrom astro_rl.cli.main import parse\n"
        "try:\n    parse(['train', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert 'jax' not in sys.modules, 'jax was loaded'\nassert 'ogbench' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
