"""A new password, whoever gives it: by the page, a set-up code, the console."""

from __future__ import annotations

import logging

from accounts import ledger
from accounts.models import ApiToken

log = logging.getLogger(__name__)


def set_password(user, password: str) -> int:
    """The user may log in with it; with the old one end his other sessions and his tokens. How many tokens ended.

    Who changes a password because somebody else knows it must not leave him a token. Raises DatabaseError, OSError.
    """
    with ledger.once():
        user.set_password(password)
        user.is_active = True
        user.save()
        tokens = list(ApiToken.objects.filter(user=user))
        for token in tokens:
            token.delete()
    if tokens:
        log.info("%d API tokens of user %s ended with the old password", len(tokens), user.get_username())
    return len(tokens)
