"""Temporal distances: how many steps the best policy would need between two states, learned from data alone."""
