"""The update of both boxes of a pair as one act: the new version goes to both, and one after the other restarts."""
