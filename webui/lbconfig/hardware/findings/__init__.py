"""What is wrong with a machine, one module for each kind of finding."""
