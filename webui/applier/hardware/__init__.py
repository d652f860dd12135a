"""The machine: looking at it, and setting it as the plan says."""
