"""What the kernel should have, as data: the IPVS table, the network, settings."""
