"""States between known states, by diffusion without actions, and the actions that lead from state to state."""
