"""How good are the models and the data they make: against true shortest paths, and against the simulator.

Nothing is imported here: the simulator's worker processes import this package, and must not pay for JAX.
"""
