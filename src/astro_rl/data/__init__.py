"""Datasets: one schema, builders from arrays, a store larger than memory, and other formats at the edge."""

from astro_rl.data.build import from_arrays, from_trajectories
from astro_rl.data.checks import check_dataset
from astro_rl.data.formats.plain import from_dict
from astro_rl.data.registry import FORMATS, Format, convert, load, save
from astro_rl.data.schema import Dataset, Trajectory
from astro_rl.data.store import open_store, verify_store, write_store
from astro_rl.data.store_writer import StoreWriter
from astro_rl.data.transitions import from_transitions

__all__ = [
    "FORMATS",
    "Dataset",
    "Format",
    "StoreWriter",
    "Trajectory",
    "check_dataset",
    "convert",
    "from_arrays",
    "from_dict",
    "from_trajectories",
    "from_transitions",
    "load",
    "open_store",
    "save",
    "verify_store",
    "write_store",
]
