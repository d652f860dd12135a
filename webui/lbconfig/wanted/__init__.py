"""What the kernel shall have, as data: the IPVS table, the network, settings."""
