"""Making OGBench's datasets locally, by simulation."""

from astro_rl.collect.make import make_dataset

__all__ = ["make_dataset"]
