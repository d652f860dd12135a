"""API tokens: made, recognised, revoked. They are random and long, so a plain digest keeps them as well as any."""

import hashlib
import logging
import secrets
from datetime import timedelta

from django.utils import timezone

from accounts.models import ApiToken

log = logging.getLogger(__name__)

PREFIX = "fairlead_"  # so that a token that got loose is recognised as one
BYTES = 32
NOTE_USE_EVERY = timedelta(hours=1)  # a disk write for each request would be too many
MOST = 20


class TooMany(Exception):
    """The box has as many tokens as anybody can keep an eye on."""


def make(user, name: str) -> str:
    """A new token, to be shown now and never again. Raises TooMany."""
    if ApiToken.objects.count() >= MOST:
        raise TooMany
    token = PREFIX + secrets.token_urlsafe(BYTES)
    ApiToken.objects.create(name=name, user=user, digest=digest(token))
    log.info("user %s made the API token %r", user.get_username(), name)
    return token


def revoke(pk: int, by: str) -> str | None:
    """Its name; None where there is no such token any more."""
    found = ApiToken.objects.filter(pk=pk).first()
    if found is None:
        return None
    found.delete()
    log.info("user %s revoked the API token %r of %s", by, found.name, found.user.get_username())
    return found.name


def owner(token: str) -> ApiToken | None:
    """The token's record, if it is one of the box and its admin may still log in."""
    found = ApiToken.objects.select_related("user").filter(digest=digest(token)).first()
    if found is None or not found.user.is_active:
        return None
    now = timezone.now()
    if found.used is None or now - found.used > NOTE_USE_EVERY:
        ApiToken.objects.filter(pk=found.pk).update(used=now)
    return found


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
