"""Whether a configuration makes sense, one module for each part; problems name object and field."""
