"""SynthER (Lu et al. 2023): diffusion over single transitions (`docs/method/synther.md`)."""
