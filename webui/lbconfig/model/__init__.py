"""The configuration as typed data, and how it is read, written, named and kept."""
