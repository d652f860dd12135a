"""Two boxes become a pair: a code that one shows and somebody types into the other (decision 94)."""
