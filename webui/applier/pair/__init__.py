"""Two boxes that are one director: who holds the floating addresses, and how others talk with that process."""
