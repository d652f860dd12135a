"""An apply from the request to its end: review, steps, the time to confirm, repair of what differs."""
