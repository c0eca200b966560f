"""Chains: which fragments of real trajectories could follow one another, judged in temporal-distance space."""
