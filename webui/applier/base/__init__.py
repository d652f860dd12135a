"""What all the rest stands on: where things are, and how they are written so that a power cut loses nothing."""
