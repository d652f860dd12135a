"""Disks: which there are, how ours are laid out, what the boot loader is told, the installation."""
