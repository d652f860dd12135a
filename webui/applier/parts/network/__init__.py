"""Links, addresses, routes and rules: what there is, what is to be done, doing it."""
