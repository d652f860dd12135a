"""The two boxes of a pair: the link between them, and what one tells the other of its connections."""
