"""The console of the box: what its terminals show, and the few things that can be done there."""
