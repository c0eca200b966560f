"""The stitch planner: actions that join known pieces, proposed, tried in the dynamics model and corrected."""
