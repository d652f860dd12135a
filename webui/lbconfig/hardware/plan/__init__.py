"""How a machine is best set."""
