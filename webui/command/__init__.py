"""The `fairlead` command: what the API does, for scripts and people on the box itself. Standard library only."""
