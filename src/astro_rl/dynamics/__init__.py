"""The dynamics model: whole state sequences from a first state and actions, by diffusion."""
