"""Users and tokens of both boxes of a pair: what was changed on either counts on both. Pure.

What a ledger has retired stays retired (docs/decisions/0042), so two of them can be brought together without knowing
when they parted: who is on one side alone is new, unless the other side has retired him.
"""

from __future__ import annotations

from accounts.ledger import Ledger, TokenEntry, UserEntry, secret_digest


def together(mine: Ledger, theirs: Ledger) -> Ledger:
    """The same whichever of the two is `mine`. Both have to have the users of one pair."""
    older, newer = sorted((mine, theirs), key=lambda one: (one.number, one.to_json()))
    gone = mine.retired | theirs.retired
    users: dict[str, UserEntry] = {}
    for user in (*older.users, *newer.users):
        if secret_digest(user.password) not in gone:
            users[user.name] = user
    tokens: dict[str, TokenEntry] = {}
    for token in (*older.tokens, *newer.tokens):
        if secret_digest(token.digest) not in gone and token.user in users:
            tokens[token.digest] = token
    by_user = sorted(users.values(), key=lambda one: one.name)
    return _after(mine, theirs, tuple(by_user), tuple(sorted(tokens.values(), key=lambda one: one.digest)))


def instead(mine: Ledger, theirs: Ledger) -> Ledger:
    """Those of the other box alone: this one has just come into its pair."""
    return _after(mine, theirs, theirs.users, theirs.tokens)


def _after(mine: Ledger, theirs: Ledger, users: tuple[UserEntry, ...], tokens: tuple[TokenEntry, ...]) -> Ledger:
    """A number of its own only where neither of the two has all of it, so that both boxes come to the same one."""
    new = Ledger(0, users, tokens)
    retired = (mine.retired | theirs.retired | mine.secrets | theirs.secrets) - new.secrets
    as_one = [one.number for one in (mine, theirs) if says(one) == says(Ledger(0, users, tokens, retired))]
    most = max(mine.number, theirs.number)
    found = Ledger(most if as_one else most + 1, users, tokens, retired)
    return mine if found.number == mine.number and says(found) == says(mine) else found


def says(ledger: Ledger) -> tuple[object, ...]:
    """What it says, whatever its number is and in whatever order."""
    users = sorted((one.name, one.password, one.active) for one in ledger.users)
    tokens = sorted((one.digest, one.name, one.user, tuple(one.scopes)) for one in ledger.tokens)
    return tuple(users), tuple(tokens), ledger.retired
