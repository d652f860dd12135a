"""How others talk with root's daemon: shapes of answers, errors, both ends of the socket."""
