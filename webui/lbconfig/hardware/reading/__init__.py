"""From the texts of the kernel and ethtool to facts."""
