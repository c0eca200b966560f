"""Shapes and types of every public function are checked in tests, and nowhere else."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxtyping import install_import_hook

# Stays open for the whole session: modules are imported lazily, from many tests.
_hook = install_import_hook("astro_rl", "beartype.beartype")
_hook.__enter__()

# After the hook, which has to see the package's modules first.
from tests.fitted import fitted  # noqa: E402, F401
