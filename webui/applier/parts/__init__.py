"""The parts of the kernel and of the box that a configuration sets, one module each."""
