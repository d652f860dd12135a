"""The doors to the system: commands, files, IPVS by netlink."""
