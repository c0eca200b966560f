"""DiffStitch (Li et al., ICML 2024), a rival: stitches from low to high returns, states first, actions by inverse
dynamics."""
