"""Updates: bundles, slots, and whether a new version is good."""
